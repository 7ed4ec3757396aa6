"""Faults of collections: one function for each kind, which plants it as often as asked and says what it planted."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterator
from typing import NamedTuple

from planted.collections import Collection, Planted, notices

Planter = Callable[[Collection, int], Iterator[Planted]]


class Fault(NamedTuple):
    """A kind of planted fault.

    Attributes:
        kind: the kind of finding that is right.
        plant: plants it.
        parts: what the audit needs to be given.
        alone: planted one at a time, because a few of them are no exception any more.
    """

    kind: str
    plant: Planter
    parts: tuple[str, ...]
    alone: bool = False


def _p(*ids: str, text: str = "") -> Planted:
    return Planted(frozenset(ids), text)


# -- judgments ---------------------------------------------------------------------------------------------------------


def _broken_row(c: Collection, times: int) -> Iterator[Planted]:
    for n in range(times):
        topic, doc = c.rng.choice(c.judged())
        row = ((topic, doc), (topic, doc, "relevant"), (topic, doc, "1.5"), (topic, "0", doc, "1", f"x{n}"))[n % 4]
        place = c.rng.randrange(len(c.qrels))
        c.qrels.insert(place, row)
        yield _p(text="".join(row[-1:]) if n % 4 else doc)


def _missing_document(c: Collection, times: int) -> Iterator[Planted]:
    for n in range(times):
        doc = f"gone-{n}"
        c.qrels.append((c.rng.choice(c.topics)[0], doc, c.rng.choice("01")))
        yield _p(doc)


def _respelt_document(c: Collection, times: int) -> Iterator[Planted]:
    ways: tuple[Callable[[str], str], ...] = (
        lambda d: f"{d}.html", lambda d: d.swapcase() if d.upper() != d.lower() else f"{d}.txt",
        lambda d: d.replace("-", "_") if "-" in d else f"00{d}", lambda d: f"{d}.0",
        lambda d: d.replace("-", "%2D") if "-" in d else f"0{d}",
    )  # fmt: skip
    rows = [place for place, row in enumerate(c.qrels) if row[2] == "1" and row[1] not in c.harmless]
    for n, place in enumerate(c.rng.sample(rows, times)):
        topic, doc, grade = c.qrels[place]
        other = ways[n % len(ways)](doc)
        c.qrels[place] = (topic, other, grade)
        yield _p(other)


def _unknown_topic(c: Collection, times: int) -> Iterator[Planted]:
    for n in range(times):
        topic = f"q{9000 + n}"
        c.qrels.append((topic, c.rng.choice(c.judged())[1], "1"))
        yield _p(topic)


def _respelt_topic(c: Collection, times: int) -> Iterator[Planted]:
    topics = sorted({row[0] for row in c.qrels})
    for n, topic in enumerate(c.rng.sample(topics, times)):
        other = (f"0{topic}", f"{topic}.0", f"00{topic}")[n % 3]
        row = next(place for place, one in enumerate(c.qrels) if one[0] == topic)
        c.qrels[row] = (other, *c.qrels[row][1:])
        yield _p(other)


def _swapped_ids(c: Collection, times: int) -> Iterator[Planted]:
    rows = [place for place, row in enumerate(c.qrels) if row[1] in c.texts()]
    for place in c.rng.sample(rows, times):
        topic, doc, grade = c.qrels[place]
        c.qrels[place] = (doc, topic, grade)
        yield _p(doc)


def _repeated_pair(c: Collection, times: int) -> Iterator[Planted]:
    for row in c.rng.sample(c.qrels, times):
        c.qrels.insert(c.rng.randrange(len(c.qrels)), row)
        yield _p(f"{row[0]} {row[1]}")


def _contradicted_pair(c: Collection, times: int) -> Iterator[Planted]:
    for row in c.rng.sample(c.qrels, times):
        c.qrels.append((*row[:2], "0" if row[2] == "1" else "1"))
        yield _p(f"{row[0]} {row[1]}")


def _off_scale(c: Collection, times: int) -> Iterator[Planted]:
    for n in range(times):
        place = c.rng.randrange(len(c.qrels))
        topic, doc, _ = c.qrels[place]
        c.qrels[place] = (topic, doc, (10, 11, 100, 5, -9)[n % 5].__str__())
        yield _p(f"{topic} {doc}")


def _copied_topic(c: Collection, times: int) -> Iterator[Planted]:
    sizes: dict[str, list[str]] = {}
    for topic, doc, grade in c.qrels:
        if grade == "1":
            sizes.setdefault(topic, []).append(doc)
    wide = [topic for topic, docs in sizes.items() if len(docs) >= 5]
    for n, topic in enumerate(c.rng.sample(wide, min(times, len(wide)))):
        docs = sizes[topic]
        # All of its relevant documents, or all but one in ten of them.
        lost = len(docs) // 10 if n % 2 else 0
        c.topics.append((f"copied-{n}", c.mixed(1)))
        c.qrels += [(f"copied-{n}", doc, "1") for doc in docs[lost:]]
        yield _p(f"copied-{n}")


def _hub(c: Collection, times: int) -> Iterator[Planted]:
    topics = sorted({row[0] for row in c.qrels})
    known = {row[:2] for row in c.qrels}
    for n in range(times):
        doc = f"hub-{n}"
        c.docs.append((doc, c.mixed()))
        chosen = c.rng.sample(topics, max(10, len(topics) // 4))
        c.qrels += [(topic, doc, "1") for topic in chosen if (topic, doc) not in known]
        yield _p(doc)


def _without_relevant(c: Collection, times: int) -> Iterator[Planted]:
    for n in range(times):
        topic = f"none-{n}"
        c.topics.append((topic, c.mixed(1)))
        c.qrels += [(topic, doc, "0") for doc, _ in c.rng.sample(c.long_docs(), 5)]
        yield _p(topic)


# -- documents ---------------------------------------------------------------------------------------------------------


def _changed(c: Collection, times: int, change: Callable[[str, int], str]) -> Iterator[Planted]:
    """Documents whose text is changed in place."""
    places = {doc: place for place, (doc, _) in enumerate(c.docs)}
    for n, (doc, text) in enumerate(c.rng.sample(c.long_docs(), times)):
        c.docs[places[doc]] = (doc, change(text, n))
        yield _p(doc)


def _added(c: Collection, times: int, name: str, text: Callable[[int], str]) -> Iterator[Planted]:
    """New documents."""
    for n in range(times):
        c.docs.insert(c.rng.randrange(len(c.docs)), (f"{name}-{n}", text(n)))
        yield _p(f"{name}-{n}")


def _empty_document(c: Collection, times: int) -> Iterator[Planted]:
    yield from _added(c, times, "empty", lambda n: ("", " ", "\n\t", "\u200b")[n % 4])


def _conflicting_id(c: Collection, times: int) -> Iterator[Planted]:
    for doc, _ in c.rng.sample(c.long_docs(), times):
        c.docs.insert(c.rng.randrange(len(c.docs)), (doc, c.mixed()))
        yield _p(doc)


def _repeated_id(c: Collection, times: int) -> Iterator[Planted]:
    for doc, text in c.rng.sample(c.long_docs(), times):
        c.docs.insert(c.rng.randrange(len(c.docs)), (doc, text))
        yield _p(doc)


def _unwritable_id(c: Collection, times: int) -> Iterator[Planted]:
    for n in range(times):
        doc = (f"note {n}", f"note\u00a0{n}", f" note-{n}", f"note-{n}\t")[n % 4]
        c.docs.append((doc, c.mixed()))
        yield _p(doc)


def _undecodable(c: Collection, times: int) -> Iterator[Planted]:
    places = {doc: place for place, (doc, _) in enumerate(c.docs)}
    for doc, text in c.rng.sample(c.long_docs(), times):
        line = json.dumps({"_id": doc, "text": f"{text} Müller und Åström"}, ensure_ascii=False)
        c.docs[places[doc]] = (doc, line.encode("latin-1", "replace"))
        yield _p(doc)


def _wrong_decoding(c: Collection, times: int) -> Iterator[Planted]:
    words = ("café", "Müller’s", "naïve", "façade", "Ångström", "“quoted”", "señor", "Łukasiewicz", "Erdős", "25 °C")

    def damaged(text: str, n: int) -> str:
        half = len(text) // 2
        foreign = words[n % len(words)].encode().decode("cp1252" if n % 2 else "latin-1", "ignore")
        return f"{text[:half]} {foreign} {text[half:]}"

    yield from _changed(c, times, damaged)


def _lost_characters(c: Collection, times: int) -> Iterator[Planted]:
    signs = ("\ufffd", "\x00", "\x1a", "\ufffd\ufffd", "\x07")
    yield from _changed(c, times, lambda text, n: f"{text[: len(text) // 3]}{signs[n % 5]}{text[len(text) // 3 :]}")


def _markup(c: Collection, times: int) -> Iterator[Planted]:
    ways: tuple[Callable[[str], str], ...] = (
        lambda t: f"<p>{t}</p>", lambda t: t.replace(" ", "&nbsp;", 3), lambda t: f'{t} <a href="x.html">more</a>',
        lambda t: f"{t} function () {{ return document.write('x'); }}",
        lambda t: f"{{{{cite book}}}} {t} [[Category:Notes]]",
        lambda t: f"{t}<br/>", lambda t: html.escape(f"{t} \"A\" & 'B'"),
        lambda t: f"{t} .nav {{ color: red; margin: 0 }}",
    )  # fmt: skip
    yield from _changed(c, times, lambda text, n: ways[n % len(ways)](text))


def _error_page(c: Collection, times: int) -> Iterator[Planted]:
    texts = notices(c.half)
    yield from _added(c, times, "notice", lambda n: texts[n % len(texts)])


def _placeholder(c: Collection, times: int) -> Iterator[Planted]:
    texts = ("null", "N/A", "[deleted]", "None", "[removed]", "No abstract available.", "NaN", "TBD", "undefined",
             "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor.", "TODO", "untitled",
             "(no text)", "Abstract not available", "--missing--", "no content", "#N/A", "NULL", "test",
             "empty")  # fmt: skip
    yield from _added(c, times, "void", lambda n: texts[n % len(texts)])


def _cut(c: Collection, times: int) -> Iterator[Planted]:
    def shortened(text: str, n: int) -> str:
        words = text.split()
        place = next(
            (at for at in range(len(words) // 2, len(words)) if len(words[at]) > 7 and words[at].isalpha()), 12
        )
        return " ".join([*words[:place], words[place][: 3 + n % 3]])

    yield from _changed(c, times, shortened)


def _doubled(c: Collection, times: int) -> Iterator[Planted]:
    yield from _changed(c, times, lambda text, n: (f"{text} {text}", f"{text}\n{text}", f"{text}{text}")[n % 3])


_FOREIGN = (
    "Вычислительная машина печатает таблицу значений функции и останавливается после последней строки.",
    "計算機は関数の値の表を印刷し、最後の行の後で停止する。この方法は速い。",
    "تطبع الآلة الحاسبة جدول قيم الدالة ثم تتوقف بعد السطر الأخير من البرنامج.",
    "Η υπολογιστική μηχανή τυπώνει τον πίνακα τιμών της συνάρτησης και σταματά.",
    "เครื่องคำนวณพิมพ์ตารางค่าของฟังก์ชันและหยุดหลังจากบรรทัดสุดท้ายของโปรแกรม",
)


def _foreign(c: Collection, times: int) -> Iterator[Planted]:
    yield from _added(c, times, "foreign", lambda n: f"{_FOREIGN[n % len(_FOREIGN)]} {n}")


def _exact_copy(c: Collection, times: int) -> Iterator[Planted]:
    ways: tuple[Callable[[str], str], ...] = (
        lambda t: t, lambda t: t.replace(" ", "\n", 9), str.upper, lambda t: t.replace(", ", " , "),
        lambda t: f"  {t}\u200b ",
    )  # fmt: skip
    for n, (_, text) in enumerate(c.rng.sample(c.long_docs(), times)):
        c.docs.append((f"copy-{n}", ways[n % len(ways)](text)))
        yield _p(f"copy-{n}")


def _near_copy(c: Collection, times: int) -> Iterator[Planted]:
    def altered(text: str, n: int) -> str:
        words = text.split()
        at = c.rng.randrange(5, len(words) - 5)
        if n % 4 == 0:
            words[at] = c.rng.choice(c.sentences).split()[0]
        elif n % 4 == 1:
            del words[at]
        elif n % 4 == 2:
            words = ["Reprinted.", *words]
        else:
            words[at : at + 1] = [words[at][::-1]]
        return " ".join(words)

    wide = [(doc, text) for doc, text in c.long_docs() if len(text.split()) > 60]
    for n, (_, text) in enumerate(c.rng.sample(wide, times)):
        c.docs.append((f"near-{n}", altered(text, n)))
        yield _p(f"near-{n}")


def _contained(c: Collection, times: int) -> Iterator[Planted]:
    for n, (doc, text) in enumerate(c.rng.sample(c.long_docs(), times)):
        c.docs.append((f"holder-{n}", f"{c.mixed(6)} {text} {c.mixed(6)}"))
        yield _p(f"holder-{n}", doc)


def _boilerplate(c: Collection, times: int) -> Iterator[Planted]:
    for n in range(times):
        footer = f"Copyright {1950 + n} by the society number {n * 7 + 3}; all rights of reprinting reserved worldwide"
        for place in c.rng.sample(range(len(c.docs)), max(40, len(c.docs) // 60)):
            doc, text = c.docs[place]
            if isinstance(text, str):
                c.docs[place] = (doc, f"{text} {footer}")
        yield _p(text=f"number {n * 7 + 3}")


def _joined(c: Collection, times: int) -> Iterator[Planted]:
    yield from _added(c, times, "joined", lambda _: " ".join(c.mixed(40) for _ in range(15)))


# -- topics ------------------------------------------------------------------------------------------------------------


def _new_topics(c: Collection, times: int, name: str, text: Callable[[int], str]) -> Iterator[Planted]:
    for n in range(times):
        c.topics.append((f"{name}-{n}", text(n)))
        yield _p(f"{name}-{n}")


def _empty_topic(c: Collection, times: int) -> Iterator[Planted]:
    yield from _new_topics(c, times, "empty", lambda n: ("", " ", "\u200b")[n % 3])


def _conflicting_topic(c: Collection, times: int) -> Iterator[Planted]:
    for topic, _ in c.rng.sample(c.topics, times):
        c.topics.append((topic, c.mixed(1)))
        yield _p(topic)


def _repeated_topic(c: Collection, times: int) -> Iterator[Planted]:
    for topic, text in c.rng.sample(c.topics, times):
        c.topics.append((topic, text))
        yield _p(topic)


def _unwritable_topic(c: Collection, times: int) -> Iterator[Planted]:
    for n in range(times):
        c.topics.append((f"topic {n}", c.mixed(1)))
        yield _p(f"topic {n}")


def _same_topic(c: Collection, times: int) -> Iterator[Planted]:
    ways: tuple[Callable[[str], str], ...] = (str, str.upper, lambda t: f"{t}?", lambda t: t.replace(" ", "  "))
    for n, (_, text) in enumerate(c.rng.sample(c.topics, times)):
        c.topics.append((f"same-{n}", ways[n % 4](text)))
        yield _p(f"same-{n}")


def _near_topic(c: Collection, times: int) -> Iterator[Planted]:
    def altered(text: str, n: int) -> str:
        words = text.split()
        at = c.rng.randrange(len(words))
        longest = max(range(len(words)), key=lambda place: len(words[place]))
        if n % 4 == 0:
            words[longest] = words[longest][:2] + words[longest][3:]
        elif n % 4 == 1:
            words.insert(at, "the")
        elif n % 4 == 2:
            words[longest] += "s"
        else:
            words = [*words, "please"]
        return " ".join(words)

    wide = [(topic, text) for topic, text in c.topics if len(text) > 40]
    for n, (_, text) in enumerate(c.rng.sample(wide, times)):
        c.topics.append((f"near-{n}", altered(text, n)))
        yield _p(f"near-{n}")


def _trained_topic(c: Collection, times: int) -> Iterator[Planted]:
    ways: tuple[Callable[[str], str], ...] = (str, str.lower, lambda t: f"{t} ?", lambda t: t.replace(" ", "\t", 1))
    for n, (topic, text) in enumerate(c.rng.sample(c.topics, times)):
        c.train.append((f"leak-{n}", ways[n % 4](text)))
        yield _p(topic)


def _topic_in_document(c: Collection, times: int) -> Iterator[Planted]:
    wide = [(topic, text) for topic, text in c.topics if len(text.split()) > 5]
    for n, (topic, text) in enumerate(c.rng.sample(wide, times)):
        c.docs.append((f"asking-{n}", f"{c.mixed(3)} {text} {c.mixed(3)}"))
        yield _p(topic)


def _damaged_topic(c: Collection, times: int) -> Iterator[Planted]:
    words = ("café", "Müller’s", "naïve", "Ångström", "“quoted”")
    for n in range(times):
        foreign = "\ufffdber" if n % 5 == 0 else words[n % 5].encode().decode("latin-1")
        c.topics.append((f"damaged-{n}", f"{c.mixed(1)} {foreign}"))
        yield _p(f"damaged-{n}")


def _marked_topic(c: Collection, times: int) -> Iterator[Planted]:
    ways = ("<b>{}</b>", "{} &amp; others", "<p>{}", "{}<br>", "&quot;{}&quot;")
    yield from _new_topics(c, times, "marked", lambda n: ways[n % 5].format(c.mixed(1)))


def _void_topic(c: Collection, times: int) -> Iterator[Planted]:
    texts = ("null", "N/A", "test", "TODO", "[deleted]", "None", "undefined", "-- empty --", "NaN", "placeholder")
    yield from _new_topics(c, times, "void", lambda n: texts[n % len(texts)])


def _foreign_topic(c: Collection, times: int) -> Iterator[Planted]:
    yield from _new_topics(c, times, "foreign", lambda _: c.rng.choice(_FOREIGN))


# -- together ----------------------------------------------------------------------------------------------------------


def _copies(c: Collection, times: int, grade: str | None) -> Iterator[Planted]:
    texts = c.texts()
    for n, (topic, doc) in enumerate(c.rng.sample(c.judged(), times)):
        copy = f"twin-{n}"
        c.docs.append((copy, texts[doc] if n % 2 else texts[doc].replace(" ", "\n", 5)))
        if grade is not None:
            c.qrels.append((topic, copy, grade))
        yield _p(copy)


def _contradicted_copy(c: Collection, times: int) -> Iterator[Planted]:
    yield from _copies(c, times, "0")


def _unjudged_copy(c: Collection, times: int) -> Iterator[Planted]:
    yield from _copies(c, times, None)


def _redundant_copy(c: Collection, times: int) -> Iterator[Planted]:
    yield from _copies(c, times, "1")


def _own_document(c: Collection, times: int) -> Iterator[Planted]:
    for n, (topic, text) in enumerate(c.rng.sample(c.topics, times)):
        c.docs.append((topic if n % 2 else f"own-{n}", text if n % 4 else text.upper()))
        yield _p(topic)


_Q, _D, _T = ("qrels",), ("docs",), ("topics",)
_ALL = ("docs", "topics", "qrels")
#: The kinds of planted faults by name.
FAULTS: dict[str, Fault] = {
    "row that is not a judgment": Fault("broken-row", _broken_row, _Q),
    "judged document is gone": Fault("missing-document", _missing_document, _ALL),
    "document id spelt otherwise": Fault("respelt-document", _respelt_document, _ALL),
    "judged topic is gone": Fault("unknown-topic", _unknown_topic, _ALL),
    "topic id spelt otherwise": Fault("respelt-topic", _respelt_topic, _ALL),
    "topic and document swapped": Fault("swapped-ids", _swapped_ids, _ALL),
    "pair judged twice alike": Fault("repeated-pair", _repeated_pair, _Q),
    "pair judged twice differently": Fault("contradicted-pair", _contradicted_pair, _Q),
    "grade off the scale": Fault("off-scale-grade", _off_scale, _Q, alone=True),
    "judgments of another topic": Fault("twin-topics", _copied_topic, _Q),
    "document relevant for a quarter of the topics": Fault("hub-document", _hub, _Q),
    "topic without relevant documents": Fault("no-relevant", _without_relevant, _Q),
    "empty document": Fault("empty-document", _empty_document, _D),
    "one id, two texts": Fault("conflicting-id", _conflicting_id, _D),
    "one id twice": Fault("repeated-id", _repeated_id, _D),
    "blank in a document id": Fault("unwritable-document-id", _unwritable_id, _D),
    "bytes that are not UTF-8": Fault("undecodable-document", _undecodable, _D),
    "UTF-8 decoded as Latin-1": Fault("wrong-decoding", _wrong_decoding, _D),
    "replacement and control characters": Fault("lost-characters", _lost_characters, _D),
    "markup, script or entities": Fault("markup", _markup, _D),
    "error page, login, paywall": Fault("error-page", _error_page, _D),
    "placeholder text": Fault("placeholder", _placeholder, _D),
    "cut inside a word": Fault("cut-document", _cut, _D),
    "text twice in a row": Fault("doubled-text", _doubled, _D),
    "another script": Fault("foreign-script", _foreign, _D),
    "same text, other id": Fault("exact-duplicate", _exact_copy, _D),
    "one word changed": Fault("near-duplicate", _near_copy, _D),
    "document inside another": Fault("contained-document", _contained, _D),
    "footer in many documents": Fault("boilerplate", _boilerplate, _D),
    "many documents joined": Fault("long-document", _joined, _D),
    "empty topic": Fault("empty-topic", _empty_topic, _T),
    "one topic id, two texts": Fault("conflicting-topic", _conflicting_topic, _T),
    "one topic id twice": Fault("repeated-topic", _repeated_topic, _T),
    "blank in a topic id": Fault("unwritable-topic-id", _unwritable_topic, _T),
    "same topic text": Fault("duplicate-topic", _same_topic, _T),
    "topic with a small change": Fault("near-duplicate-topic", _near_topic, _T),
    "topic in the training split": Fault("topic-in-training", _trained_topic, ("topics", "train")),
    "topic inside a document": Fault("topic-in-document", _topic_in_document, ("docs", "topics")),
    "topic decoded wrongly": Fault("damaged-topic", _damaged_topic, _T),
    "markup in a topic": Fault("topic-markup", _marked_topic, _T),
    "placeholder topic": Fault("topic-placeholder", _void_topic, _T),
    "topic in another script": Fault("foreign-topic", _foreign_topic, _T, alone=True),
    "copy judged not relevant": Fault("contradicted-group", _contradicted_copy, ("docs", "qrels")),
    "copy not judged": Fault("unjudged-twin", _unjudged_copy, ("docs", "qrels")),
    "copy judged relevant": Fault("redundant-relevant", _redundant_copy, ("docs", "qrels")),
    "topic is a document": Fault("self-retrieval", _own_document, ("docs", "topics")),
}
