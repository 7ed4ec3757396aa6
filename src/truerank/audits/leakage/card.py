"""A statement about leakage that machines can read, and its Markdown for a model or data card."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from truerank.audits.leakage.calibration import Calibration, calibrate
from truerank.audits.leakage.exports import (
    Card,
    contamination_markdown,
    contaminations,
    contaminations_in,
    exported,
    worst,
)
from truerank.audits.leakage.options import CardTarget, Redaction, opened_labels
from truerank.audits.leakage.redaction import hash_text, open_key
from truerank.audits.leakage.results import AuditResult, columns_read, opened_audit
from truerank.audits.leakage.training_data.results import (
    CELLS,
    ExampleAudit,
    as_candidates,
    holds_examples,
    kind_named,
    opened_examples,
)
from truerank.core.cards import CardDate, card_head
from truerank.core.tables import Table, escape_markdown
from truerank.core.views import heads
from truerank.errors import OptionError
from truerank.loading import load_json
from truerank.options import Flag, Labels, command
from truerank.work.artifacts import hash_file, read_table, written_by

EXAMPLE_SCHEMA: Final = "truerank/leakage-examples-card/1"
_COUNTS: Final = ("leaked", "of", "share", "low", "high", "topics", "pairs", "examples")
_PAIRS: Final = ("kind", "topic_id", "doc_id", "source", "role", "example_id", "examples", "training_text", "evidence")


def example_statement(found: ExampleAudit, date: str | None, pairs: bool, key: bytes | None) -> dict[str, Any]:
    """The statement, as plain values; `examples_card.schema.json` describes it."""
    names = {name: name if key is None else hash_text(name, key) for name in found.sources}
    content = card_head(EXAMPLE_SCHEMA, date)
    (about,) = as_candidates(found).summary["tests"].values()
    content |= {
        "verdict": worst(one.verdict for one in found.kinds),
        "redacted": key is not None,
        "test": {name: found.test[name] for name in ("name", "topics", "documents", "relevant")},
        "sources": [
            {"name": names[name], **{part: source[part] for part in ("examples", "skipped", "roles")}}
            for name, source in found.sources.items()
        ],
        "rules": dict(found.rules),
        "kinds": [
            {
                "kind": one.kind,
                "title": kind_named(one.kind).phrase,
                "verdict": one.verdict,
                "why": _renamed(one.why, names),
                **{name: value for name, value in one.json().items() if name in _COUNTS},
            }
            for one in found.kinds
        ],
        "leaked_topics": about["leaked_topics"],
    }
    if pairs:
        rows = found.leaks.select(_PAIRS).iter_rows(named=True)
        content["pairs"] = [
            {**row, "source": names[row["source"]]}
            | ({} if key is None else {"training_text": hash_text(row["training_text"], key)})
            for row in rows
        ]
    if found.folder is not None and key is None:
        content["leaks"] = f"sha256:{hash_file(found.folder / 'leaks.parquet')}"
    return content


def _renamed(text: str, names: Mapping[str, str]) -> str:
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, names[name])
    return text


def example_markdown(content: Mapping[str, Any]) -> str:
    """A section for a README, as GitHub and Hugging Face show it."""
    test, kinds = content["test"], content["kinds"]
    sources = ", ".join(f"{escape_markdown(one['name'])} ({one['examples']:,d})" for one in content["sources"])
    documents = f" and {test['documents']:,d} documents" if test["documents"] else ""
    rows = [
        (one["title"], one["verdict"], *((one["leaked"], one["of"]) if one["of"] else (None, None)), one["share"])
        for one in kinds
    ]
    return _section(
        content,
        f"the examples of {sources} against {escape_markdown(test['name'])}, {test['topics']:,d} topics{documents}.",
        Table("", heads("kind_of_leak, verdict, leaking:,d, of:,d, share:.1%"), tuple(rows)),
        "\n".join(f"- **{one['kind']}**: {escape_markdown(one['why'])}" for one in kinds),
        _folded("Topics whose query leaks, alone or with its answer", content["leaked_topics"]),
        "CONTAMINATED: at least one query or document was found. CLEAN: everything was read, none was found, and "
        "planted changes of these texts were found at the rates that the audit gives. UNKNOWN: anything else.",
    )


def _section(content: Mapping[str, Any], checked: str, *parts: Table | str) -> str:
    """A section about leakage: what was checked, then tables and paragraphs; empty ones are left out."""
    date = f" on {content['date']}" if "date" in content else ""
    shown = (part.markdown().strip() if isinstance(part, Table) else part for part in parts)
    head = "## Train–test leakage", f"Checked with truerank {content['truerank']}{date}: {checked}"
    return "\n\n".join((*head, *filter(None, shown))) + "\n"


def _folded(heading: str, ids: Sequence[str]) -> str:
    """Topics that are shown at a click."""
    listed = ", ".join(map(escape_markdown, ids))
    return f"<details>\n<summary>{heading} ({len(ids)})</summary>\n\n{listed}\n\n</details>" if ids else ""


MATRIX_SCHEMA: Final = "truerank/leakage-matrix-card/1"
_FILE: Final = "matrix.parquet"
_COLUMNS: Final = ("training", "test", "part", "items", "leaking", "verdict")
_COUNTED: Final = {"query": "queries", "document": "documents", "pair": "pairs of query and answer"}


def holds_matrix(audit: object) -> bool:
    """Whether this is the folder of a matrix."""
    return isinstance(audit, str | Path) and (Path(audit) / _FILE).is_file()


def matrix_statement(folder: str | Path, date: str | None, key: bytes | None) -> dict[str, Any]:
    """The statement, as plain values; `matrix_card.schema.json` describes it."""
    path = Path(folder) / _FILE
    with written_by("leakage matrix", path.parent, path.name):
        frame = read_table(path, {name: CELLS[name] for name in _COLUMNS})
    names = {name: name if key is None else hash_text(name, key) for name in frame["training"].unique().to_list()}
    cells = [
        {
            "training": names[row["training"]],
            "test": row["test"],
            "kind": row["part"],
            "verdict": row["verdict"],
            "leaking": row["leaking"],
            "of": row["items"],
            "share": round(row["leaking"] / row["items"], 6) if row["items"] and row["leaking"] is not None else None,
        }
        for row in frame.iter_rows(named=True)
    ]
    return {
        **card_head(MATRIX_SCHEMA, date),
        "verdict": worst(cell["verdict"] for cell in cells),
        "redacted": key is not None,
        "training": list(dict.fromkeys(cell["training"] for cell in cells)),
        "tests": list(dict.fromkeys(cell["test"] for cell in cells)),
        "cells": cells,
        **({} if key is not None else {"matrix": f"sha256:{hash_file(path)}"}),
    }


def matrix_markdown(content: Mapping[str, Any]) -> str:
    """A section for a README, as GitHub and Hugging Face show it: a row for each cell that is not CLEAN."""
    rows = tuple(
        (
            cell["training"], cell["test"], _COUNTED.get(cell["kind"], cell["kind"]), cell["leaking"], cell["of"],
            None if cell["share"] is None else f"{cell['share']:.1%}", cell["verdict"],
        )
        for cell in content["cells"]
        if cell["verdict"] != "CLEAN"
    )  # fmt: skip
    training, tests = (
        f"{len(names):,d} {noun}{'s' if len(names) != 1 else ''} ({', '.join(map(escape_markdown, names))})"
        for names, noun in ((content["training"], "training set"), (content["tests"], "test set"))
    )
    clean = len(content["cells"]) - len(rows)
    columns = ("training data", "test set", "what leaks", "leaking", "of", "share", "verdict")
    return _section(
        content,
        f"{training} against {tests}. {clean:,d} of {len(content['cells']):,d} cells are CLEAN.",
        Table.of(rows, columns) if rows else "",
        "CONTAMINATED: at least one query, document or pair was found. CLEAN: everything was read, none was found, and "
        "planted changes of these texts were found at the rates that the matrix gives. UNKNOWN: anything else.",
    )


_SCHEMA: Final = "truerank/leakage-card/1"


@command
def card(
    audit: Annotated[AuditResult | ExampleAudit | str | Path, Flag(metavar="DIR", reads=str, positional=True)],
    *,
    date: CardDate = None,
    pairs: bool = False,
    redaction: Redaction = Redaction(),
    judged: Labels = Labels(),
    target: CardTarget = CardTarget(),
    calibration: Annotated[Calibration | None, Flag(hidden=True)] = None,
) -> Card:
    """Writes what an audit found as a statement for a data card, a model card, or a program.

    As text the statement is one JSON object, as Markdown a section of a README. For another place it has that place's
    form: a set of MTEB tasks or a patch, rows of the CONDA database, a card or a score of Hugging Face.

    Args:
        audit: the folder that `leakage audit`, `leakage examples` or `leakage matrix` wrote. In Python also an audit.
        date: the date in the statement; by default none, so that the same audit gives the same bytes.
        pairs: state every pair above the threshold, too; the pairs of a matrix are in its `pairs.parquet`.
        redaction: keyed hashes in place of the names and content hashes of training sources and the texts of pairs.
        judged: judged pairs; the statement says how they calibrate the threshold.
        target: the place, and what names mean there.
        calibration: of the threshold, in place of labels.

    Returns:
        The statement.

    Raises:
        InputError: no audit there, the date is none, or the place does not know a name.

    Examples:

        truerank leakage card audit/ --format markdown

        truerank leakage card audit/ --pairs --redact

        truerank leakage card audit/ --for mteb --called scifact=SciFact --model org/model --into org_models.py

        truerank leakage card audit/ --for conda --called scifact=BeIR/scifact --called log=org/log

        truerank leakage card audit/ --for model-card --into README.md

        truerank leakage card audit/ --for eval-results --effect effect.json --called scifact=org/benchmark:scifact
    """
    redact_key = open_key(redaction.redact_key) if redaction.redact else None
    judgments = opened_labels(judged)
    if calibration is None and judgments is not None:
        calibration = calibrate(judgments)
    of_examples, of_matrix = holds_examples(audit), holds_matrix(audit)
    if (of_examples or of_matrix) and calibration is not None:
        fault = (
            f"the pairs of {'a matrix' if of_matrix else 'an audit of whole examples'} have no threshold to calibrate"
        )
        raise OptionError("labels", fault, "leave the labels out")
    if of_matrix and pairs:
        raise OptionError("pairs", "the statement of a matrix has counts alone", "leave it out, and read pairs.parquet")
    if target.for_ == "statement":
        if of_matrix:
            return Card(matrix_statement(str(audit), date, redact_key))
        if of_examples:
            return Card(example_statement(opened_examples(audit), date, pairs, redact_key))
        return Card(_statement(opened_audit(audit), date, pairs, calibration, redact_key))
    if redact_key is not None:
        raise OptionError("redact", "names are what this place asks for", "leave it out, or state it with `for` alone")
    checked = card_head(_SCHEMA, date).get("date")
    others = None if isinstance(audit, AuditResult) else contaminations_in(audit)

    def section() -> str:
        if of_examples:
            return example_markdown(example_statement(opened_examples(audit), checked, False, None))
        if others is not None:
            return contamination_markdown(others)
        return query_markdown(_statement(opened_audit(audit), date, pairs, calibration, None))

    return exported(tuple(contaminations(opened_audit(audit))) if others is None else others, target, section, checked)


def card_schema(of: Literal["queries", "examples", "matrix"] = "queries") -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the statement, for an audit of queries, of whole examples, or a matrix."""
    name = "card.schema.json" if of == "queries" else f"{of}_card.schema.json"
    text = resources.files("truerank.audits.leakage").joinpath(name).read_text(encoding="utf-8")
    schema: dict[str, Any] = load_json(text, name)
    return schema


def _statement(
    result: AuditResult, date: str | None, pairs: bool, calibration: Calibration | None, redact_key: bytes | None
) -> dict[str, Any]:
    found = result.summary
    content = {
        **card_head(_SCHEMA, date),
        "verdict": worst(test["verdict"] for test in found["tests"].values()),
        "encoder": found["encoder"],
        "threshold": found["threshold"],
        "calibration": _calibration(result, calibration),
        "mode": found["mode"],
        "redacted": redact_key is not None,
        "sources": [
            {"name": name, **{key: count for key, count in counts.items() if key != "fingerprint"}}
            | ({"hash": counts["fingerprint"]} if "fingerprint" in counts else {})
            for name, counts in found["sources"].items()
        ],
        "tests": list(_tests(result, pairs)),
    }
    if result.folder is not None and redact_key is None:
        content["candidates"] = f"sha256:{hash_file(result.folder / 'candidates.parquet')}"
    return content if redact_key is None else _redacted(content, redact_key)


def _calibration(result: AuditResult, calibration: Calibration | None) -> dict[str, Any]:
    summary = result.summary
    state: dict[str, Any] = {"calibrated": summary["calibrated"], "for": summary["calibrated_for"]}
    if calibration is None:
        return state
    if calibration.chosen is not None and calibration.encoder == summary["encoder"]:
        state = {"calibrated": calibration.chosen <= summary["threshold"], "for": calibration.encoder}
    return state | {
        "chosen": calibration.chosen,
        "rule": calibration.settings["rule"],
        "estimate": calibration.estimate,
        "interval": list(calibration.interval),
        "min_precision": calibration.settings["min_precision"],
        "pairs": calibration.counts["pairs"],
    }


def _tests(result: AuditResult, pairs: bool) -> Iterator[dict[str, Any]]:
    above = result.above()
    for name, test in result.summary["tests"].items():
        found = above.filter(test=name)
        union = list(test["fields"].get("union", {}).values())
        statement: dict[str, Any] = {
            "name": name,
            "verdict": test["verdict"],
            "why": test["why"],
            "topics": test["topics"],
            "leaked_topics": test["leaked_topics"],
            "leaking_queries": union[-1]["queries"] if union else 0,
            "below": {name: test["below"][name] for name in ("topics", "queries", "pairs")},
        }
        if pairs:
            columns = ("topic_id", "field", "source", "query_id", "query_text", "similarity", "type")
            statement["pairs"] = [
                {**row, "similarity": round(row["similarity"], 6)}
                for row in found.select(columns).iter_rows(named=True)
            ]
        yield statement


def _redacted(content: dict[str, Any], key: bytes) -> dict[str, Any]:
    """Source names and pair texts as keyed hashes; hashes of contents would let guesses of whole files be checked."""
    names = {source["name"]: hash_text(source["name"], key) for source in content["sources"]}
    sources = [
        {**{k: v for k, v in source.items() if k != "hash"}, "name": names[source["name"]]}
        for source in content["sources"]
    ]
    tests = []
    for test in content["tests"]:
        test = {**test, "why": _renamed(test["why"], names)}
        if "pairs" in test:
            test["pairs"] = [
                {**pair, "source": names[pair["source"]], "query_text": hash_text(pair["query_text"], key)}
                for pair in test["pairs"]
            ]
        tests.append(test)
    return {**content, "sources": sources, "tests": tests}


def query_markdown(content: Mapping[str, Any]) -> str:
    """A section for a README, as GitHub and Hugging Face show it."""
    calibration, sources, tests = (content[name] for name in ("calibration", "sources", "tests"))
    known = f"calibrated for {escape_markdown(calibration['for'])}"
    if not calibration["calibrated"]:
        known = f"not calibrated for this encoder (but for {escape_markdown(calibration['for'])})"
    names = {test["name"]: escape_markdown(test["name"]) for test in tests}
    return _section(
        content,
        f"cosine similarity above {content['threshold']:g} under {escape_markdown(content['encoder'])}; the threshold "
        f"is {known}.",
        Table(
            "",
            heads("test_set, verdict, topics:,d, leaked_topics:,d, leaking_queries:,d, pairs_below:,d"),
            tuple(
                (
                    test["name"], test["verdict"], test["topics"], len(test["leaked_topics"]),
                    test["leaking_queries"], test["below"]["pairs"],
                )
                for test in tests
            ),
        ),
        *(f"**{names[test['name']]}**: {escape_markdown(test['why'])}" for test in tests),
        Table(
            "Training queries compared",
            heads("source, read:,d, distinct:,d, skipped:,d, content"),
            tuple(
                (one["name"], one["read"], one["distinct"], one["skipped"], (one.get("hash") or "")[:19])
                for one in sources
            ),
        ),
        *(escape_markdown(line) for line in columns_read({one["name"]: one for one in sources})),
        *(_folded(f"Leaked topics of {names[test['name']]}", test["leaked_topics"]) for test in tests),
        "CONTAMINATED: at least one training query is a candidate leak above the threshold (where pairs were judged: "
        "a confirmed one). CLEAN: everything was read, no evidence (encoder, same content words, nearly the same "
        "letters) found a pair that was not judged away, and planted rewordings of the topics were found at the rates "
        "given. UNKNOWN: anything else.",
    )  # fmt: skip


def card_markdown(result: Card) -> str:
    """The statement as a section of a README."""
    forms = {EXAMPLE_SCHEMA: example_markdown, MATRIX_SCHEMA: matrix_markdown}
    return forms.get(result.content["schema"], query_markdown)(result.content)
