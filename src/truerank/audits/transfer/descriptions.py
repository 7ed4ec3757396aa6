"""What the documents of the data sets of a scan are like."""

from __future__ import annotations

import contextlib
import ipaddress
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import polars as pl

#: The last row: all judged documents that were compared.
ALL: Final = "all"
#: Second levels below which domains are registered, where the top level is a country's.
_SECOND_LEVELS: Final = frozenset("ac co com edu gov gob go govt id info mil ne net nhs nom or org plc sch".split())


def describe(scores: pl.DataFrame, sets: pl.DataFrame, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The documents of each data set, and all that were compared: URLs, most similar set, most frequent domain.

    URLs are those of the judged version, and where a document has none there, of any other.

    Args:
        scores: one row for each judged document and version, those of the judged version first.
        sets: the documents of each data set.
        names: of the data sets, also of empty ones.

    Returns:
        By set: documents; with_url: of how many the URL is known, over which the following are counted; path_length and
        parameters: means of the URLs; domain: the most frequent registered one, empty where no URL is known;
        domain_share; similar: the set with the most similar topics, empty where there is none; similarity: Jaccard's.

    Source: the transfer paper, Table 2.
    """
    known = scores.filter(pl.col("url") != "")
    urls = known.unique(["topic_id", "doc_id"], keep="first", maintain_order=True).select("topic_id", "doc_id", "url")
    inside = {name: sets.filter(pl.col("set") == name) for name in names}
    topics = {name: frozenset(frame["topic_id"].to_list()) for name, frame in inside.items()}
    everything = scores.unique(["topic_id", "doc_id"], maintain_order=True)
    parts = {name: _described(frame, urls, _nearest(name, topics)) for name, frame in inside.items()}
    return {**parts, ALL: _described(everything, urls, ("", 0.0))}


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


def _described(frame: pl.DataFrame, urls: pl.DataFrame, nearest: tuple[str, float]) -> dict[str, Any]:
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
    similar, similarity = nearest
    return {
        "documents": len(frame), "with_url": len(found), "path_length": round(characters / total, 6),
        "parameters": round(parameters / total, 6), "domain": domain, "domain_share": round(number / total, 6),
        "similar": similar, "similarity": round(similarity, 6),
    }  # fmt: skip


def _nearest(name: str, topics: Mapping[str, frozenset[str]]) -> tuple[str, float]:
    def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
        return len(one & other) / len(one | other) if one or other else 0.0

    others = [(jaccard(topics[name], topics[other]), other) for other in topics if other != name]
    best = max(others, key=lambda item: item[0], default=(0.0, ""))
    return (best[1], best[0]) if best[0] else ("", 0.0)
