"""A statement about leakage that machines can read, and its Markdown for a model or data card."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, Final

import truerank
from truerank.audits.leakage.calibration_results import Calibration
from truerank.audits.leakage.redaction import hash_text
from truerank.audits.leakage.results import AuditResult, columns_read, load_audit, load_manifest
from truerank.errors import InputError
from truerank.reports.tables import Column, Table, escape_markdown
from truerank.work.artifacts import hash_file

__all__ = ["Card", "card", "card_schema"]

_SCHEMA: Final = "truerank/leakage-card/1"
_WORST_FIRST: Final = ("CONTAMINATED", "UNKNOWN", "CLEAN")
_MEANING: Final = (
    "CONTAMINATED: at least one training query is a candidate leak above the threshold (where pairs were judged: a "
    "confirmed one). CLEAN: everything was read, no evidence (encoder, same content words, nearly the same letters) "
    "found a pair that was not judged away, and planted rewordings of the topics were found at the rates given. "
    "UNKNOWN: anything else."
)


@dataclass(frozen=True)
class Card:
    """The statement.

    Attributes:
        content: what `card_schema` describes.
    """

    content: dict[str, Any]

    def json(self) -> dict[str, Any]:
        """The statement as plain values."""
        return self.content

    def text(self) -> str:
        """The statement as JSON text."""
        return json.dumps(self.content, indent=2, ensure_ascii=False)

    def table(self) -> Table:
        """The verdicts."""
        return Table(
            title="Train–test leakage",
            columns=(
                Column("test set"),
                Column("verdict"),
                Column("topics", align="right", format=",d"),
                Column("leaked topics", align="right", format=",d"),
                Column("leaking queries", align="right", format=",d"),
                Column("pairs below", align="right", format=",d"),
            ),
            rows=tuple(
                (
                    test["name"],
                    test["verdict"],
                    test["topics"],
                    len(test["leaked_topics"]),
                    test["leaking_queries"],
                    test["below"]["pairs"],
                )
                for test in self.content["tests"]
            ),
        )

    def sources_table(self) -> Table:
        """What was read of each training source."""
        number: dict[str, Any] = {"align": "right", "format": ",d"}
        return Table(
            title="Training queries compared",
            columns=(
                Column("source"),
                Column("read", **number),
                Column("distinct", **number),
                Column("skipped", **number),
                Column("content"),
            ),
            rows=tuple(
                (source["name"], source["read"], source["distinct"], source["skipped"], (source.get("hash") or "")[:19])
                for source in self.content["sources"]
            ),
        )

    def markdown(self) -> str:
        """A section for a README, as GitHub and Hugging Face show it."""
        content = self.content
        calibration = content["calibration"]
        known = (
            f"calibrated for {escape_markdown(calibration['for'])}"
            if calibration["calibrated"]
            else f"not calibrated for this encoder (but for {escape_markdown(calibration['for'])})"
        )
        date = f" on {content['date']}" if "date" in content else ""
        parts = [
            "## Train–test leakage",
            f"Checked with truerank {content['truerank']}{date}: cosine similarity above {content['threshold']:g} "
            f"under {escape_markdown(content['encoder'])}; the threshold is {known}.",
            replace(self.table(), title="").markdown().strip(),
            *(f"**{escape_markdown(test['name'])}**: {escape_markdown(test['why'])}" for test in content["tests"]),
            self.sources_table().markdown().strip(),
            *(escape_markdown(line) for line in columns_read({s["name"]: s for s in content["sources"]})),
            *(_leaked_section(test) for test in content["tests"] if test["leaked_topics"]),
            _MEANING,
        ]
        return "\n\n".join(parts) + "\n"


def card(
    audit: AuditResult | str | Path,
    *,
    date: str | None = None,
    calibration: Calibration | None = None,
    pairs: bool = False,
    redact_key: bytes | None = None,
) -> Card:
    """States what an audit found.

    Args:
        audit: the audit, or the folder it wrote; the folder's `manifest.json` gives the hashes of the sources.
        date: YYYY-MM-DD; left out where not given, so that the same audit gives the same bytes.
        calibration: of the threshold, where there is one.
        pairs: state every pair above the threshold, too.
        redact_key: with it (`redaction.open_key`) names and content hashes of the training sources and the texts of
            pairs become keyed hashes.

    Returns:
        The statement.

    Raises:
        InputError: no audit there, or the date is none.
    """
    result = audit if isinstance(audit, AuditResult) else load_audit(audit)
    summary = result.summary
    content: dict[str, Any] = {"schema": _SCHEMA, "truerank": truerank.__version__}
    if date is not None:
        content["date"] = _date(date)
    content |= {
        "verdict": next(v for v in _WORST_FIRST if v in {test["verdict"] for test in summary["tests"].values()}),
        "encoder": summary["encoder"],
        "threshold": summary["threshold"],
        "calibration": _calibration(result, calibration),
        "mode": summary["mode"],
        "redacted": redact_key is not None,
        "sources": list(_sources(result)),
        "tests": list(_tests(result, pairs)),
    }
    if result.folder is not None and redact_key is None:
        content["candidates"] = f"sha256:{hash_file(result.folder / 'candidates.parquet')}"
    return Card(content if redact_key is None else _redacted(content, redact_key))


def card_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the statement."""
    text = resources.files("truerank.audits.leakage").joinpath("card.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def _date(date: str) -> str:
    try:
        return datetime.date.fromisoformat(date).isoformat()
    except ValueError as error:
        raise InputError(f"'{date}' is no date", "write it as YYYY-MM-DD", where="--date") from error


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


def _sources(result: AuditResult) -> Iterator[dict[str, Any]]:
    hashes = _hashes(result.folder)
    for name, counts in result.summary["sources"].items():
        source: dict[str, Any] = {"name": name, **counts}
        if name in hashes:
            source["hash"] = hashes[name]
        yield source


def _hashes(folder: Path | None) -> Mapping[str, str]:
    if folder is None or not (folder / "manifest.json").is_file():
        return {}
    train = load_manifest(folder).get("train")
    entries = train if isinstance(train, list) else []
    return {str(e["name"]): str(e["hash"]) for e in entries if isinstance(e, dict) and {"name", "hash"} <= set(e)}


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
        why = test["why"]
        for name in sorted(names, key=len, reverse=True):
            why = why.replace(name, names[name])
        test = {**test, "why": why}
        if "pairs" in test:
            test["pairs"] = [
                {**pair, "source": names[pair["source"]], "query_text": hash_text(pair["query_text"], key)}
                for pair in test["pairs"]
            ]
        tests.append(test)
    return {**content, "sources": sources, "tests": tests}


def _leaked_section(test: Mapping[str, Any]) -> str:
    ids = ", ".join(escape_markdown(topic) for topic in test["leaked_topics"])
    name = escape_markdown(test["name"])
    return (
        f"<details>\n<summary>Leaked topics of {name} ({len(test['leaked_topics'])})</summary>\n\n{ids}\n\n</details>"
    )
