"""What `truerank check` says of claims whose truth is known: neighbours, planted faults, claims without a fault, cost.

    python studies/check.py plants --runs FOLDER [--collection cacm] [--count 20] [--kinds leakage,versions]
    python studies/check.py clean --runs FOLDER [--collection cacm] [--count 20]
    python studies/check.py pairs --runs FOLDER [--collection vaswani]
    python studies/check.py table --runs FOLDER [--collection cacm]
    python studies/check.py cost --runs FOLDER [--collection vaswani]

Eight runs of `scripts/make_runs.py` are kept in FOLDER. The judgments of both collections name relevant documents
only; for the truth they are taken as complete: what the runs return among their first twenty and nobody named is not
relevant.
A plant changes the data until a claim that is true is no longer shown (hidden), or one that is not true is (made). The
page sees it where the question of that kind says so: falls, smaller, not shown or an exception for a made claim,
appears or an exception for a hidden one. Each check is a line of FOLDER/COLLECTION.jsonl; called again, the benchmark
goes on where it was stopped. While it runs it says only that a check was made; `table` shows what the checks say.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import itertools
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import polars as pl

import truerank
from check_plants import KEYS, KINDS, NAMES, Data, made_runs, planted, stands
from common import require_shared, table
from truerank.claims.claim import chosen_claim
from truerank.claims.questions import planned as plan_of
from truerank.measures.magnitudes import proportion
from truerank.options import Scoring

SEED = 21
#: Questions that need an audit; the others are always asked.
AUDITED = frozenset(("leakage", "collection", "versions", "models"))


class Checks:
    """Checks of one collection, whose answers are lines of a file; what many of them share is made once.

    Args:
        folder: of the runs; vectors and an index are kept below it.
        name: of the collection.
        data: without a fault.
    """

    def __init__(self, folder: Path, name: str, data: Data) -> None:
        self.file = folder / f"{name}.jsonl"
        self.rows = read_rows(self.file)
        self._place = folder / name
        self._before = documents(self._place / "docs.trec", data.docs)
        self._docs = data.docs
        _share_work(self._before, self._place / "index")

    def made(self, key: str, data: Data, claim: tuple[str, str], parts: set[str], **facts: Any) -> None:
        """Checks one claim and keeps what was said, unless it was checked before."""
        if key in self.rows:
            return
        started = time.process_time()
        result = self._checked(data, claim, parts)
        row = {
            "key": key, "system": claim[0], "baseline": claim[1], **facts, "word": result.conclusion.word,
            "effects": {one.question: "objects" if one.objects else one.effect for one in result.answers},
            "exceptions": result.conclusion.exceptions, "difference": result.base.figures(),
            "seconds": round(time.process_time() - started, 2),
        }  # fmt: skip
        with self.file.open("a") as stream:
            stream.write(json.dumps(row) + "\n")
        self.rows[key] = row
        print(f"{key}: {row['seconds']} s", flush=True)

    def _checked(self, data: Data, claim: tuple[str, str], parts: set[str]) -> Any:
        """A check of one claim, given what these questions need, and asked them alone of those that need an audit."""
        with tempfile.TemporaryDirectory() as work, asking(parts):
            place = Path(work)
            (place / "topics.tsv").write_text(lines_of(data.topics))
            given: dict[str, Any] = {"test": str(place / "topics.tsv")}
            if "leakage" in parts:
                (place / "train.tsv").write_text(lines_of({f"q{n}": text for n, text in enumerate(data.train)}))
                given["train"] = (str(place / "train.tsv"),)
            if parts & {"collection", "versions"}:
                same = data.docs is self._docs
                given["docs"] = self._before if same else documents(place / "docs.trec", data.docs)
            if "versions" in parts:
                given["previous"] = self._before
            if "models" in parts:
                given["model_judgments"] = dict(data.models)
            # The audit of the collection draws random changes for its own page, which no answer rests on.
            resamples = 1000 if "leakage" in parts else 100
            return truerank.check(
                qrels=data.qrels, run=dict(data.runs), system=claim[0], baseline=claim[1], comparisons=1,
                encoder="packaged", backend="onnx", cache=str(self._place / "vectors"), resamples=resamples, **given,
            )  # fmt: skip


@contextlib.contextmanager
def asking(parts: set[str]) -> Iterator[None]:
    """Within it a check asks, of the questions that need an audit, these alone."""

    def plan(*given: Any) -> tuple[Any, ...]:
        asked = AUDITED - parts
        return tuple(replace(one, answerable=False) if one.name in asked else one for one in plan_of(*given))

    with mock.patch("truerank.claims.checking.planned", plan):
        yield


def _share_work(before: str, place: Path) -> None:
    """The index of the documents without a fault is built once, and a text is looked at once for signs of a notice."""
    texts = importlib.import_module("truerank.audits.collection.texts")
    texts.notice_of = functools.cache(texts.notice_of)  # type: ignore[attr-defined]
    scanning = sys.modules.get("truerank.audits.transfer.scanning.scan") or importlib.import_module(
        "truerank.audits.transfer.scanning.scan"
    )
    build = scanning.build_index

    def once(source: str, folder: Path, **options: Any) -> None:
        if source != before:
            raise ValueError(source)
        if not place.is_dir():
            build(source, place, **options)
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.symlink_to(place.resolve())

    scanning.build_index = once


def read_rows(file: Path) -> dict[str, dict[str, Any]]:
    """What was checked, by key."""
    lines = file.read_text().splitlines() if file.is_file() else []
    return {row["key"]: row for row in map(json.loads, lines)}


def lines_of(texts: Mapping[str, str]) -> str:
    """Texts by id as lines of TSV."""
    return "".join(f"{key}\t{flat(text)}\n" for key, text in texts.items())


def flat(text: str) -> str:
    """A text on one line."""
    return " ".join(text.split())


def documents(path: Path, docs: Mapping[str, str]) -> str:
    """Writes documents in the format of TREC."""
    lines = (f"<DOC>\n<DOCNO>{key}</DOCNO>\n{flat(text).replace('<', ' ')}\n</DOC>\n" for key, text in docs.items())
    path.write_text("".join(lines))
    return str(path)


SEEN = {"made": ("falls", "smaller", "not shown", "objects"), "hidden": ("appears", "objects")}


def plants(checks: Checks, data: Data, count: int, kinds: list[str]) -> None:
    """Checks claims that a planted fault makes or hides."""
    for kind in kinds:
        for way in ("made", "hidden"):
            draw = random.Random(f"{SEED}{kind}{way}")
            # A change of the documents, or a model, cannot make a claim that people's judgments show: the claim is true
            # as judged, and is not true any longer there.
            turned = kind in ("versions", "models")
            asked = ("hidden" if way == "made" else "made") if turned else way
            keys = [f"{kind}/{way}/{number}" for number in range(count)]
            if all(key in checks.rows for key in keys):
                continue
            # Plants are drawn in their order, those that were checked before too.
            for key, (faulty, *claim) in zip(keys, planted(data, kind, count, asked, draw), strict=False):
                checks.made(key, faulty, tuple(claim), KINDS[kind][1])


def clean(checks: Checks, data: Data, count: int) -> None:
    """Checks claims on data without a plant: true ones, and ones that the data do not show."""
    draw = random.Random(SEED)
    both = {
        name: [(one, other) for one in NAMES for other in NAMES if one != other and stands(data, one, other) == shown]
        for name, shown in (("true", True), ("even", False))
    }
    for pairs in both.values():
        draw.shuffle(pairs)
    noisy = data.qrels.with_columns(
        pl.Series([draw.random() < 0.05 for _ in range(len(data.qrels))]).alias("wrong")
    ).select(*KEYS, pl.when("wrong").then(1 - pl.col("relevance").clip(0, 1)).otherwise("relevance").cast(pl.Int32))
    noisy = noisy.rename({noisy.columns[-1]: "relevance"})
    whole = replace(data, previous=data.docs, models={"model": noisy})
    for name, pairs in both.items():
        for number, pair in enumerate(pairs[:count]):
            checks.made(f"{name}/{number}", whole, pair, set(AUDITED))


def neighbours(checks: Checks, data: Data) -> None:
    """Checks each pair of neighbours in the order of the runs."""
    claim = chosen_claim(data.runs, data.qrels, "nDCG@10", Scoring(), (None, None), comparisons=None, confidence=0.95)
    order = claim.evaluation.sorted(claim.measure).runs
    for number, pair in enumerate(itertools.pairwise(order)):
        checks.made(f"pair/{number}", data, pair, {"leakage", "collection"})


def shown(rows: Mapping[str, dict[str, Any]]) -> None:
    """Prints what the checks say."""
    found = []
    for kind, (_, _, questions) in KINDS.items():
        for way in ("made", "hidden"):
            own = [row for key, row in rows.items() if key.startswith(f"{kind}/{way}/")]
            if own:
                seen = sum(any(row["effects"][one] in SEEN[way] for one in questions) for row in own)
                first = told(_strongest(row, questions, way) for row in own)
                found.append((kind, way, share(seen, len(own)), first, told(row["word"] for row in own)))
    if found:
        print(table(("fault", "claim", "seen (95%)", "what the question says", "conclusions"), found))
    found = []
    for name, way in (("true", "made"), ("even", "hidden")):
        own = [row for key, row in rows.items() if key.startswith(f"{name}/")]
        if own:
            alarms = [[one for one, effect in row["effects"].items() if effect in SEEN[way]] for row in own]
            odd = told(f"{name} {row['effects'][name]}" for row, some in zip(own, alarms, strict=True) for name in some)
            found.append((name, share(sum(map(bool, alarms)), len(own)), odd, told(row["word"] for row in own)))
    if found:
        print(table(("claims without a fault", "false alarms (95%)", "questions that object", "conclusions"), found))
    own = [row for key, row in rows.items() if key.startswith("pair/")]
    if own:
        cells = [
            (f"{row['system']} > {row['baseline']}", row["difference"], row["word"], "; ".join(row["exceptions"]))
            for row in own
        ]
        print(table(("claim", "difference", "conclusion", "except"), cells))
    print(f"{len(rows)} checks, {sum(row['seconds'] for row in rows.values()):.0f} s of processor time")


def _strongest(row: Mapping[str, Any], questions: tuple[str, ...], way: str) -> str:
    """What the first question of a kind says, or the next one where that says nothing of the fault."""
    said = [row["effects"][one] for one in questions]
    return str(next((one for one in said if one in SEEN[way]), said[0]))


def share(part: int, whole: int) -> str:
    """A share with its interval of Clopper and Pearson."""
    ends = proportion(part, whole, method="exact")
    return f"{part} of {whole} ({ends.low:.2f} to {ends.high:.2f})"


def told(words: Any) -> str:
    """Words with how often they came."""
    return ", ".join(f"{word} {number}" for word, number in sorted(Counter(words).items()))


def cost(folder: Path, name: str) -> None:
    """Time and memory of a whole check, beside the sum of the single commands."""
    data = made_runs(folder, name)
    with tempfile.TemporaryDirectory() as work:
        place = Path(work)
        (place / "topics.tsv").write_text("".join(f"{key}\t{flat(text)}\n" for key, text in data.topics.items()))
        (place / "train.tsv").write_text("".join(f"q{n}\t{flat(text)}\n" for n, text in enumerate(data.train)))
        (place / "qrels.txt").write_text("".join(f"{t} 0 {d} {g}\n" for t, d, g in data.qrels.iter_rows()))
        docs = documents(place / "docs.trec", data.docs)
        before = documents(place / "before.trec", data.docs)
        runs = [word for run in NAMES for word in ("--run", str(folder / name / f"{run}.run"))]
        pair = [word for run in NAMES[:2] for word in ("--run", str(folder / name / f"{run}.run"))]
        encoder = ["--encoder", "packaged", "--backend", "onnx"]
        topics, qrels, train = (str(place / file) for file in ("topics.tsv", "qrels.txt", "train.tsv"))
        singles = {
            "compare": ["compare", "--qrels", qrels, *runs, "--baseline", NAMES[2]],
            "leakage audit": ["leakage", "audit", "--train", train, "--test", topics, *encoder],
            "collection audit": ["collection", "audit", "--qrels", qrels, "--docs", docs, "--topics", topics, *pair],
            "judge audit": ["judge", "audit", "--people", qrels, "--model", f"model={qrels}", *runs],
            "transfer scan": ["transfer", "scan", "--version", f"judged={before}", "--version", f"now={docs}",
                              "--qrels", qrels, "--topics", topics, "--model", "bm25", "--match-by", "id"],
        }  # fmt: skip
        whole = ["check", "--test", topics, "--qrels", qrels, *runs, "--baseline", NAMES[2], "--docs", docs,
                 "--previous", before, "--train", train, "--model-judgments", f"model={qrels}", *encoder]  # fmt: skip
        rows = [(title, *measured([*words, "--out", str(place / title)])) for title, words in singles.items()]
        total = sum(row[1] for row in rows), max(row[2] for row in rows)
        rows += [("all of them", *total), ("check", *measured([*whole, "--out", str(place / "check")]))]
        rows.append(("check, again", *measured([*whole, "--out", str(place / "check")])))
        shown = [(title, f"{seconds:.1f}", f"{memory:.0f}") for title, seconds, memory in rows]
        print(table(("command", "processor seconds", "MB"), shown))


def measured(words: list[str]) -> tuple[float, float]:
    """Processor seconds and peak memory in MB of a command."""
    code = (
        "import sys; from truerank.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: sys.stderr.write([line for line in open('/proc/self/status') if 'VmHWM' in line][0])\n"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stderr}")
    memory = next(line for line in reversed(done.stderr.splitlines()) if "VmHWM" in line)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, int(memory.split()[1]) / 1000


def main() -> None:
    """Runs one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("plants", "clean", "pairs", "table", "cost"))
    parser.add_argument("--runs", type=Path, required=True, help="where the runs are kept, and what was checked")
    parser.add_argument("--collection", default="cacm", choices=("vaswani", "cacm"))
    parser.add_argument("--count", type=int, default=20, help="plants of each kind and direction, or true claims")
    parser.add_argument("--kinds", default=",".join(KINDS))
    given = parser.parse_args()
    require_shared()
    if given.part == "cost":
        cost(given.runs, given.collection)
    elif given.part == "table":
        shown(read_rows(given.runs / f"{given.collection}.jsonl"))
    else:
        data = made_runs(given.runs, given.collection)
        checks = Checks(given.runs, given.collection, data)
        if given.part == "pairs":
            neighbours(checks, data)
        elif given.part == "plants":
            plants(checks, data, given.count, given.kinds.split(","))
        else:
            clean(checks, data, given.count)


if __name__ == "__main__":
    main()
