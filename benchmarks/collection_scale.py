"""Processor time, clock and memory of the collection audit on generated documents, by step.

    python benchmarks/collection_scale.py [100000x60 100000x600 1000000x60] [--workers N] [--keep FOLDER]
    python benchmarks/collection_scale.py --read FOLDER [--out AUDIT]

A size is a number of documents and their mean number of words. Of a hundred documents, one repeats an earlier one and
one does so but for a word; a few in a thousand have other faults. With them go 200 topics, 100 judgments for each, and
two runs of 1,000 results for each. Each size is audited in a process of its own; seconds are those of its workers, too,
memory is its own, with that of its largest worker behind a plus sign.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from check_scale import Size, largest, write
from generated_documents import texts, vocabulary
from shared_data import table
from truerank.audits.collection import Parts, audit
from truerank.options import Workers
from truerank.work.progress import Quiet

_SPREAD = 0.3
_TOPICS, _JUDGED, _RELEVANT, _RUNS, _RESULTS = 200, 100, 30, 2, 1000
#: What is done to a document, one of so many at random.
_FAULTS = {"copy": 100, "change": 100, "html": 1000, "damage": 1000, "empty": 5000, "cut": 1000}
_COPIED = 5000


def documents(number: int, mean: int, words: list[str], seed: int = 1) -> Iterator[str]:
    """So many texts, some of them with faults."""
    draw, earlier = random.Random(seed), list[str]()
    for text in texts(number, words, seed, mean=mean, spread=_SPREAD):
        fault = next((name for name, rate in _FAULTS.items() if draw.randrange(rate) == 0), "")
        if fault in ("copy", "change") and earlier:
            text = draw.choice(earlier)
            if fault == "change":
                own = text.split(" ")
                own[len(own) // 2] = "otherwise"
                text = " ".join(own)
        elif len(earlier) < _COPIED:
            earlier.append(text)
        else:
            earlier[draw.randrange(_COPIED)] = text
        yield {
            "html": f"<p>{text}</p>", "damage": f"cafÃ© {text}", "empty": "", "cut": text[: len(text) // 2],
        }.get(fault, text)  # fmt: skip


def generate(number: int, mean: int, folder: Path) -> None:
    """Writes documents, topics, judgments and runs."""
    words = vocabulary()
    # Of ten words one in the middle of a document, so that topics are no pieces of documents.
    asked = [" ".join(text.split(" ")[::10][:8]) for text in islice(texts(_TOPICS, words, seed=2), _TOPICS)]
    (folder / "topics.tsv").write_text("".join(f"q{place}\t{text}\n" for place, text in enumerate(asked)))
    write(Size(_TOPICS, _RUNS, _RESULTS, number, _JUDGED, _RELEVANT), folder)
    with (folder / "docs.jsonl").open("w", encoding="utf-8") as target:
        for place, text in enumerate(documents(number, mean, words)):
            title = text[: text.find(" ", 20)] if place % 3 else ""
            target.write(json.dumps({"_id": f"D{place:07d}", "title": title, "text": text}, ensure_ascii=False) + "\n")


class _Used(NamedTuple):
    """Seconds of the processors and of the clock, GiB of this process and of its largest child."""

    processor: float
    clock: float
    own: float
    child: float


class Steps(Quiet):
    """What each step of a job used; steps of one name are one."""

    def __init__(self) -> None:
        self.taken: dict[str, _Used] = {}
        self._name, self._begun = "reading judgments, topics and runs", self._now()

    def start(self, what: str, total: int | None = None) -> None:
        """A step begins."""
        self.end(what)

    def end(self, following: str = "") -> None:
        """The step that was at work is done."""
        now, begun, had = self._now(), self._begun, self.taken.get(self._name, _Used(0, 0, 0, 0))
        self.taken[self._name] = _Used(
            had.processor + now.processor - begun.processor, had.clock + now.clock - begun.clock,
            max(had.own, largest()), max(had.child, now.child),
        )  # fmt: skip
        self._name, self._begun = following, self._now()

    @staticmethod
    def _now() -> _Used:
        own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        processor = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
        return _Used(processor, time.perf_counter(), 0.0, children.ru_maxrss / 2**20)


def read(folder: Path, workers: int | None, out: Path | None) -> None:
    """One audit with its steps, as JSON."""
    steps = Steps()
    parts = Parts(
        qrels=str(folder / "test.qrels"), docs=str(folder / "docs.jsonl"), topics=str(folder / "topics.tsv"),
        run=tuple(map(str, sorted(folder.glob("*.run")))),
    )  # fmt: skip
    found = audit(parts, work=Workers(workers=workers), out=out, progress=steps)
    steps.end()
    print(json.dumps({"word": found.verdicts[0].word, "by": steps.taken}))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", default=["100000x60", "100000x600", "1000000x60"], metavar="NxWORDS")
    parser.add_argument("--workers", type=int, help="processes, by default as many as there are processors")
    parser.add_argument("--keep", type=Path, help="a folder in which the generated files stay")
    parser.add_argument("--read", type=Path, help="audit what is in this folder, in this process")
    parser.add_argument("--out", type=Path, help="with --read: write the audit there")
    options = parser.parse_args(arguments)
    if options.read:
        read(options.read, options.workers, options.out)
        return
    for size in options.sizes:
        number, _, mean = size.partition("x")
        with tempfile.TemporaryDirectory() as temporary:
            folder = (options.keep or Path(temporary)) / size
            if not (folder / "docs.jsonl").exists():
                folder.mkdir(parents=True, exist_ok=True)
                generate(int(number), int(mean), folder)
            workers = [] if options.workers is None else ["--workers", str(options.workers)]
            own = [sys.executable, __file__, "--read", str(folder), *workers]
            line = subprocess.run(own, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[-1]
        found = {name: _Used(*used) for name, used in json.loads(line)["by"].items()}
        total = _Used(*(sum(column) for column in list(zip(*found.values(), strict=True))[:2]),
                      *(max(column) for column in list(zip(*found.values(), strict=True))[2:]))  # fmt: skip
        rows = [
            (name, f"{used.processor:.1f}", f"{used.clock:.1f}", f"{used.own:.2f} + {used.child:.2f}")
            for name, used in {**found, f"all of {int(number):,d} × {mean}": total}.items()
            if used.processor >= 0.05
        ]
        print(table(("step", "processor s", "clock s", "GiB"), rows), flush=True)


if __name__ == "__main__":
    main()
