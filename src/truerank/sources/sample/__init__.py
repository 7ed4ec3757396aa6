"""The embedded sample: 68 topics in three test sets, 2,500 training queries, planted leaks and the truth about them.

Written for this project; `scripts/make_sample.py` makes the files beside this module. Two of the test sets are
contaminated, nothing leaks into the third ("sample-heritage").
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from truerank.errors import InputError

_TESTS = ("sample-news", "sample-science", "sample-heritage")


@dataclass(frozen=True)
class Sample:
    """Where the files of the sample lie.

    Attributes:
        train: two query logs, `id TAB text`, compressed.
        tests: three topic files in the format of TREC.
        variants: the query variants, `topic TAB variant`, by test set.
        truth: the planted pairs, with test, topic_id, query_id, field, type and title_type.
        labels: judgments of a stratified sample of the pairs above a cosine of 0.8, in the layout of the leakage
            paper's annotations (doccano), with the fields `probability` and `annotator` added.
    """

    train: tuple[Path, ...]
    tests: tuple[Path, ...]
    variants: dict[str, Path]
    truth: Path
    labels: Path


def sample_folder() -> Path:
    """The folder that holds the files of the sample."""
    folder = resources.files(__name__)
    if not isinstance(folder, Path):
        raise InputError("the sample lies inside an archive", "install truerank with pip, which unpacks it")
    return folder


@cache
def _sample() -> Sample:
    folder = sample_folder()
    return Sample(
        train=(folder / "sample-clicks.tsv.gz", folder / "sample-questions.tsv.gz"),
        tests=tuple(folder / f"{test}.trec" for test in _TESTS),
        variants={test: folder / f"{test}.variants.tsv" for test in _TESTS},
        truth=folder / "truth.tsv",
        labels=folder / "labels.jsonl",
    )


SAMPLE: Sample


def __getattr__(name: str) -> Sample:
    """Finds the files when `SAMPLE` is first asked for, not on import."""
    if name == "SAMPLE":
        return _sample()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
