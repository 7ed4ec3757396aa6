"""A collection that faults are planted into: documents, topics, judgments and queries of another split, as files."""

from __future__ import annotations

import json
import random
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from planted.abstracts import read_abstracts
from truerank.sources import read_topics

TIMES = 20


class Planted(NamedTuple):
    """One planted fault: the ids by which the audit would name it, and a text that is in its detail."""

    ids: frozenset[str]
    text: str = ""


@dataclass
class Collection:
    """Everything that is written; planters change it.

    Attributes:
        docs: id and text; a text may be bytes of a JSON line.
        topics: id and text.
        qrels: topic, document and grade, as texts; a row may have other columns.
        train: id and text of queries of another split.
        sentences: of all documents, to make new texts of.
        rng: the only source of chance.
        half: whose wordings of notices are planted, "development" or "report".
        shared: whether foreign texts and the like are planted one at a time.
    """

    docs: list[tuple[str, str | bytes]]
    topics: list[tuple[str, str]]
    qrels: list[tuple[str, ...]]
    train: list[tuple[str, str]]
    sentences: list[str]
    rng: random.Random
    half: str
    harmless: set[str] = field(default_factory=set)

    def copy(self, seed: int) -> Collection:
        """The same with another source of chance; lists are new."""
        parts = (list(self.docs), list(self.topics), list(self.qrels), list(self.train))
        return Collection(*parts, self.sentences, random.Random(seed), self.half, set(self.harmless))

    def mixed(self, sentences: int = 6) -> str:
        """A new text of sentences from all over the collection."""
        return " ".join(self.rng.sample(self.sentences, sentences))

    def texts(self) -> dict[str, str]:
        """Texts by document."""
        return {doc: text for doc, text in self.docs if isinstance(text, str)}

    def judged(self) -> list[tuple[str, str]]:
        """Relevant pairs whose document exists and is long enough to be told from others, one for each document."""
        texts = self.texts()
        found: dict[str, tuple[str, str]] = {}
        for topic, doc, grade in (row for row in self.qrels if len(row) == 3):
            if grade == "1" and len(texts.get(doc, "").split()) > 30:
                found.setdefault(doc, (topic, doc))
        return list(found.values())

    def long_docs(self) -> list[tuple[str, str]]:
        """Documents that are long enough to be changed, without those that are harmless look-alikes."""
        return [(d, t) for d, t in self.texts().items() if len(t.split()) > 40 and d not in self.harmless]

    def write(self, folder: Path) -> dict[str, str]:
        """Writes the files.

        Returns:
            Their paths by the names that the audit gives them.
        """
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "docs.jsonl").open("wb") as stream:
            for doc, text in self.docs:
                line = (
                    text
                    if isinstance(text, bytes)
                    else json.dumps({"_id": doc, "text": text}, ensure_ascii=False).encode()
                )
                stream.write(line + b"\n")
        for name, rows in (("topics", self.topics), ("train", self.train)):
            lines = "".join(json.dumps({"_id": one, "text": text}, ensure_ascii=False) + "\n" for one, text in rows)
            (folder / f"{name}.jsonl").write_text(lines)
        (folder / "qrels.tsv").write_text("".join("\t".join(row) + "\n" for row in self.qrels))
        names = {"docs": "docs.jsonl", "topics": "topics.jsonl", "train": "train.jsonl", "qrels": "qrels.tsv"}
        return {name: str(folder / file) for name, file in names.items()}


def read_collection(name: str, folder: Path, seed: int) -> Collection:
    """Reads `vaswani` or `cacm`, and adds what is harmless.

    Each topic gets three judgments of random documents as not relevant, so that judgments of both kinds exist. Half of
    the queries of the other split are made of words of two documents, half are reworded beyond recognition.
    """
    source = read_abstracts(name, folder, titles=True)
    rng = random.Random(seed)
    docs: list[tuple[str, str | bytes]] = [
        (one.doc_id, " ".join((one.title, *one.sentences))) for one in source.abstracts.values()
    ]
    topics = [
        (topic.topic_id, " ".join(topic.title.split())) for topic in read_topics(str(_topics(name, folder))).topics
    ]
    qrels: list[tuple[str, ...]] = [(topic, doc, "1") for doc, about in source.relevant.items() for topic in about]
    qrels.sort()
    judged = set(qrels)
    for topic in sorted({row[0] for row in qrels}):
        chosen = rng.sample([doc for doc, _ in docs], 3)
        qrels += [(topic, doc, "0") for doc in chosen if (topic, doc, "1") not in judged]
    sentences = [
        sentence
        for one in source.abstracts.values()
        for sentence in _sentences(one.sentences)
        if len(sentence.split()) > 7
    ]
    found = Collection(docs, topics, qrels, [], sentences, rng, "report" if name == "cacm" else "development")
    found.train = [(f"train-{n}", _query(found)) for n in range(400)]
    _add_lookalikes(found)
    return found


def _topics(name: str, folder: Path) -> Path:
    return folder / ("topics.trec.txt" if name == "vaswani" else "topics.txt")


def _sentences(given: Sequence[str]) -> Iterator[str]:
    """Sentences; a text without marks is cut into runs of fifteen words."""
    for sentence in given:
        words = sentence.split()
        if len(words) <= 40:
            yield sentence
        else:
            yield from (" ".join(words[at : at + 15]) for at in range(0, len(words) - 14, 15))


def _query(source: Collection) -> str:
    words = [word.strip(".,()").lower() for word in " ".join(source.rng.sample(source.sentences, 2)).split()]
    return " ".join(source.rng.sample(words, min(len(words), source.rng.randint(5, 12))))


#: Short letters of one form, each in five languages: the same content in other words is not a lexical duplicate.
_LETTERS = {
    "en": "Dear Sir, we thank you for your letter of {a} and are sorry that part {b} of volume {c} has not reached "
    "you. It was sent again today by surface mail. Please let us know when it arrives.",
    "de": "Sehr geehrter Herr, wir danken für Ihren Brief vom {a} und bedauern, dass Heft {b} des Bandes {c} Sie nicht "
    "erreicht hat. Es wurde heute noch einmal abgeschickt. Bitte geben Sie uns Nachricht, sobald es eintrifft.",
    "fr": "Monsieur, nous vous remercions de votre lettre du {a} et regrettons que le fascicule {b} du tome {c} ne "
    "vous soit pas parvenu. Un autre exemplaire part aujourd'hui. Veuillez nous prévenir de son arrivée.",
    "es": "Estimado señor, agradecemos su carta del {a} y lamentamos que el número {b} del volumen {c} no le haya "
    "llegado. Hoy lo enviamos otra vez por correo ordinario. Avísenos, por favor, cuando lo reciba.",
    "fi": "Hyvä vastaanottaja, kiitämme kirjeestänne {a} ja pahoittelemme, että nidoksen {c} osa {b} ei ole saapunut. "
    "Lähetimme sen tänään uudelleen. Pyydämme ilmoittamaan, kun se on perillä.",
}


def _add_lookalikes(found: Collection) -> None:
    """Documents, topics and judgments that resemble faults and are none."""
    rng, long = found.rng, found.long_docs()
    added: list[tuple[str, str]] = []
    for number, (_, text) in enumerate(rng.sample(long, TIMES)):
        added.append((f"same-title-{number}", f"{' '.join(text.split()[:6])}. {found.mixed()}"))
    for number in range(TIMES):
        start = f"Progress report of the computing laboratory, part {number + 1} of {TIMES}."
        added.append((f"series-{number}", f"{start} {found.mixed(4)}"))
    for number, (_, text) in enumerate(rng.sample(long, TIMES)):
        quoted = " ".join(text.split()[:14])
        added.append((f"quoting-{number}", f'{found.mixed(3)} As was said before, "{quoted}". {found.mixed(3)}'))
    for number, letter in enumerate(_LETTERS.values()):
        added.append((f"letter-{number}", letter.format(a="3 May 1961", b=number + 3, c=17)))
    for number in range(5):
        added.append((f"inequality-{number}", f"If a < b and c > d, then a + c < b + d & so on. {found.mixed()}"))
        added.append((f"accents-{number}", f"Gödel, Erdős, Poincaré and Ångström: naïve façades. {found.mixed()}"))
        added.append(
            (f"errors-{number}", f"{found.mixed(3)} A page that is not found causes an error. {found.mixed(3)}")
        )
        added.append((f"capitals-{number}", found.mixed(3).upper()))
        added.append(
            (f"code-{number}", f"begin x[i] := y[[i]]; if x[i] >= 0 then go to L{number}; end. {found.mixed()}")
        )
    rng.shuffle(added)
    found.harmless = {doc for doc, _ in added}
    found.docs += added
    # Ids that differ in more than case and padding, and topics with a few relevant documents in common.
    known = [row for row in found.qrels if row[2] == "1"]
    for number, (topic, doc, _) in enumerate(rng.sample(known, TIMES)):
        for ending in ("1", "11", "110"):
            found.docs.append((f"near-id-{number}-{ending}", found.mixed()))
            found.harmless.add(f"near-id-{number}-{ending}")
        found.qrels.append((topic, f"near-id-{number}-11", "1"))
        other = rng.choice(known)[0]
        if other != topic and not any(row[:2] == (other, doc) for row in found.qrels):
            found.qrels.append((other, doc, "1"))


@cache
def notices(half: str) -> tuple[str, ...]:
    """Texts that stand in place of a page."""
    path = Path(__file__).with_name("notices.toml")
    groups = tomllib.loads(path.read_text(encoding="utf-8"))[half]
    texts = []
    for name in ("error", "login", "paywall", "metered", "consent", "removed", "robot"):
        texts += [" ".join(one) for one in groups.get(name, ()) if isinstance(one, list)]
    return tuple(texts)
