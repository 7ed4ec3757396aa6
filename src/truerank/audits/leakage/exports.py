"""What an audit found (who leaks into which test set, how much, by what evidence) in the forms of other places:
MTEB, the CONDA database, Hugging Face.
"""

from __future__ import annotations

import ast
import csv
import difflib
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.audits.leakage.options import CardTarget
from truerank.audits.leakage.results import AuditResult, held_for_leaks
from truerank.audits.leakage.training_data.results import ExampleAudit
from truerank.core.cards import CardKind, CardStatement, card_with
from truerank.core.result import Result
from truerank.core.tables import Table
from truerank.errors import InputError, OptionError
from truerank.loading import json_file, text_file
from truerank.sources.grammar import parse
from truerank.text.normalising import normalise
from truerank.version import __version__
from truerank.work.artifacts import written_by

_QUERIES: Final = ("queries", "topics", "pairs of query and answer")
#: What is said of pairs below the threshold whose topic leaks by labels.
_BY_LABELS: Final = ", or the same words or nearly the same letters where labels say that the query leaks"
#: What the parts of a matrix are called.
_NOUNS: Final = {"query": "queries", "document": "documents", "pair": "pairs of query and answer"}


class LeakCount(NamedTuple):
    """How much of a test set is in a training source, for one kind of leak.

    `kind` names both sides ("query in training query"); `leaked` of `items` items of the test set leak, which are
    called `noun`; `training` distinct texts of the source leak them; `evidence` says what counts as a leak.
    """

    kind: str
    leaked: int
    items: int
    noun: str
    training: int
    evidence: str

    @property
    def percent(self) -> float:
        """The share of the test set that leaks, in percent."""
        return 100 * self.leaked / self.items if self.items else 0.0

    @property
    def of_queries(self) -> bool:
        """Whether the items are queries of the test set, and not its documents."""
        return self.noun in _QUERIES


@dataclass(frozen=True)
class Contamination:
    """One training source and one test set, with counts by kind of leak (kinds without a leak included).

    Sources are as a manifest names them, empty where unknown; the verdict is on the test set, with all its training
    sources; `parts` are the training sources where several count as one.
    """

    train: str
    train_source: str
    test: str
    test_source: str
    verdict: str
    counts: tuple[LeakCount, ...]
    parts: tuple[str, ...] = ()

    @property
    def trains(self) -> tuple[str, ...]:
        """The names of the training sources, where several count as one."""
        return self.parts or (self.train,)

    @property
    def most(self) -> LeakCount:
        """The kind of leak that concerns the largest share of the queries; of documents where no query was compared."""
        queries = [one for one in self.counts if one.of_queries]
        return max(queries or self.counts, key=lambda one: one.percent)

    def sentence(self) -> str:
        """The counts in words."""
        parts = [
            f"{one.leaked:,d} of {one.items:,d} {one.noun} ({one.percent:.1f}%) in {self.train}: {one.kind}, "
            f"{one.evidence}"
            for one in self.counts
            if one.leaked or len(self.counts) == 1
        ]
        return "; ".join(parts) or f"nothing found in {self.train}"


def contaminations_in(found: ExampleAudit | str | Path) -> tuple[Contamination, ...] | None:
    """What `leakage matrix` or `leakage examples` found, by the files they wrote; None for the folder of another audit.

    Of examples, several training sources count as one: their leaks were counted together.
    """
    if isinstance(found, ExampleAudit):
        return (_of_kinds(found.json(), found.folder),)
    folder = Path(found)
    if (folder / "matrix.parquet").is_file():
        with written_by("leakage matrix", folder, "matrix.parquet"):
            return tuple(_of_cells(pl.read_parquet(folder / "matrix.parquet", glob=False)))
    if (folder / "leaks.parquet").is_file():
        with written_by("leakage examples", folder, "summary.json", "leaks.parquet"):
            return (_of_kinds(json_file(folder / "summary.json"), folder),)
    return None


def contamination_markdown(found: Iterable[Contamination]) -> str:
    """A section for a README: a row for each training source, test set and kind of leak."""
    rows = tuple(
        (one.train, one.test, count.kind, count.leaked, count.items, f"{count.percent:.1f}%", one.verdict)
        for one in found
        for count in one.counts
    )
    columns = ("training data", "test set", "kind of leak", "leaking", "of", "share", "verdict")
    return f"## Train–test leakage\n\nChecked with truerank {__version__}.\n\n{Table.of(rows, columns).markdown()}"


def _of_cells(cells: pl.DataFrame) -> Iterator[Contamination]:
    for (train, test), rows in cells.group_by("training", "test", maintain_order=True):
        every = rows.to_dicts()
        yield Contamination(
            train=str(train),
            train_source="",
            test=str(test),
            test_source="",
            verdict=worst(row["verdict"] for row in every),
            counts=tuple(
                LeakCount(
                    f"{row['part']} in the training data", row["leaking"] or 0, row["items"], _NOUNS[row["part"]],
                    row["pairs"] or 0, "exact, n-grams, near-duplicates or similarity",
                )
                for row in every
            ),
        )  # fmt: skip


def _of_kinds(summary: Mapping[str, Any], folder: Path | None) -> Contamination:
    places = _placed(folder)
    kinds, test = summary["kinds"], summary["test"]["name"]
    sources = list(summary["sources"])
    return Contamination(
        train=", ".join(sources),
        train_source=places.get(("train", sources[0]), "") if len(sources) == 1 else "",
        test=test,
        test_source=places.get(("test", test), ""),
        verdict=worst(kind["verdict"] for kind in kinds.values()),
        counts=tuple(
            LeakCount(
                name, kind["leaked"], kind["of"], "queries" if name.startswith(("query", "pair")) else "documents",
                kind["examples"], "exact, n-grams, near-duplicates or similarity",
            )
            for name, kind in kinds.items()
            if kind["of"] or not any(one["of"] for one in kinds.values())  # others were not looked for
        ),
        parts=tuple(sources),
    )  # fmt: skip


def worst(verdicts: Iterable[str]) -> str:
    """The verdict of several parts together: CONTAMINATED before UNKNOWN before CLEAN; of none UNKNOWN."""
    every = set(verdicts)
    return next((word for word in AuditResult.verdict_words if word in every), "UNKNOWN")


def contaminations(audit: AuditResult) -> Iterator[Contamination]:
    """Each training source with each test set, in the order of the audit; pairs without a leak included.

    A topic counts where the audit says that it leaks; where labels say so of a pair below the threshold, its source is
    that of the pairs with the same words or nearly the same letters.
    """
    places = _placed(audit.folder)
    threshold = audit.summary["threshold"]
    above = audit.above()
    for test, about in audit.summary["tests"].items():
        leaked = audit.candidates.filter(pl.col("test") == test, pl.col("topic_id").is_in(about["leaked_topics"]))
        sure = above.filter(test=test)["topic_id"].unique().implode()
        similar = held_for_leaks(threshold)
        rows = leaked.filter(similar | ((pl.col("evidence") != "") & ~pl.col("topic_id").is_in(sure)))
        for train in audit.summary["sources"]:
            own = rows.filter(source=train)
            yield Contamination(
                train=train,
                train_source=places.get(("train", train), ""),
                test=test,
                test_source=places.get(("test", test), ""),
                verdict=about["verdict"],
                counts=(
                    LeakCount(
                        kind="query in training query",
                        leaked=own["topic_id"].n_unique(),
                        items=about["topics"],
                        noun=about.get("noun", "topics"),
                        training=len({normalise(text) for text in own["query_text"]}),
                        evidence=f"cosine similarity above {threshold:g} under {audit.summary['encoder']}"
                        + ("" if own.filter(~similar).is_empty() else _BY_LABELS),
                    ),
                ),
            )


def _placed(folder: Path | None) -> dict[tuple[str, str], str]:
    """The sources by role and name, from the manifest beside an audit."""
    path = None if folder is None else folder / "manifest.json"
    if path is None or not path.is_file():
        return {}
    inputs = json_file(path, "run the audit again").get("inputs", [])
    return {(one["role"], one["name"]): one["source"] for one in inputs}


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


def conda_request(found: Iterable[Contamination], rows: Iterable[CondaRow]) -> str:
    """The description of a pull request to the database, with the sections that its template asks for."""
    every = list(rows)
    leaking = [row for row in every if any(share and float(share) for share in row[4:7])]

    def listed(values: Iterable[str]) -> str:
        return ", ".join(dict.fromkeys(f"`{value}`" for value in values)) or "none"

    corpora, models = (
        [row.contaminated_source for row in leaking if row.model_or_corpus == kind] for kind in ("corpus", "model")
    )
    splits = ("train split", "development split", "test split")
    shares = [(row, name, value) for row in every for name, value in zip(splits, row[4:7], strict=True) if value]
    parts = [
        "## What are you reporting:",
        f"- [{'x' if corpora else ' '}] Evaluation dataset(s) found in a pre-training corpus.\n"
        f"- [{'x' if models else ' '}] Evaluation dataset(s) found in a pre-trained model.",
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


def _dataset(name: str, source: str, names: Mapping[str, str]) -> tuple[str, str, int]:
    """What a data set is called in the database, its subset, and the place of its split (2: test)."""
    if name in names:
        source, name = f"hf:{names[name]}" if names[name].count("/") == 1 else "", names[name]
    if not source.startswith(("hf:", "irds:")):
        return name, "", 2
    spec = parse(source)
    split = spec.split or "" if spec.scheme == "hf" else spec.location.rpartition("/")[2]
    return spec.location, spec.config or "", _SPLITS.get(split, 2)


def eval_results(
    effect: Mapping[str, Any],
    names: Mapping[str, str],
    *,
    run: str | None = None,
    found: Iterable[Contamination] = (),
    reference: str = "",
    date: str | None = None,
) -> list[dict[str, Any]]:
    """The score of one run on the clean topics by the first measure of the effect, as in `.eval_results/*.yaml`."""
    rows = effect["runs"]
    known = list(dict.fromkeys(row["run"] for row in rows))
    chosen = run if run is not None else known[0] if len(known) == 1 else None
    if chosen not in known:
        fault = f"no run '{run}' in the effect" if run is not None else "the effect has several runs"
        raise OptionError("model", fault, f"choose one of {', '.join(known)}")
    test = effect["settings"]["test"]
    if test not in names:
        raise OptionError("called", f"the benchmark of '{test}' is not named", f"write {test}=ORG/NAME:TASK")
    spec = parse(f"hf:{names[test]}")
    sources = ", ".join(names.get(one.train, one.train) for one in found if one.test == test and one.most.leaked)
    row = next(row for row in rows if row["run"] == chosen)
    clean, every = row["clean"], row["all"]
    if not clean["n"] or clean["mean"] is None:
        raise InputError("no topic is clean", "there is no score to state", where=f"effect on {chosen}")
    dataset = {"id": spec.location, "task_id": spec.split or "default"}
    entry: dict[str, Any] = {"dataset": dataset | ({"revision": spec.revision} if spec.revision else {})}
    entry["value"] = round(clean["mean"], 6)
    entry |= {} if date is None else {"date": date}
    entry |= {"source": {"url": reference, "name": "truerank leakage audit"}} if reference else {}
    entry["notes"] = (
        f"{row['measure']} on {clean['n']} of {every['n']} topics, without those that leak"
        + (f" from {sources}" if sources else "")
        + f"; on all topics {every['mean']:.4f} (truerank {__version__})"
    )
    return [entry]


_COMMENT: Final = re.compile(r"#[^\n]*")
_LONGEST: Final = 110


class TaskEntry(NamedTuple):
    """One name of `training_datasets`.

    `because` is "leak", "similar" or "parent"; `evidence` is one sentence.
    """

    name: str
    because: str
    evidence: str


def task_entries(
    found: Iterable[Contamination], names: Mapping[str, str], *, model: str | None = None
) -> tuple[TaskEntry, ...]:
    """The tasks whose queries leak, tasks that are similar to them, and what the model's parents have seen."""
    mteb = _mteb()
    entries: dict[str, TaskEntry] = {}
    for one in found:
        if any(count.leaked for count in one.counts if count.of_queries):
            name = _task(one, names, mteb)
            known = entries.get(name)
            text = one.sentence() if known is None else f"{known.evidence}; {one.sentence()}"
            entries[name] = TaskEntry(name, "leak", text)
    if mteb is None:
        return tuple(entries.values())
    from mteb.models.model_meta import ModelMeta

    for name in list(entries):
        # What mteb counts as seen with this one: its own rule, by a model that has seen nothing else.
        similar = set(ModelMeta.create_empty({"training_datasets": {name}}).get_training_datasets())
        for other in sorted(similar - entries.keys()):
            entries[other] = TaskEntry(other, "similar", f"similar to {name} in mteb")
    for parent, seen in _parents(model, mteb):
        for other in sorted(seen - entries.keys()):
            entries[other] = TaskEntry(other, "parent", f"in the training data of {parent}")
    return tuple(entries.values())


def statistics(found: Iterable[Contamination], names: Mapping[str, str]) -> dict[str, dict[str, dict[str, int]]]:
    """Fields of the descriptive statistics of each task: its queries, and those that are in the training data.

    `num_queries` is a field of retrieval tasks in `mteb`. `samples_in_train` is one of tasks with a train split, and
    counts what is in that split: state it only where that split was audited.
    """
    mteb = _mteb()
    fields: dict[str, dict[str, dict[str, int]]] = {}
    for one in found:
        name = _task(one, names, mteb)
        for count in one.counts:
            if count.of_queries:
                task = fields.setdefault(name, {"test": {"num_queries": 0, "samples_in_train": 0}})["test"]
                task["num_queries"] = max(task["num_queries"], count.items)
                task["samples_in_train"] = max(task["samples_in_train"], count.leaked)
    return fields


def python_entries(entries: Iterable[TaskEntry], indent: int = 4) -> str:
    """The names as lines of a set in Python, each with its evidence as a comment."""
    return "".join(f'{" " * indent}"{one.name}",  # {_short(one.evidence)}\n' for one in entries)


def meta_patch(text: str, path: str, model: str, entries: Sequence[TaskEntry]) -> str:
    """A unified diff that adds names to the `training_datasets` of a model.

    Parents are left out: `mteb` follows `adapted_from` itself. So are names that are in the set already.
    """
    value = _training_datasets(text, path, model)
    known = {one.value for one in value.elts if isinstance(one, ast.Constant)} if isinstance(value, ast.Set) else set()
    new = [one for one in entries if one.because != "parent" and one.name not in known]
    if not new:
        return ""
    lines = text.splitlines(keepends=True)
    begin, end = (
        _offset(lines, line, column)
        for line, column in ((value.lineno, value.col_offset), (value.end_lineno or 0, value.end_col_offset or 0))
    )
    first = lines[value.lineno - 1]
    indent = len(first) - len(first.lstrip())
    changed = f"{text[:begin]}{_united(value, text[begin:end], new, indent)}{text[end:]}"
    diff = difflib.unified_diff(
        lines, changed.splitlines(keepends=True), f"a/{path.lstrip('/')}", f"b/{path.lstrip('/')}"
    )
    # A last line without an end is told as `diff` tells it.
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in diff)


def _united(value: ast.expr, written: str, new: Sequence[TaskEntry], indent: int) -> str:
    """An expression for the set with the new names in it."""
    rows = python_entries(new, indent + 4)
    none = isinstance(value, ast.Constant) and value.value is None
    empty = isinstance(value, ast.Call) and not value.args and getattr(value.func, "id", "") == "set"
    if none or empty:
        return f"{{\n{rows}{' ' * indent}}}"
    if isinstance(value, ast.Set):
        body = written[1:-1]
        if not body.strip("\n ").endswith("\n") and "\n" not in body:
            body = f"\n{' ' * (indent + 4)}{body.strip().rstrip(',')},\n"
        elif "," not in _COMMENT.sub("", written[_end_of_last(written, value) :]):
            at = _end_of_last(written, value) - 1
            body = f"{body[:at]},{body[at:]}"
        return f"{{{body.rstrip()}\n{rows}{' ' * indent}}}"
    plain = isinstance(value, ast.Name | ast.Attribute | ast.Call)
    joined = isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr)
    left = written if plain or joined else f"({written})"
    return f"{left}\n{' ' * indent}| {{\n{rows}{' ' * indent}}}"


def _end_of_last(written: str, value: ast.Set) -> int:
    """Where the last element ends in the text of the set."""
    last = value.elts[-1]
    lines = written.splitlines(keepends=True)
    row = (last.end_lineno or 0) - value.lineno + 1
    column = (last.end_col_offset or 0) - (value.col_offset if row == 1 else 0)
    return _offset(lines, row, column)


def _offset(lines: Sequence[str], line: int, column: int) -> int:
    """The place in the text of a line and a column in bytes, as `ast` counts them."""
    inside = lines[line - 1].encode()[:column].decode()
    return sum(map(len, lines[: line - 1])) + len(inside)


def _training_datasets(text: str, path: str, model: str) -> ast.expr:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise InputError(f"no Python ({error})", "give the file with the model's ModelMeta", where=path) from error
    models = []
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        named = {word.arg: word.value for word in call.keywords}
        if getattr(call.func, "id", getattr(call.func, "attr", "")) != "ModelMeta":
            continue
        name = named.get("name")
        if isinstance(name, ast.Constant):
            models.append(str(name.value))
            if name.value == model:
                if "training_datasets" in named:
                    return named["training_datasets"]
                raise InputError(f"'{model}' has no training_datasets", "add the line to the file", where=path)
    near = difflib.get_close_matches(model, models, n=3) or models[:6]
    raise InputError(f"no model '{model}' here", f"there are {', '.join(near) or 'none'}", where=path)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _mteb() -> Any:
    if find_spec("mteb") is None:
        return None
    import mteb

    return mteb


def _task(one: Contamination, names: Mapping[str, str], mteb: Any) -> str:
    """The name of the task of a test set."""
    given = names.get(one.test)
    if mteb is None:
        if given is None:
            remedy = f"write {one.test}=TASK, or install mteb, which knows the names"
            raise OptionError("called", f"the MTEB task of '{one.test}' is not named", remedy)
        return given
    from mteb.get_tasks import _TASKS_REGISTRY as TASKS

    if given is not None and given in TASKS:
        return given
    if given is not None:
        near = difflib.get_close_matches(given, TASKS, n=3)
        remedy = f"did you mean {' or '.join(near)}?" if near else "see mteb.get_tasks()"
        raise OptionError("called", f"mteb has no task '{given}'", remedy)

    words = {part.lower() for part in re.split(r"[/:]", one.test)} | {one.test.lower()}
    paths = [name for name, task in TASKS.items() if one.test.split(":")[0] == task.metadata.dataset.get("path")]
    found: list[str] = paths if len(paths) == 1 else [name for name in TASKS if name.lower() in words]
    if len(found) != 1:
        fault = f"the MTEB task of '{one.test}' is not known" + (f" ({', '.join(found[:5])}?)" if found else "")
        raise OptionError("called", fault, f"write {one.test}=TASK")
    return found[0]


def _parents(model: str | None, mteb: Any) -> Iterable[tuple[str, set[str]]]:
    if model is None:
        return
    try:
        parent = mteb.get_model_meta(model, fetch_from_hf=False).adapted_from
        seen = None if parent is None else mteb.get_model_meta(parent, fetch_from_hf=False).get_training_datasets()
    except (KeyError, ValueError):  # a model that mteb does not know yet
        return
    if parent is not None and seen:
        yield parent, set(seen)


_SCHEMA: Final = "truerank/leakage-export/1"


@dataclass(frozen=True, eq=False, repr=False)
class Card(Result, shown_in="truerank.audits.leakage.summaries"):
    """The statement.

    Attributes:
        content: what `card_schema` describes, or what another place is given.
        text: what is printed for another place; empty for the statement itself.
        markdown: likewise, as Markdown.
    """

    content: dict[str, Any]
    text: str = ""
    markdown: str = ""

    def json(self) -> dict[str, Any]:
        """The statement as plain values."""
        return self.content


def exported(found: Sequence[Contamination], target: CardTarget, section: Callable[[], str], date: str | None) -> Card:
    """What an audit found, in the form of a place other than truerank's own."""
    unknown = target.called.keys() - {name for one in found for name in (one.train, one.test)}
    if unknown:
        known = ", ".join(dict.fromkeys(name for one in found for name in (one.test, one.train)))
        raise OptionError("called", f"the audit has no '{min(unknown)}'", f"there are {known}")
    if target.for_ == "mteb":
        made = _for_mteb(found, target)
    elif target.for_ == "conda":
        rows = conda_rows(found, target.called, model=target.model or "", reference=target.reference or "")
        content = {"columns": list(CONDA_HEADER), "rows": [list(row) for row in rows]}
        stream = io.StringIO()
        csv.writer(stream, delimiter=";", lineterminator="\n").writerows(rows)
        made = Card(content, stream.getvalue(), conda_request(found, rows))
    elif target.for_ == "eval-results":
        made = _score(found, target, date)
    else:
        readme = "" if target.into is None else text_file(target.into)
        kind: CardKind = "dataset-card" if target.for_ == "dataset-card" else "model-card"
        figures = [
            {
                "train": target.called.get(one.train, one.train),
                "test": target.called.get(one.test, one.test),
                "verdict": one.verdict,
                **{count.kind.replace(" ", "_"): f"{count.leaked}/{count.items}" for count in one.counts},
            }
            for one in found
        ]
        verdict = worst(one.verdict for one in found)
        card = card_with(kind, readme, CardStatement("train-test-leakage", verdict, section(), figures))
        made = Card({"card": card}, card, card)
    return Card({"schema": _SCHEMA, "for": target.for_, **made.content}, made.text, made.markdown)


def _for_mteb(found: Sequence[Contamination], target: CardTarget) -> Card:
    entries = task_entries(found, target.called, model=target.model)
    content: dict[str, Any] = {
        "model": target.model,
        "training_datasets": sorted(entry.name for entry in entries),
        "entries": [entry._asdict() for entry in entries],
        "statistics": statistics(found, target.called),
    }
    text = f"training_datasets={{\n{python_entries(entries)}}},\n" if entries else "training_datasets=set(),\n"
    if target.into is not None:
        # A patch names files relative to the folder in which the command runs, where they lie below.
        place, here = Path(target.into).absolute(), Path.cwd()
        place = place.relative_to(here) if place.is_relative_to(here) else place
        text = meta_patch(text_file(target.into), place.as_posix(), str(target.model), entries)
        content["patch"] = text
    listed = "".join(f"- `{entry.name}`: {entry.evidence}\n" for entry in entries)
    return Card(content, text, f"```{'diff' if target.into else 'python'}\n{text}```\n\n{listed}")


def _score(found: Sequence[Contamination], target: CardTarget, date: str | None) -> Card:
    import yaml

    effect = json_file(str(target.effect), "give what `leakage effect --json` printed")
    try:
        entries = eval_results(
            effect, target.called, run=target.model, found=found, reference=target.reference or "", date=date
        )
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        fault = f"no scores on leaked and clean topics in {target.effect}"
        raise OptionError("effect", fault, "give what `leakage effect --json` printed") from error
    text = yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=1_000)
    return Card({"entries": entries}, text, f"```yaml\n{text}```\n")
