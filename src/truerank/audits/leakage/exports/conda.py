"""The CONDA contamination database: rows of its table, and the text of its pull requests.

Source: Sainz et al., Data Contamination Report from the 2024 CONDA Shared Task, and the contribution guidelines of the
database (huggingface.co/spaces/CONDA-Workshop/Data-Contamination-Database).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from truerank.audits.leakage.exports.contamination import Contamination
from truerank.sources.grammar import parse
from truerank.version import __version__

#: The columns of `contamination_report.csv`, which are separated by semicolons.
CONDA_HEADER: Final = (
    "Evaluation Dataset", "Subset", "Contaminated Source", "Model or corpus", "Train Split", "Development Split",
    "Test Split", "Approach", "Reference", "PR",
)  # fmt: skip
_SPLITS: Final[Mapping[str, int]] = {"train": 0, "training": 0, "dev": 1, "validation": 1, "valid": 1, "val": 1}


class CondaRow(NamedTuple):
    """One row of the table; a split that was not looked at is empty."""

    evaluation_dataset: str
    subset: str
    contaminated_source: str
    model_or_corpus: str
    train_split: str
    development_split: str
    test_split: str
    approach: str
    reference: str
    pr: str = ""


def conda_rows(
    found: Iterable[Contamination], names: Mapping[str, str], *, model: str = "", reference: str = ""
) -> tuple[CondaRow, ...]:
    """One row for each test set and training source that leaks into it, and one with 0 where the verdict is CLEAN.

    A source without a leak to a test set that is not CLEAN has no row: nobody knows that nothing leaks. A model has one
    row for each test set, with the largest share of its sources: what they leak together is not counted.
    """
    rows: dict[tuple[str, ...], CondaRow] = {}
    shares: dict[tuple[str, ...], float] = {}
    for one in found:
        if not one.most.leaked and one.verdict != "CLEAN":
            continue
        test, subset, place = _dataset(one.test, one.test_source, names)
        train = _dataset(one.train, one.train_source, names)[0]
        share = f"{one.most.percent:.2f}"
        before, between, last = (share if at == place else "" for at in range(3))
        for source, kind in ((train, "corpus"), (model, "model")):
            key = (test, subset, source, kind, str(place))
            if source and one.most.percent >= shares.get(key, 0.0):
                shares[key] = one.most.percent
                rows[key] = CondaRow(test, subset, source, kind, before, between, last, "data-based", reference)
    return tuple(rows.values())


def conda_csv(rows: Iterable[CondaRow]) -> str:
    """The rows as they are appended to `contamination_report.csv`, without its header."""
    stream = io.StringIO()
    csv.writer(stream, delimiter=";", lineterminator="\n").writerows(rows)
    return stream.getvalue()


def conda_request(found: Iterable[Contamination], rows: Iterable[CondaRow]) -> str:
    """The description of a pull request to the database, with the sections that its template asks for."""
    every = list(rows)
    leaking = [row for row in every if any(share and float(share) for share in row[4:7])]

    def marked(kind: str) -> str:
        return "x" if any(row.model_or_corpus == kind for row in leaking) else " "

    def listed(values: Iterable[str]) -> str:
        return ", ".join(dict.fromkeys(f"`{value}`" for value in values)) or "none"

    corpora = [row.contaminated_source for row in leaking if row.model_or_corpus == "corpus"]
    models = [row.contaminated_source for row in leaking if row.model_or_corpus == "model"]
    shares = [(row, name, value) for row in every for name, value in zip(_NAMES, row[4:7], strict=True) if value]
    parts = [
        "## What are you reporting:",
        f"- [{marked('corpus')}] Evaluation dataset(s) found in a pre-training corpus.\n"
        f"- [{marked('model')}] Evaluation dataset(s) found in a pre-trained model.",
        f"**Evaluation dataset(s)**: {listed(row.evaluation_dataset for row in every)}",
        f"**Contaminated model(s)**: {listed(models)}",
        f"**Contaminated corpora**: {listed(corpora)}",
        "**Contaminated split(s)**:\n\n"
        + "\n".join(
            f"- {name} of `{row.evaluation_dataset}` in `{row.contaminated_source}`: {value}%"
            for row, name, value in shares
        ),
        "## Briefly describe your method to detect data contamination",
        f"- [x] Data-based approach\n- [ ] Model-based approach\n\nThe training data were compared with the "
        f"test sets by truerank {__version__}:",
        "\n".join(f"- {one.test}: {one.sentence()} (verdict on the test set: {one.verdict})" for one in found),
        "## Citation",
        f"URL: {next((row.reference for row in every if row.reference), '')}".rstrip(),
    ]
    return "\n\n".join(parts) + "\n"


_NAMES: Final = ("train split", "development split", "test split")


def _dataset(name: str, source: str, names: Mapping[str, str]) -> tuple[str, str, int]:
    """What a data set is called in the database, its subset, and the place of its split (2: test)."""
    if name in names:
        spec = parse(f"hf:{names[name]}") if names[name].count("/") == 1 else None
        if spec is None:
            return names[name], "", 2
        return spec.location, spec.config or "", _SPLITS.get(spec.split or "", 2)
    spec = parse(source) if source.startswith(("hf:", "irds:")) else None
    if spec is None:
        return name, "", 2
    if spec.scheme == "hf":
        return spec.location, spec.config or "", _SPLITS.get(spec.split or "", 2)
    return spec.location, "", _SPLITS.get(spec.location.rpartition("/")[2], 2)
