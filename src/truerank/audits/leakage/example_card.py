"""A statement about leaks of whole training examples that machines can read, and its Markdown for a README."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import polars as pl

from truerank.audits.leakage.exports.contamination import worst
from truerank.audits.leakage.redaction import hash_text
from truerank.audits.leakage.training_examples.candidates import as_candidates
from truerank.audits.leakage.training_examples.kinds import kind_named
from truerank.audits.leakage.training_examples.results import ExampleAudit
from truerank.reports.cards import card_head
from truerank.reports.tables import Column, Table, escape_markdown
from truerank.work.artifacts import hash_file

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
        "kinds": [_kind(one.kind, one.json(), names) for one in found.kinds],
        "leaked_topics": about["leaked_topics"],
    }
    if pairs:
        content["pairs"] = list(_pairs(found.leaks, names, key))
    if found.folder is not None and key is None:
        content["leaks"] = f"sha256:{hash_file(found.folder / 'leaks.parquet')}"
    return content


def _kind(kind: str, told: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    why = told["why"]
    for name in sorted(names, key=len, reverse=True):
        why = why.replace(name, names[name])
    known = {"kind": kind, "title": kind_named(kind).title, "verdict": told["verdict"], "why": why}
    return known | {name: told[name] for name in _COUNTS}


def _pairs(leaks: pl.DataFrame, names: Mapping[str, str], key: bytes | None) -> Iterator[dict[str, Any]]:
    for row in leaks.select(_PAIRS).iter_rows(named=True):
        text = row["training_text"]
        hidden = {} if key is None else {"training_text": hash_text(text, key)}
        yield {**row, "source": names[row["source"]], **hidden}


def example_table(content: Mapping[str, Any]) -> Table:
    """The verdicts by kind of leak."""
    number: dict[str, Any] = {"align": "right", "format": ",d"}
    percent: dict[str, Any] = {"align": "right", "format": ".1%"}
    looked = [one if one["of"] else {**one, "leaked": None, "of": None} for one in content["kinds"]]
    return Table.of(
        looked,
        (
            Column("kind of leak", source="title"),
            Column("verdict", source="verdict"),
            Column("leaking", source="leaked", **number),
            Column("of", source="of", **number),
            Column("share", source="share", **percent),
        ),
        "Train–test leakage",
    )


def example_markdown(content: Mapping[str, Any]) -> str:
    """A section for a README, as GitHub and Hugging Face show it."""
    date = f" on {content['date']}" if "date" in content else ""
    test = content["test"]
    sources = ", ".join(f"{escape_markdown(one['name'])} ({one['examples']:,d})" for one in content["sources"])
    documents = f" and {test['documents']:,d} documents" if test["documents"] else ""
    parts = [
        "## Train–test leakage",
        f"Checked with truerank {content['truerank']}{date}: the examples of {sources} against "
        f"{escape_markdown(test['name'])}, {test['topics']:,d} topics{documents}.",
        Table(title="", columns=example_table(content).columns, rows=example_table(content).rows).markdown().strip(),
        "\n".join(f"- **{one['kind']}**: {escape_markdown(one['why'])}" for one in content["kinds"]),
    ]
    if leaked := content["leaked_topics"]:
        ids = ", ".join(map(escape_markdown, leaked))
        heading = f"Topics whose query leaks, alone or with its answer ({len(leaked)})"
        parts.append(f"<details>\n<summary>{heading}</summary>\n\n{ids}\n\n</details>")
    parts.append(
        "CONTAMINATED: at least one query or document was found. CLEAN: everything was read, none was found, and "
        "planted changes of these texts were found at the rates that the audit gives. UNKNOWN: anything else."
    )
    return "\n\n".join(parts) + "\n"
