"""Two versions of a small collection in which it is known what became of each judged document."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, NamedTuple

from truerank.rankers.base import RankerSpec

TOPICS = 30
#: What became of the document of a topic: the fault, and the version that it lies in.
FAULTS = {
    3: ("error page", "new"),
    5: ("redirect", "new"),
    8: ("truncated", "new"),
    11: ("boilerplate only", "new"),
    14: ("empty", "new"),
    17: ("content missing", "new"),
    20: ("content changed", "new"),
    24: ("error page", "old"),
    26: ("redirect", "old"),
}
ERROR = "404 Not Found. The requested page was not found on this server."
MENUS = "Home. About us. Contact. Privacy policy. Terms of use. Subscribe to our newsletter. Share this page. Login."


class Files(NamedTuple):
    """Where everything lies."""

    folder: Path
    versions: dict[str, str]
    qrels: str
    topics: str


def query(topic: int) -> str:
    """Three words that only the documents of the topic have."""
    return f"quartz{topic} barium{topic} method{topic}"


def paragraph(draw: random.Random) -> str:
    """A sentence of made words."""
    return " ".join(f"word{draw.randrange(600)}" for _ in range(14)).capitalize() + "."


def document(topic: int) -> list[str]:
    """Six paragraphs; one of the first three is about the topic."""
    draw = random.Random(topic)
    parts = [paragraph(draw) for _ in range(5)]
    parts.insert(topic % 3, f"The {query(topic)} is described here with its {query(topic)}.")
    return parts


def struck(topic: int, fault: str) -> list[str]:
    """The paragraphs after a fault."""
    parts, draw = document(topic), random.Random(f"struck {topic}")
    fresh = [paragraph(draw) for _ in range(6)]
    return {
        "error page": [ERROR],
        "redirect": fresh,
        "truncated": [parts[0], parts[1][:40]],
        "boilerplate only": [MENUS],
        "empty": [""],
        "content missing": [*parts[:2], *parts[3:]],
        "content changed": [*parts[:2], *fresh[:2], *parts[4:]],
    }[fault]


def write(folder: Path) -> Files:
    """Writes both versions, topics and judgments.

    Document 0 is lost in the new version, document 1 is judged for a topic without a text, and one judged document is
    nowhere.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines: dict[str, list[str]] = {"old": [], "new": []}
    qrels = ["3 0 nowhere 1", "99 0 old1 1"]
    for topic in range(TOPICS):
        fault, side = FAULTS.get(topic, ("", ""))
        for version in ("old", "new"):
            if topic == 0 and version == "new":
                continue
            parts = struck(topic, fault) if side == version else [*document(topic), f"Seen in {version} times."]
            url = f"http://www.site{topic % 4}.org/papers/{topic}" + ("?page=1&x=2" if topic % 5 == 0 else "")
            doc_id = f"{version}{topic}" if version == "old" else f"n{TOPICS - topic}"
            body = "\n\n".join(parts)
            lines[version].append(json.dumps({"doc_id": doc_id, "url": url, "title": "Pages", "body": body}))
        qrels.append(f"{topic} 0 old{topic} {1 + topic % 2}")
        qrels.append(f"{topic} 0 old{(topic + 3) % TOPICS} 0")
    for version, some in lines.items():
        # BM25 knows the words of the old version only.
        listed = " ".join(query(topic) for topic in range(TOPICS))
        some.append(json.dumps({"doc_id": f"{version}-list", "url": "http://www.site.org/", "body": listed}))
    for version, some in lines.items():
        (folder / f"{version}.jsonl").write_text("\n".join(some) + "\n", encoding="utf-8")
    (folder / "topics.tsv").write_text("".join(f"{topic}\t{query(topic)}\n" for topic in range(TOPICS)))
    (folder / "old.qrels").write_text("\n".join(qrels) + "\n")
    versions = {version: str(folder / f"{version}.jsonl") for version in lines}
    return Files(folder, versions, str(folder / "old.qrels"), str(folder / "topics.tsv"))


def options(**more: Any) -> dict[str, Any]:
    """A scan by BM25 in small passages."""
    return {"model": RankerSpec("bm25"), "split": "sliding:30:15", "block_size": 7, **more}
