"""Topics that repeat the words of their relevant documents."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import numpy as np
import pytest

import truerank
from truerank.audits import collection
from truerank.audits.collection.echo import WordOverlap, astray, longest_run, shared_words
from truerank.records import Document

SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("ab", "ek", "im", "ol", "ur")]


def vocabulary(count: int) -> list[str]:
    """Different words that no stemmer shortens."""
    return [first + second for first in SYLLABLES for second in SYLLABLES][:count]


def documents(count: int = 300, seed: int = 3) -> dict[str, str]:
    words, draw = np.array(vocabulary(2_000)), np.random.default_rng(seed)
    return {f"d{at}": " ".join(words[draw.choice(2_000, 40, replace=False)]) for at in range(count)}


def questions(docs: dict[str, str], *, copied: int, own: int, seed: int = 4) -> dict[str, str]:
    """One for each of the first documents: so many words in a row out of it, and so many others."""
    words, draw = np.array(vocabulary(2_000)), np.random.default_rng(seed)
    found = {}
    for doc in list(docs)[:60]:
        start = int(draw.integers(0, 30))
        others = words[draw.choice(2_000, own, replace=False)].tolist()
        found[f"q{doc}"] = " ".join(["what is the", *docs[doc].split()[start : start + copied], *others])
    return found


def audited(docs: dict[str, str], topics: dict[str, str]):
    relevant = {topic: [topic[1:]] for topic in topics}
    documents = (Document(one, body=text) for one, text in docs.items())
    return shared_words(WordOverlap(topics, relevant).read(documents))


def test_shares_and_places_are_those_of_plain_loops() -> None:
    docs = documents()
    topics = questions(docs, copied=3, own=3)
    seen = WordOverlap(topics, {topic: [topic[1:]] for topic in topics}).read(
        Document(o, body=t) for o, t in docs.items()
    )
    content = {topic: set(text.split()) - {"what", "is", "the"} for topic, text in topics.items()}
    held = {doc: set(text.split()) for doc, text in docs.items()}
    assert len(seen.relevant) == len(topics)
    for one in seen.relevant:
        topic = seen.topics[one.topic]
        counts = [len(content[topic] & words) for words in held.values()]
        own = len(content[topic] & held[one.doc_id])
        ahead, equal = sum(each > own for each in counts), sum(each == own for each in counts)
        assert (one.shared, seen.place(one.topic, own)) == (own, ahead + (equal + 1) / 2)
        assert seen.share(one.topic) == pytest.approx(np.mean(counts) / len(content[topic]))


@pytest.mark.parametrize(
    ("one", "other", "run"),
    [([1, 2, 3], [9, 1, 2, 3, 9], 3), ([1, -5, 2], [1, -5, 2], 2), ([1, 2], [2, 1], 1), ([1], [], 0), ([], [1], 0)],
)
def test_the_longest_run_counts_content_words(one: list[int], other: list[int], run: int) -> None:
    assert longest_run(one, other) == run


@pytest.mark.parametrize("seed", range(20))
def test_the_longest_run_is_that_of_all_pairs_of_places(seed: int) -> None:
    draw = random.Random(seed)
    one, other = ([draw.randrange(-3, 4) for _ in range(size)] for size in (9, 40))
    runs = [
        sum(word >= 0 for word in one[start:stop])
        for start, stop in itertools.combinations(range(len(one) + 1), 2)
        if any(other[at : at + stop - start] == one[start:stop] for at in range(len(other)))
    ]
    assert longest_run(one, other) == max(runs, default=0)


def test_a_document_without_a_word_of_its_topic_has_no_run() -> None:
    seen = WordOverlap({"q": "what is a zeppelin balloon harbour castle"}, {"q": ["d"]})
    seen.read([Document("d", body="what is a bicycle bell"), Document("e", body="")])
    assert [(one.shared, one.run) for one in seen.relevant] == [(0, 0)]


def test_copied_questions_are_told_and_others_are_not() -> None:
    docs = documents()
    facts, found = audited(docs, questions(docs, copied=6, own=1))
    assert facts is not None
    assert facts["echo"] == [1.0, 1.0, 1.0]
    # People's topics of public collections have 5% and 7%.
    assert all(one["echo"][0] == pytest.approx(1 - own) and one["echo"][1] > 0.8 for one, own in
               zip(facts["people"].values(), (0.0477, 0.0699), strict=True))  # fmt: skip
    (echo,) = found
    assert (echo.kind, echo.count, echo.of) == ("echo", 60, 60)
    assert "7 in one piece" not in str(echo.rows["detail"][0]) and "6 in one piece" in str(echo.rows["detail"][0])
    facts, found = audited(docs, questions(docs, copied=2, own=5))
    assert facts is not None and facts["echo"][0] == 0 and not found


def test_too_few_topics_or_words_show_nothing() -> None:
    docs = documents()
    assert audited(docs, dict(list(questions(docs, copied=6, own=1).items())[:9])) == (None, [])
    assert audited(docs, questions(docs, copied=3, own=0)) == (None, [])
    assert audited({}, questions(docs, copied=6, own=0)) == (None, [])


def test_the_audit_shows_echoes(tmp_path: Path) -> None:
    docs = documents()
    topics = questions(docs, copied=6, own=1)
    for name, texts in (("docs", docs), ("topics", topics)):
        rows = (json.dumps({"_id": one, "text": text}) + "\n" for one, text in texts.items())
        (tmp_path / f"{name}.jsonl").write_text("".join(rows))
    found = collection.audit(
        docs=str(tmp_path / "docs.jsonl"), topics=str(tmp_path / "topics.jsonl"),
        qrels={topic: {topic[1:]: 1} for topic in topics}, out=tmp_path / "out",
    )  # fmt: skip
    assert "COLL19" in {one.kind.code for one in found.findings}
    assert "Topics and the words of documents" in (tmp_path / "out" / "report.html").read_text()


def misjudged(wrong: int, topics: int = 40, of_topic: int = 8) -> tuple[dict, dict, dict, set[str]]:
    """Topics of six words, their relevant documents, all texts, and the topics whose relevant documents are random.

    Other relevant documents have half of their topic's words.
    """
    draw, words = random.Random(8), vocabulary(1_500)
    asked = {f"q{at}": draw.sample(words, 6) for at in range(topics)}
    texts, relevant = dict[str, str](), dict[str, list[str]]()
    for topic, own in asked.items():
        relevant[topic] = [f"{topic}-{at}" for at in range(of_topic)]
        texts |= {one: " ".join([*draw.sample(own, 3), *draw.sample(words, 40)]) for one in relevant[topic]}
    texts |= {f"other{at}": " ".join(draw.sample(words, 40)) for at in range(600)}
    moved = draw.sample([*asked], wrong)
    relevant |= {topic: draw.sample([*texts], of_topic) for topic in moved}
    return {topic: " ".join(own) for topic, own in asked.items()}, relevant, texts, {*moved}


def judged(wrong: int, topics: int = 40, of_topic: int = 8) -> tuple[WordOverlap, set[str]]:
    asked, relevant, texts, moved = misjudged(wrong, topics, of_topic)
    return WordOverlap(asked, relevant).read(Document(one, body=text) for one, text in texts.items()), moved


@pytest.mark.parametrize("wrong", [0, 12])
def test_the_audit_names_random_judgments_or_says_how_many_it_would_not_see(tmp_path: Path, wrong: int) -> None:
    asked, relevant, texts, moved = misjudged(wrong)
    for name, said in (("docs", texts), ("topics", asked)):
        rows = (json.dumps({"_id": one, "text": text}) + "\n" for one, text in said.items())
        (tmp_path / f"{name}.jsonl").write_text("".join(rows))
    qrels = {topic: dict.fromkeys(docs, 1) | {f"other{at}": 0} for at, (topic, docs) in enumerate(relevant.items())}
    given = {name: str(tmp_path / f"{name}.jsonl") for name in ("docs", "topics")}
    found = collection.audit(**given, qrels=qrels)
    named = {*found.rows("random-judgments")["topic_id"]}
    verdict = next(one for one in found.verdicts if one.subject == "judgments")
    assert named <= moved and len(named) >= wrong / 2
    assert verdict.word == ("UNKNOWN" if wrong else "SOUND")
    assert wrong or "wrong judgments in fewer than 25 of 100 topics" in verdict.sentence
    # In a check they forbid a plain word.
    draw = random.Random(2)
    runs = {
        name: {
            topic: {one: draw.random() + sight * (one in relevant[topic]) for one in (*own, *draw.sample([*texts], 40))}
            for topic, own in qrels.items()
        }
        for name, sight in (("good", 0.6), ("plain", 0.1))
    }
    checked = truerank.check(
        qrels=qrels, run=runs, system="good", baseline="plain", docs=given["docs"], test=given["topics"]
    ).conclusion
    said = "whose relevant documents have no more of their words than any documents" in checked.reason
    assert said == bool(wrong) and (checked.word == "HOLDS EXCEPT" or not wrong)


@pytest.mark.parametrize(("wrong", "named"), [(0, False), (1, False), (10, True), (20, True)])
def test_topics_with_random_judgments_are_named_where_they_are_many(wrong: int, named: bool) -> None:
    seen, moved = judged(wrong)
    found = astray(seen)
    assert found is not None and found.of == 40 and bool(found.count) is named
    assert {*found.rows["topic_id"]} <= moved and found.count >= wrong * named / 2


@pytest.mark.parametrize(("topics", "of_topic"), [(9, 8), (40, 1)])
def test_few_topics_or_relevant_documents_say_nothing_of_judgments(topics: int, of_topic: int) -> None:
    assert astray(judged(topics // 3, topics, of_topic)[0]) is None
