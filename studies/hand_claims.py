"""Faults of claims that the authors of `truerank check` did not choose; written without sight of the rules.

    python studies/hand_claims.py --collection vaswani --per-kind 5 --work FOLDER --out claims.json
    python studies/hand_claims.py --collection cacm --per-kind 2 --kinds run_oracle,topics_copied
    python studies/hand_claims.py --list

Seven clean runs are made with the package's rankers and kept in the folder of `--work`. Each kind (`hand_id_faults.py`,
`hand_run_faults.py`, `hand_judgment_faults.py`, `hand_data_faults.py`, `hand_harmless.py`) plants its fault in the
files of a claim about two of them; half of the claims have judgments of irrelevant documents, too. The check is asked
with all runs, the documents, and the training data where there is any.
A plant counts only if its effect is real by a computation of nDCG@10 and a paired t-test that are this benchmark's own:
a false lead is shown with p < 0.01 (it is not in the clean files), a true one is not shown any more, or an inflated one
is inflated by at least 0.03. What fails that is planted again with the next seed, at most six times, and then counted
as not real.

Printed by kind: the words; how often the cause is named in the headline (the conclusion's reason), on the page only
(any answer's evidence or consequence), or not at all; and how often the answer is a mistake (a plain HOLDS; HOLDS
SMALLER for a false lead; DOES NOT HOLD for an inflated true one). A sentence that the check of the clean files of the
same claim has as well names nothing. Words are matched generously: these figures are upper bounds of what the page
explains. The word of the check is exact. An error counts as a word, its message as a headline. For a hidden lead, DOES
NOT HOLD or CANNOT TELL without the cause is the mistake; there HOLDS is right. For harmless changes the word must be
that of the clean files.

Undetectable in principle, to my mind, from the files alone, and counted apart:
- run_nudged, run_best_of_many: a better ranker would show the same;
- run_names_swapped: no byte of the two files is wrong;
- judgments_of_a_model: only other judgments could tell;
- topics_dropped_everywhere: gaps in the numbers are usual.
Hard, but something in the files says so: ids_off_by_one, ids_other_index (the documents do not fit the topics),
run_hidden_mixture, run_patched (rows that are another run's), run_part_of_index (a stretch of the collection is never
shown), trained_on_reworded, judgments_two_years.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import hand_data_faults
import hand_harmless
import hand_id_faults
import hand_judgment_faults
import hand_run_faults
from common import require_shared, table
from hand_collection import Collection, Files, collection, shown, write
from hand_kinds import KINDS, Kind

MODULES = (hand_id_faults, hand_run_faults, hand_judgment_faults, hand_data_faults, hand_harmless)
ATTEMPTS = 6


@dataclass(frozen=True)
class Answer:
    """What the check said of one plant."""

    kind: str
    seed: int
    system: str
    baseline: str
    clean: tuple[float, float]
    planted: tuple[float, float]
    real: bool
    word: str
    clean_word: str
    named: str
    reason: str
    effects: dict[str, str]
    seconds: float


def real(kind: Kind, clean: tuple[float, float], planted: tuple[float, float]) -> bool:
    """Whether the fault has the effect that it is to have."""
    if kind.honest == "same":
        return True
    if kind.honest == "hidden":
        return clean[0] > 0 and clean[1] < 0.001 and (planted[0] <= 0 or planted[1] > 0.01)
    if kind.honest == "smaller":
        return clean[0] > 0 and planted[0] > clean[0] + 0.03 and planted[1] < 0.01
    return (clean[0] <= 0.01 or clean[1] > 0.05) and planted[0] > 0 and planted[1] < 0.01


def check(files: Files, cache: Path) -> dict[str, Any]:
    """The summary of a check of the files; of one that refuses them, its message."""
    import truerank
    from truerank.claims.inquiry import ClaimSources
    from truerank.errors import TruerankError
    from truerank.options import Encoding

    with tempfile.TemporaryDirectory() as place:
        given = write(files, Path(place) / "files")
        sources = ClaimSources(
            test=str(given.topics),
            qrels=str(given.qrels),
            run=tuple(map(str, given.runs)),
            docs=str(given.docs),
            train=(str(given.train),) if given.train else (),
            system=files.system,
            baseline=files.baseline,
            model_judgments=(f"other={given.model}",) if given.model else (),
        )
        try:
            truerank.check(sources=sources, encoding=Encoding("packaged", cache=str(cache)), out=Path(place) / "check")
        except TruerankError as error:
            return {"verdict": "ERROR", "conclusion": {"reason": str(error)}, "answers": []}
        summary: dict[str, Any] = json.loads((Path(place) / "check" / "summary.json").read_text())
        return summary


def sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return [part.strip() for part in re.split(r"(?<=[.;])\s+|\n", text) if part.strip()]


def headline(summary: dict[str, Any]) -> list[str]:
    """What the conclusion says, whatever its numbers."""
    conclusion = summary["conclusion"]
    # Which questions lacked their data is said of every check.
    said = [part for part in sentences(conclusion["reason"]) if not part.startswith("Not known")]
    return [re.sub(r"[-+\u2212\d.,]+", "#", part) for part in (*said, *conclusion.get("exceptions", ()))]


def page(summary: dict[str, Any]) -> list[str]:
    """What the answers say."""
    return [part for one in summary["answers"] for part in sentences(f"{one['evidence']} {one['consequence']}")]


def naming(kind: Kind, summary: dict[str, Any], known: Callable[[], dict[str, Any]]) -> str:
    """Where the cause is named: headline, page or nowhere; the clean check is asked only where something matches."""
    words = re.compile("|".join(f"(?:{word})" for word in kind.words), re.IGNORECASE)
    parts = {"headline": headline(summary), "page": page(summary)}
    matching = {place: {part for part in said if kind.words and words.search(part)} for place, said in parts.items()}
    if any(matching.values()):
        clean = known()
        usual = {*headline(clean), *page(clean)}
        for place, said in matching.items():
            if said - usual:
                return place
    return "nowhere"


class Bench:
    """Checks plants on a collection; the checks of clean claims are kept."""

    def __init__(self, texts: Collection, work: Path) -> None:
        self._texts, self._cache = texts, work / "vectors"
        self._clean: dict[tuple[str, str, bool], dict[str, Any]] = {}

    def clean(self, files: Files) -> dict[str, Any]:
        """The check of the clean files of a claim."""
        claim = files.system, files.baseline, files.pooled
        if claim not in self._clean:
            known = {files.system, files.baseline} <= set(self._texts.rankings)
            empty = {"verdict": "", "conclusion": {"reason": ""}, "answers": []}
            self._clean[claim] = check(self._texts.files(*claim), self._cache) if known else empty
        return self._clean[claim]

    def planted(self, kind: Kind, seed: int) -> tuple[Files, tuple[float, float], tuple[float, float], bool]:
        """The files of a plant, the lead before and after it, and whether its effect is real."""
        for attempt in range(ATTEMPTS):
            draw = random.Random(zlib.crc32(f"{self._texts.name} {kind.name} {seed} {attempt}".encode()))
            files = kind.plant(self._texts, draw)
            # A run that the plant made is compared as the run that it was made from: with the baseline, a lead of 0.
            known = {files.system, files.baseline} <= set(self._texts.rankings)
            before = shown(self._texts.files(files.system, files.baseline)) if known else (0.0, 1.0)
            after = shown(files)
            if real(kind, before, after):
                return files, before, after, True
        return files, before, after, False

    def answer(self, kind: Kind, seed: int) -> Answer:
        """The answer of the check to one plant."""
        files, before, after, is_real = self.planted(kind, seed)
        started = time.process_time()
        summary = check(files, self._cache)
        spent = time.process_time() - started
        effects = {one["question"]: one["effect"] for one in summary["answers"]}
        return Answer(
            kind.name,
            seed,
            files.system,
            files.baseline,
            before,
            after,
            is_real,
            summary["verdict"],
            self.clean(files)["verdict"] if kind.honest == "same" else "",
            naming(kind, summary, partial(self.clean, files)),
            summary["conclusion"]["reason"],
            effects,
            spent,
        )


#: Words that are mistakes: a false lead that is believed, or a true one that is denied.
WRONG = {
    "not holds": {"HOLDS", "HOLDS SMALLER THAN CLAIMED"},
    "files": {"HOLDS", "HOLDS SMALLER THAN CLAIMED"},
    "smaller": {"HOLDS", "DOES NOT HOLD"},
}


def mistaken(kind: Kind, answer: Answer) -> bool:
    """Whether the answer is wrong; a true lead that does not show is denied wrongly only if the cause is not named."""
    if kind.honest == "same":
        return answer.word != answer.clean_word
    if kind.honest == "hidden":
        return answer.word in {"DOES NOT HOLD", "CANNOT TELL"} and answer.named != "headline"
    return answer.word in WRONG[kind.honest]


def row(kind: Kind, answers: list[Answer]) -> list[object]:
    """A row of the printed table."""
    proper = [one for one in answers if one.real]
    words = Counter(one.word for one in proper)
    named = Counter(one.named for one in proper)
    return [
        kind.name, kind.honest + (" (undetectable)" if kind.undetectable else ""), f"{len(proper)}/{len(answers)}",
        ", ".join(f"{word} {count}" for word, count in words.most_common()),
        *(f"{named[place]}" for place in ("headline", "page", "nowhere")),
        sum(mistaken(kind, one) for one in proper),
    ]  # fmt: skip


def main() -> None:
    """Plants, asks, prints."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--collection", choices=("cacm", "vaswani"), default="cacm")
    options.add_argument("--per-kind", type=int, default=2)
    options.add_argument("--kinds", default="", help="names, separated by commas; by default all")
    options.add_argument("--seed", type=int, default=0, help="of the first plant of a kind")
    options.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "hand-claims")
    options.add_argument("--out", type=Path, help="every answer, as JSON")
    options.add_argument("--list", action="store_true", help="print the kinds and end")
    options.add_argument("--effects", action="store_true", help="plant and measure, and ask no check")
    given = options.parse_args()
    if given.list:
        print(table(("kind", "honest", "what was done"), [(one.name, one.honest, one.done) for one in KINDS.values()]))
        return
    require_shared()
    chosen = [KINDS[name] for name in given.kinds.split(",")] if given.kinds else list(KINDS.values())
    given.work.mkdir(parents=True, exist_ok=True)
    bench = Bench(collection(given.collection, given.work), given.work)
    seeds = range(given.seed, given.seed + given.per_kind)
    if given.effects:
        for kind in chosen:
            for seed in seeds:
                files, before, after, is_real = bench.planted(kind, seed)
                print(
                    f"{kind.name:28} {files.system:>8} {files.baseline:>8} {before[0]:+.3f} p={before[1]:.4f} -> "
                    f"{after[0]:+.3f} p={after[1]:.6f} {'real' if is_real else 'NOT REAL'}"
                )
        return
    every: list[Answer] = []
    for kind in chosen:
        answers = [bench.answer(kind, seed) for seed in seeds]
        every += answers
        print("| " + " | ".join(map(str, row(kind, answers))) + " |", flush=True)
        if given.out:
            given.out.write_text(json.dumps([asdict(one) for one in every], indent=1, ensure_ascii=False) + "\n")
    header = ("kind", "honest", "real", "words", "headline", "page", "nowhere", "mistaken")
    print("\n" + table(header, [row(kind, [one for one in every if one.kind == kind.name]) for kind in chosen]))
    for title, undetectable in (("All but the undetectable", False), ("Undetectable", True)):
        part = [one for one in every if one.real and KINDS[one.kind].undetectable is undetectable]
        wrong = sum(mistaken(KINDS[one.kind], one) for one in part)
        faults = [one for one in part if KINDS[one.kind].honest != "same"]
        plain = sum(one.word == "HOLDS" for one in faults if KINDS[one.kind].honest != "hidden")
        named = Counter(one.named for one in faults)
        print(
            f"\n{title}: {len(part)} plants, {wrong} mistaken, {plain} false plain HOLDS; "
            f"cause of {len(faults)} faults named "
            f"in the headline {named['headline']}, on the page only {named['page']}, nowhere {named['nowhere']}"
        )
    used = sum(one.seconds for one in every)
    print(f"{used:.0f} seconds of processor time, {used / max(1, len(every)):.1f} a plant")


if __name__ == "__main__":
    main()
