"""Describe: what the documents of the data sets are like, and the card that states it."""

from __future__ import annotations

import contextlib
import ipaddress
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final
from urllib.parse import parse_qsl, urlsplit

import polars as pl

from truerank.audits.transfer.estimates import Estimates, estimate
from truerank.audits.transfer.scanning.options import AGGREGATIONS
from truerank.audits.transfer.scanning.results import Scan, ScanFolder, load_scan
from truerank.core.cards import CardDate, card_head
from truerank.core.plain import plain
from truerank.core.result import Result
from truerank.options import Flag, Labels, command
from truerank.work.artifacts import hash_file

#: The last row: all judged documents that were compared.
ALL: Final = "all"
#: Second levels below which domains are registered, where the top level is a country's.
_SECOND_LEVELS: Final = frozenset("ac co com edu gov gob go govt id info mil ne net nhs nom or org plc sch".split())


@dataclass(frozen=True)
class SetDescription:
    """One data set.

    Attributes:
        with_url: of how many documents the URL is known; the next four are over these.
        path_length: mean number of characters of the URL's path.
        parameters: mean number of parameters.
        domain: the most frequent registered domain; empty where no URL is known.
        domain_share: its share of the documents.
        similar: the most similar other set; empty where there is none.
        similarity: Jaccard's, of the topics.
    """

    name: str
    documents: int
    with_url: int
    path_length: float
    parameters: float
    domain: str
    domain_share: float
    similar: str
    similarity: float

    def json(self) -> dict[str, Any]:
        """Plain values."""
        return {name: round(value, 6) if isinstance(value, float) else value for name, value in vars(self).items()}


@dataclass(frozen=True, eq=False, repr=False)
class Description(Result, shown_in="truerank.audits.transfer.report"):
    """The paper's Table 2: one part for each data set, and whose URLs are counted."""

    parts: tuple[SetDescription, ...]
    version: str

    def json(self) -> dict[str, Any]:
        """Plain values by set."""
        return {"version": self.version, "sets": {part.name: part.json() for part in self.parts}}


@command
def describe(scan: ScanFolder, *, version_name: Annotated[str | None, Flag(metavar="NAME")] = None) -> Description:
    """Describes the documents of the data sets: URLs, the most similar set, the most frequent domain.

    Args:
        scan: the folder that `transfer scan` wrote. In Python also what it returned.
        version_name: whose URLs are counted; by default the judged version's, and where a document has none there,
            any other's.

    Returns:
        For each set, and for all documents that were compared, its URLs, its most similar set and its domains.

    Raises:
        InputError: no scan there.

    Examples:

        truerank transfer describe scan/

    Source: the transfer paper, Table 2.
    """
    opened = scan if isinstance(scan, Scan) else load_scan(scan)
    known = opened.scores.filter(pl.col("url") != "")
    if version_name is not None:
        known = known.filter(pl.col("version") == version_name)
    urls = known.unique(["topic_id", "doc_id"], keep="first", maintain_order=True).select("topic_id", "doc_id", "url")
    sets = {name: opened.sets.filter(pl.col("set") == name) for name in opened.set_names}
    topics = {name: frozenset(frame["topic_id"].to_list()) for name, frame in sets.items()}
    everything = opened.scores.unique(["topic_id", "doc_id"], maintain_order=True)
    parts = [_described(name, frame, urls, _nearest(name, topics)) for name, frame in sets.items()]
    parts.append(_described(ALL, everything, urls, ("", 0.0)))
    return Description(tuple(parts), version_name or "the judged version, else of any other")


def registered_domain(url: str) -> str:
    """The part of a URL's host that somebody registered: "wikipedia.org", "bbc.co.uk"; of an address, the address."""
    try:
        host = (urlsplit(url if "//" in url else f"//{url}").hostname or "").rstrip(".")
    except ValueError:
        return ""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    labels = host.split(".")
    below = 3 if len(labels) > 2 and len(labels[-1]) == 2 and labels[-2] in _SECOND_LEVELS else 2
    return ".".join(labels[-below:])


def _described(name: str, frame: pl.DataFrame, urls: pl.DataFrame, nearest: tuple[str, float]) -> SetDescription:
    keys = ["topic_id", "doc_id"]
    found = frame.select(keys).join(urls, on=keys, how="inner", maintain_order="left")["url"].to_list()
    counted = Counter(registered_domain(url) for url in found)
    domain, number = min(counted.items(), key=lambda item: (-item[1], item[0])) if counted else ("", 0)
    total, characters, parameters = max(1, len(found)), 0, 0
    for url in found:
        with contextlib.suppress(ValueError):
            parts = urlsplit(url)
            characters += len(parts.path)
            parameters += len(parse_qsl(parts.query, keep_blank_values=True, max_num_fields=None))
    return SetDescription(
        name, len(frame), len(found), characters / total, parameters / total, domain, number / total, *nearest
    )


def _nearest(name: str, topics: Mapping[str, frozenset[str]]) -> tuple[str, float]:
    def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
        return len(one & other) / len(one | other) if one or other else 0.0

    others = [(jaccard(topics[name], topics[other]), other) for other in topics if other != name]
    best = max(others, key=lambda item: item[0], default=(0.0, ""))
    return (best[1], best[0]) if best[0] else ("", 0.0)


_SCHEMA: Final = "truerank/transfer-card/1"


@dataclass(frozen=True, eq=False, repr=False)
class TransferCard(Result, shown_in="truerank.audits.transfer.report"):
    """The statement.

    Attributes:
        content: plain values.
        scan: what it states.
        estimates: of errors, where people judged.
    """

    content: Mapping[str, Any]
    scan: Scan
    estimates: Estimates | None

    def json(self) -> dict[str, Any]:
        """The statement as plain values."""
        return dict(self.content)


@command
def card(
    scan: ScanFolder,
    *,
    judged: Labels = Labels(),
    date: CardDate = None,
) -> TransferCard:
    """Prints a statement about judgments and versions: Markdown for a data card, or JSON for a machine.

    Args:
        scan: the folder that `transfer scan` wrote. In Python also what it returned.
        judged: what was said about its data sets; then the card states the estimated errors, too.
        date: the date to state; left out where not given, so that the same scan gives the same bytes.

    Returns:
        The statement.

    Raises:
        InputError: no scan there, the date is none, or labels cannot be read.

    Examples:

        truerank transfer card scan/ --labels versions.judged >> README.md
    """
    opened = scan if isinstance(scan, Scan) else load_scan(scan)
    summary = opened.summary
    content = {
        **card_head(_SCHEMA, date),
        "versions": list(opened.versions),
        "ranker": summary["ranker"]["name"],
        **{name: summary[name] for name in ("policy", "probability", "cut_off", "judged", "compared", "skipped")},
        "sets": {name: plain(one, "very") for name, one in summary["sets"].items()},
        "below_0.1": {
            name: {label: one[key]["share"] for key, label in AGGREGATIONS.items()}
            for name, one in summary["below"].items()
        },
    }
    estimates = estimate(opened, judged) if judged else None
    if estimates is not None:
        content["estimates"] = estimates.json()
    if opened.folder is not None:
        content["candidates"] = f"sha256:{hash_file(opened.folder / 'candidates.parquet')}"
    return TransferCard(content, opened, estimates)
