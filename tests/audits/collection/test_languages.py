"""Documents in another language of the same script."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from collection_example import docs

from truerank import collection
from truerank.audits.collection import languages
from truerank.audits.collection.languages import LanguageSample, language_of
from truerank.audits.collection.results import CollectionAudit


class Tongue:
    """A language that is made up: short words of grammar that make nearly half of a text, and long ones beside them."""

    def __init__(self, seed: int, consonants: str, vowels: str) -> None:
        self._draw = random.Random(seed)
        self._consonants, self._vowels = consonants, vowels
        self.grammar = [*dict.fromkeys(self.word(1) for _ in range(60))][:25]
        self.content = [self.word(self._draw.choice([2, 3, 3, 4])) for _ in range(900)]

    def word(self, syllables: int) -> str:
        draw = self._draw
        made = "".join(draw.choice(self._consonants) + draw.choice(self._vowels) for _ in range(syllables))
        return made + draw.choice(["", self._consonants[0]])

    def said(self, words: int, grammar: float = 0.45) -> str:
        chosen = [self.often(self.grammar if self._draw.random() < grammar else self.content) for _ in range(words)]
        return f"{' '.join(chosen).capitalize()}."

    def text(self) -> str:
        return " ".join(self.said(self._draw.randint(6, 14)) for _ in range(self._draw.randint(2, 6)))

    def often(self, words: Sequence[str]) -> str:
        return words[int(len(words) * self._draw.random() ** 2)]


def _first() -> Tongue:
    return Tongue(1, "bdgklmnrst", "aeiou")


def _second() -> Tongue:
    return Tongue(2, "fhjpvwxzcq", "aeiouyäö")


def _audit(
    tmp_path: Path, texts: Sequence[str], topics: Sequence[str] = (), qrels: Sequence[str] = ()
) -> CollectionAudit:
    given = {"docs": docs(tmp_path / "docs.jsonl", [(f"d{at}", one) for at, one in enumerate(texts)])}
    for name, lines in (("topics", [f"q{at}\t{one}" for at, one in enumerate(topics)]), ("qrels", qrels)):
        if lines:
            (tmp_path / f"{name}.tsv").write_text("".join(f"{line}\n" for line in lines))
            given[name] = str(tmp_path / f"{name}.tsv")
    return collection.audit(**given)


@pytest.mark.parametrize("share", [0.02, 0.45])
def test_documents_in_a_language_that_no_topic_has_are_named(tmp_path: Path, share: float) -> None:
    first, second = _first(), _second()
    others = round(share * 600)
    texts = [first.text() for _ in range(600 - others)] + [second.text() for _ in range(others)]
    found = _audit(tmp_path, texts, [first.said(7) for _ in range(40)])
    named = found.rows("foreign-language")
    ids = {f"d{at}" for at in range(600 - others, 600)}
    assert ids.issuperset(named["doc_id"]) and len(named) >= 0.9 * others
    finding = found.finding("foreign-language")
    assert finding is not None and finding.kind.severity == "doubt" and finding.count == len(named)
    assert all("no topic is" in one for one in named["detail"])
    assert ids.isdisjoint(found.rows("foreign-words")["doc_id"])


@pytest.mark.parametrize(("others", "named"), [(60, True), (200, False)])
def test_without_topics_few_documents_are_in_another_language(tmp_path: Path, others: int, named: bool) -> None:
    first, second = _first(), _second()
    found = _audit(tmp_path, [first.text() for _ in range(500)] + [second.text() for _ in range(others)])
    assert bool(len(found.rows("foreign-language"))) is named
    # Of several languages nobody knows which are meant.
    note = found.finding("several-scripts")
    assert (note is None) is named and (note is None or note.count >= 0.9 * others)


def test_topics_or_relevant_documents_in_both_languages_are_meant(tmp_path: Path) -> None:
    first, second, others = _first(), _second(), 50
    texts = [first.text() for _ in range(300)] + [second.text() for _ in range(others)]
    topics = [first.said(7) for _ in range(40)]
    asked = _audit(tmp_path, texts, [*topics[:35], *(second.said(7) for _ in range(5))])
    judged = _audit(tmp_path, texts, topics, [f"q{at} 0 d{place} 1" for at in range(40) for place in (at, 300 + at)])
    assert asked.finding("foreign-language") is None and judged.finding("foreign-language") is None
    # Nobody asks in it, though it was judged relevant: that is told.
    told = judged.finding("several-scripts")
    assert told is not None and told.count >= 0.9 * others and asked.finding("several-scripts") is None
    documents = next(one for one in judged.verdicts if one.subject == "documents")
    assert "in other scripts or languages than the usual one (DOCS21" in documents.sentence


def _name(tongue: Tongue, first: Sequence[str]) -> str:
    return f"{tongue.often(first)} {tongue.word(2)}"


_INNOCENT: dict[str, Callable[[Tongue], list[str]]] = {
    "names": lambda other: [f"{_name(other, other.grammar).title()}," for _ in range(20)],
    "authors": lambda other: [
        f"{other.word(2).title()} {other.word(3).title()}, {other.often('JRMDSAWECBHL')}.;" for _ in range(16)
    ],
    "names in small letters": lambda other: [_name(other, other.content[:40]) for _ in range(20)],
    "code": lambda other: [f"if ({other.word(2)}_{other.word(2)} != a[i]) {{ return x; }}" for _ in range(8)],
    "a table": lambda other: [f"gdp {len(other.word(2)) / 7:.3f} 12" for _ in range(20)],
    "a form": lambda other: [f"name {other.word(3)} place {other.word(3)} weight {other.word(3)}" for _ in "1234"],
    "three words": lambda other: [other.said(3)],
}  # fmt: skip


@pytest.mark.parametrize("kind", _INNOCENT)
def test_texts_that_are_no_language_are_not_named(tmp_path: Path, kind: str) -> None:
    first, other = _first(), _second()
    texts = [first.text() for _ in range(400)]
    texts += [" ".join(_INNOCENT[kind](other)) for _ in range(120)]
    found = _audit(tmp_path, texts, [first.said(7) for _ in range(40)])
    assert found.finding("foreign-language") is None


@pytest.mark.parametrize("grammar", [0.45, 0.0])
def test_one_language_and_texts_without_its_grammar_are_no_others(tmp_path: Path, grammar: float) -> None:
    first = _first()
    texts = [first.text() for _ in range(400)] + [first.said(40, 0.0).upper() for _ in range(40)]
    texts = texts if grammar else [first.said(40, 0.0) for _ in range(400)]
    assert _audit(tmp_path, texts, [first.said(7) for _ in range(40)]).finding("foreign-language") is None


def test_quotations_in_another_language_are_none(tmp_path: Path) -> None:
    first, second = _first(), _second()
    texts = [first.text() for _ in range(400)] + [f"{first.said(30)} {second.said(12)}" for _ in range(60)]
    assert _audit(tmp_path, texts, [first.said(7) for _ in range(40)]).finding("foreign-language") is None


def test_a_sample_of_all_texts_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(languages, "_SAMPLE", 300)
    first, second, sample = _first(), _second(), LanguageSample()
    for tongue, count in ((first, 1500), (second, 500)):  # the second one's are appended
        for _ in range(count):
            sample.add(tongue.text())
    assert 300 <= len(sample._texts) <= 601
    found = sample.languages()
    assert len(found) == 2 and {*found[0].keys[:5]} <= {*first.grammar}
    assert [language_of(tongue.text(), found) for tongue in (first, second)] == [0, 1]
