"""The abstracts, topics and judgments that planted pages are made of."""

from __future__ import annotations

import gzip
import re
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from truerank.sources import read_topics
from truerank.sources.qrels import read_qrels

_RECORD = re.compile(r"<DOCNO>\s*(.*?)\s*</DOCNO>(.*?)</DOC>", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z(])")


class Abstract(NamedTuple):
    """A title and the sentences of an abstract."""

    doc_id: str
    title: str
    sentences: tuple[str, ...]

    @property
    def words(self) -> int:
        """How many words it has with its title."""
        return len(" ".join((self.title, *self.sentences)).split())


class Abstracts(NamedTuple):
    """Abstracts by id, queries by topic, and for each relevant abstract its topics; all in the order of the source."""

    name: str
    abstracts: dict[str, Abstract]
    topics: dict[str, str]
    relevant: dict[str, tuple[str, ...]]


def read_abstracts(name: str, folder: Path, *, titles: bool = False) -> Abstracts:
    """Reads `vaswani` or `cacm` from its folder; with `titles` also what has no text beside the title."""
    records, topics = (_vaswani(folder), "topics.trec.txt") if name == "vaswani" else (_cacm(folder), "topics.txt")
    abstracts = {one.doc_id: one for one in records if one.sentences or titles}
    asked = {
        topic.topic_id: " ".join(topic.title.lower().split()) for topic in read_topics(str(folder / topics)).topics
    }
    relevant: defaultdict[str, list[str]] = defaultdict(list)
    for qrel in read_qrels(str(folder / "qrels.txt")):
        if qrel.relevance > 0 and qrel.doc_id in abstracts and qrel.topic_id in asked:
            relevant[qrel.doc_id].append(qrel.topic_id)
    return Abstracts(
        name, abstracts, asked, {doc_id: tuple(relevant[doc_id]) for doc_id in abstracts if doc_id in relevant}
    )


def _vaswani(folder: Path) -> Iterator[Abstract]:
    text = gzip.decompress((folder / "docs.trec.gz").read_bytes()).decode("latin-1")
    for doc_id, body in _RECORD.findall(text):
        # Two blanks stand where the printed abstract had a full stop.
        title, *rest = [" ".join(part.split()) for part in re.split(r" {2,}", body.replace("\n", " ").strip())]
        yield Abstract(doc_id, _capital(title), tuple(f"{_capital(part)}." for part in rest if part))


def _cacm(folder: Path) -> Iterator[Abstract]:
    with tarfile.open(folder / "cacm.tar.gz") as archive:
        for member in archive:
            stream = archive.extractfile(member)
            if stream is None:
                continue
            parts = re.sub(r"</?(?:html|pre)>", "", stream.read().decode("latin-1")).strip().split("\n\n")
            title, *rest = [" ".join(part.split()) for part in parts]
            abstract = rest[0] if rest and not rest[0].startswith("CACM ") else ""
            yield Abstract(Path(member.name).stem, title, tuple(_SENTENCE.split(abstract)) if abstract else ())


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
