"""Counts what stands behind each promise, and writes the counts into docs/how-it-is-tested.md.

    python scripts/make_evidence.py [--check]

A count comes from the code (tests, property tests), from a table that an attack or a study printed (docs/tables/), or
from the sentence of a page that states the figure of a study; so no figure is typed twice. With --check nothing is
written: the exit code is 1 where the page states another figure, or where a page no longer states it. What grows with
every change (tests, lines) is rounded down to two digits, and may be off by a fifth.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
DOCS: Final = ROOT / "docs"
PAGE: Final = DOCS / "how-it-is-tested.md"
#: Packages of others whose results ours are compared with in tests, studies and benchmarks.
PEERS: Final = frozenset(
    {
        "pytrec_eval", "ir_measures", "ranx", "beir", "bm25s", "mteb", "trectools", "torchmetrics", "sklearn", "scipy",
        "statsmodels", "datasketch", "datatrove", "rensa", "faiss", "ppi_py", "sentence_transformers", "transformers",
        "krippendorff", "simpledorff", "lifelines", "ijson", "openvino",
    }
)  # fmt: skip


class Count(NamedTuple):
    """A row of the page."""

    what: str
    counted: Callable[[], int]
    command: str
    grows: bool = False

    def shown(self) -> int:
        """The figure of the page."""
        count = self.counted()
        step = 10 ** max(0, len(str(count)) - 2) if self.grows else 1
        return count // step * step


def whole(text: str) -> int:
    """The integer at the beginning of a text."""
    found = re.match(r"\d[\d,]*", text)
    return int(found[0].replace(",", "")) if found else 0


def stated(page: str, pattern: str) -> Callable[[], int]:
    """The sum of the figures that a page states in these words."""

    def counted() -> int:
        text = " ".join((DOCS / page).read_text(encoding="utf-8").split())
        found: list[str] = re.findall(pattern, text)
        if not found:
            sys.exit(f"docs/{page}: it no longer says {pattern!r}. say where the figure is now")
        return sum(map(whole, found))

    return counted


def tables(page: str) -> list[list[list[str]]]:
    """The rows of the tables of a page, without their headings."""
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = re.findall(r"(?:^\|.*\n)+", text + "\n", flags=re.MULTILINE)
    return [
        [[cell.strip() for cell in line.strip("|\n").split("|")] for line in block.splitlines()[2:]] for block in blocks
    ]


def column(page: str, number: int, *columns: int, begins: str = "") -> Callable[[], int]:
    """The sum of columns of a table, over the rows that begin with a word."""

    def counted() -> int:
        rows = [row for row in tables(page)[number] if row[0].startswith(begins)]
        return sum(whole(row[at]) for row in rows for at in columns)

    return counted


def attacks(*parts: str) -> Callable[[], int]:
    """How many attacks of these parts the table of outcomes has."""
    return lambda: sum(column("tables/robustness.md", 1, 1, begins=part)() for part in parts)


def default(script: str, option: str) -> Callable[[], int]:
    """The default of an option of a script."""
    pattern = re.compile(rf'"--{option}", type=int, default=([\d_]+)')
    return lambda: sum(int(found) for found in pattern.findall((ROOT / script).read_text(encoding="utf-8")))


def tests() -> Iterator[tuple[Path, ast.FunctionDef]]:
    """The test functions."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield path, node


def decorated(word: str) -> Callable[[], int]:
    """How many test functions have a decorator with this word."""
    return lambda: sum(any(word in ast.unparse(one) for one in node.decorator_list) for _, node in tests())


def lines(folder: str) -> Callable[[], int]:
    """The lines of a folder's modules."""
    return lambda: sum(len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / folder).rglob("*.py"))


def peers() -> set[str]:
    """The packages of others that tests, studies and benchmarks import."""
    found = set()
    for folder in ("tests", "studies", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            found |= set(re.findall(r"^\s*(?:import|from) (\w+)", text, flags=re.MULTILINE))
            found |= set(re.findall(r"importorskip\(\s*\"(\w+)", text))
    return found & PEERS


def reproduced() -> int:
    """The tables and figures of the papers that come out of the papers' own data."""
    return sum(row[-1] == "the paper's own data" for table in tables("papers.md") for row in table)


SECTIONS: Final[dict[str, tuple[Count, ...]]] = {
    "tests": (
        Count("test functions", lambda: sum(1 for _ in tests()), "make test", grows=True),
        Count("of them on inputs that hypothesis generates", decorated("given"), "make test", grows=True),
        Count(
            "of them long: whole collections, other implementations, full size",
            decorated("slow"),
            "make slow",
            grows=True,
        ),
        Count("lines of tests", lines("tests"), "", grows=True),
        Count("lines of the package", lines("src"), "python scripts/code_census.py", grows=True),
    ),
    "hostile": (
        Count("fuzzed inputs", column("tables/robustness.md", 0, 1, 2), "python attacks/fuzz.py --runs 3000"),
        Count("readers that they went to", lambda: len(tables("tables/robustness.md")[0]), "python attacks/fuzz.py"),
        Count("hostile command lines", attacks("options"), "python attacks/options.py --runs 50000"),
        Count("damaged indexes, results, stores and caches", attacks("damage"), "python attacks/damage.py"),
        Count("hostile archives", attacks("tars"), "python attacks/tars.py --seconds 60"),
        Count(
            "closed streams, hostile environments, lying plugins",
            attacks("surroundings", "plugins"),
            "python attacks/run.py --parts surroundings plugins",
        ),
        Count("audits of private logs searched for texts", attacks("redaction"), "python attacks/running.py redaction"),
    ),
    "ended": (
        Count("kills that met a command at work", attacks("kills"), "python attacks/running.py kills --times 120"),
        Count("full disks", attacks("disk"), "python attacks/running.py disk --times 100"),
        Count(
            "damaged files that a killed command had kept",
            attacks("kept"),
            "python attacks/running.py kept --times 100",
        ),
        Count(
            "labels by 20 annotators at once while the server is killed",
            default("benchmarks/judging_load.py", "labels"),
            "python benchmarks/judging_load.py",
        ),
        Count("commands run with 1, 2 and 7 processes: runs", attacks("workers"), "python attacks/running.py workers"),
    ),
    "planted": (
        Count(
            "faults of collections, of 46 kinds",
            column("tables/collection-planted.md", 0, 2),
            "python studies/collection_planted.py",
        ),
        Count("of them found", column("tables/collection-planted.md", 0, 3), "python studies/collection_planted.py"),
        Count(
            "faults under claims, by somebody who had not read the rules",
            stated("check-accuracy.md", r"\| (?:CACM|Vaswani) \| (\d+) \| \d+ \| \d+ \| \d+ \| \d+ \|"),
            "python studies/hand_claims.py",
        ),
        Count(
            "of them with a plain HOLDS",
            stated("check-accuracy.md", r"\| (?:CACM|Vaswani) \| \d+ \| (\d+) \| \d+ \| \d+ \| \d+ \|"),
            "python studies/hand_claims.py",
        ),
        Count(
            "damaged pages in scans",
            stated("transfer-accuracy.md", r"(?:\(|pairs, )([\d,]+) (?:of them harmed|harmed\))"),
            "python studies/transfer_planted.py",
        ),
        Count(
            "leaks in test sets that must not be CLEAN",
            stated("leakage-accuracy.md", r"all (\d+) leaks were listed"),
            "python studies/leakage_verdicts.py --sets 200",
        ),
        Count(
            "conventions and mistakes behind reported scores, by somebody who had not read the search",
            stated("tutorial-explain.md", r"under (\d+) conventions and mistakes"),
            "python studies/explain.py",
        ),
    ),
    "simulated": (
        Count(
            "simulations for each row on removed topics and documents",
            stated("leakage-effect.md", r"([\d,]+) simulations a row"),
            "python studies/placebo.py level",
        ),
        Count(
            "samples of labels for each judge of corrected scores",
            stated("corrected-scores-accuracy.md", r"hidden, ([\d,]+) times"),
            "python studies/corrected_scores.py coverage",
        ),
        Count(
            "generated data sets for tests by depth",
            stated("scores-by-depth.md", r"([\d,]+) generated data sets"),
            "python studies/survivorship_depths.py --simulate 1000",
        ),
        Count(
            "honest runs beside wrong judgments",
            stated("collection-questions.md", r"None of ([\d,]+) honest runs"),
            "python studies/label_noise.py",
        ),
        Count(
            "random numbers that `explain` must not explain",
            stated("tutorial-explain.md", r"of ([\d,]+) \(0\.9%\)"),
            "python studies/explain.py random",
        ),
        Count(
            "runs compared with themselves",
            stated("check-accuracy.md", r"HOLDS 10 of (\d+)"),
            "python studies/clean_claims.py nulls --count 300",
        ),
    ),
    "people": (
        Count(
            "pairs that the leakage paper's authors labelled",
            stated("agreement.md", r"authors' (\d+) labelled pairs"),
            "truerank judge table --scheme leakage",
        ),
        Count(
            "of them by two annotators on their own",
            stated("agreement.md", r"the (\d+) pairs that two annotators"),
            "truerank judge agreement",
        ),
        Count(
            "grades of people beside 33 model judges (LLMJudge)",
            stated("tutorial-assessors.md", r"has ([\d,]+) judgments by people"),
            "python studies/assessors.py",
        ),
    ),
    "independent": (
        Count(
            "packages of others whose results ours are compared with",
            lambda: len(peers()),
            "python scripts/make_evidence.py",
            grows=True,
        ),
        Count(
            "measures of other evaluators that a convention matches on every kind of collection",
            stated("which-tool-scores-how.md", r"(\d+) of \d+ measures are matched"),
            "python studies/peer_conventions.py --seeds 4",
        ),
        Count(
            "measures of other evaluators that were tried",
            stated("which-tool-scores-how.md", r"\d+ of (\d+) measures are matched"),
            "python studies/peer_conventions.py --seeds 4",
        ),
        Count("tables and figures of papers from the papers' own data", reproduced, "docs/papers.md", grows=True),
    ),
}


def rows(section: str) -> list[str]:
    """The table of a section."""
    head = ["| count | of what | command |", "| ---: | --- | --- |"]
    named = [(one, f"`{one.command}`" if one.command else "") for one in SECTIONS[section]]
    return head + [f"| {one.shown():,} | {one.what} | {command} |" for one, command in named]


def differing(page: str) -> Iterator[str]:
    """The figures of the page that are others by now."""
    for section, counts in SECTIONS.items():
        block = re.search(rf"<!-- counts: {section} -->\n(.*?)<!-- end -->", page, flags=re.DOTALL)
        if block is None:
            yield f"{section}: no table"
            continue
        shown = {
            cells[2]: whole(cells[1]) for cells in (re.split(r" ?\| ?", line) for line in block[1].splitlines()[2:])
        }
        for one in counts:
            now, before = one.shown(), shown.get(one.what, 0)
            if abs(before - now) > (now // 5 if one.grows else 0):
                yield f"{one.what}: {before} on the page, {now} now"


def main() -> None:
    """Writes or checks the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    page = PAGE.read_text(encoding="utf-8")
    if parser.parse_args().check:
        wrong = list(differing(page))
        if wrong:
            sys.exit("\n".join((*wrong, "run 'python scripts/make_evidence.py'")))
        return
    for section in SECTIONS:
        text = "\n".join((f"<!-- counts: {section} -->", *rows(section), "<!-- end -->"))
        page = re.sub(rf"<!-- counts: {section} -->\n.*?<!-- end -->", lambda _, text=text: text, page, flags=re.DOTALL)
    PAGE.write_text(page, encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)} is written; others' packages: {', '.join(sorted(peers()))}")


if __name__ == "__main__":
    main()
