"""Texts that other documents have, too, and what they say about which version of a document is the damaged one."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl
import pytest

from truerank.audits.transfer.scanning.scores import id_column
from truerank.audits.transfer.scanning.text_evidence import favoured, new_text, repeated_texts, text_losses, word_runs
from truerank.rankers.reranking.document_texts import DocumentTexts
from truerank.records import Document
from truerank.text.page_faults import PageWords, WordWeights

WEIGHTS = WordWeights({}, 1.0)
TAPE = "A drum holds the index of the reels, and one block of the tape is read after a search of eleven seconds."
CLAY = "Shallow foundations follow the clay in dry summers, and cracks run from the corners of the windows."
TRAINS = "Night trains wait for the mail at the junction, where four lines of the northern railway meet."
LISTED = ("Queues at a single counter in winter", "Welding of thin plates under water", "A survey of harbour lights")


def forms(text: str) -> frozenset[str]:
    return frozenset(PageWords("", text).forms)


def repeated(one: Document, other: Document, documents: Sequence[Document], query: str) -> tuple[float, int]:
    new = new_text(one, other, forms(query), WEIGHTS, (one.doc_id, other.doc_id))
    found = repeated_texts([new], [[[one, *documents]], [[other], list(documents)]])
    return found.select("elsewhere", "copies").row(0)  # type: ignore[return-value]


def test_runs_stay_within_lines_and_sentences() -> None:
    document = Document("1", "", "Four words of title", f"One. {LISTED[0]}\n{LISTED[1]}. Three more words")
    runs = set(word_runs(document))
    assert ("four", "words", "of", "title") in runs and ("three", "more", "words") in runs
    assert ("queues", "at", "a", "single", "counter") in runs and ("in", "winter", "welding", "of", "thin") not in runs
    assert not any("one" in run for run in runs)


def test_what_other_documents_have() -> None:
    whole, tape = Document("1", body=TAPE), Document("1", body=CLAY)
    others = [Document(str(number), title=title) for number, title in enumerate(LISTED, 10)]
    # Nobody has the text; a document does not repeat itself; one has it; four do.
    assert repeated(tape, whole, others, "tape") == (0.0, 0)
    assert repeated(tape, whole, [*others, Document("2", body=f"Above. {CLAY} Below.")], "clay") == (1.0, 1)
    assert repeated(tape, whole, [Document(f"c{n}", body=CLAY) for n in range(4)], "clay") == (1.0, 4)
    # A list of titles is that of several documents, none of which has most of it.
    related = Document("1", body="\n".join((TAPE, *LISTED)))
    assert repeated(related, whole, others, "tape") == (1.0, 0)
    # What matches the query counts: here it is nobody else's.
    mixed = Document("1", body="\n".join((TAPE, *LISTED)))
    assert repeated(mixed, Document("1", body="Gone."), others, "index of reels on a drum") == (0.0, 0)


def little_else(texts: Sequence[str], old: Sequence[Document], new: Sequence[Document]) -> int:
    """How many documents of the new version have little but the new text of document 1."""
    before, after = texts
    one, other = Document("1", title=LISTED[0], body=before), Document("1", title=LISTED[0], body=after)
    text = new_text(other, one, frozenset(), WEIGHTS, ("1", "1"), version=1)
    return int(repeated_texts([text], [[[one, *old]], [[other, *new]]])["alone"].item())


def test_documents_that_have_little_but_a_text() -> None:
    shown = "The cupboard stays shut until the key is back. Ask the porter for another at the gate by day."
    same = [Document(f"c{number}", body=shown) for number in range(3)]
    before = [Document(one.doc_id, body=CLAY) for one in same]
    assert little_else((TAPE, shown), before, same) == 3
    # A number that changes from page to page is nearly the same; a page that has more is not.
    numbered = [
        Document(one.doc_id, body=one.body.replace("by day", f"{number} by day")) for number, one in enumerate(same)
    ]
    assert little_else((TAPE, shown), before, numbered) == 3
    fuller = [Document(one.doc_id, body=f"{one.body} {TAPE} {CLAY} {TRAINS}") for one in same]
    assert little_else((TAPE, shown), before, fuller) == 0
    # The judged version is another one; and what a document has in both is a page, to which redirects lead.
    assert little_else((TAPE, shown), same, before) == 0
    assert little_else((TAPE, shown), [*before[:2], same[2]], same) == 0


def test_a_text_on_the_subject_is_none_that_stands_in_place_of_pages() -> None:
    """Names tell a translation from a notice; the words of a title that was kept, and frequent ones, tell nothing."""
    weights = WordWeights(dict.fromkeys(("gate", "window", "by", "a", "or", "at", "the"), 1.0), 6.0)
    page = Document(
        "1", title="Memoirs of Zuse", body="Konrad Zuse built Plankalkül in Hinterstein by a gate and window."
    )
    for body, about in (
        ("Konrad Zuse schrieb Plankalkül, während draußen Schnee lag.", True),
        ("Der Schrank bleibt zu, bis jemand den Schlüssel bringt.", False),
        ("Ask for Konrad at the gate or the window by day.", False),
    ):
        other = Document("1", title=page.title, body=body)
        assert new_text(other, page, frozenset(), weights, ("1", "1")).on_subject is about
        # The query's words count as the page's do.
        assert new_text(other, page, forms(body), weights, ("1", "1")).on_subject
    shown = "Konrad Zuse schrieb Plankalkül, während draußen Schnee lag."
    texts = [new_text(Document("1", body=shown), page, frozenset(), one, ("1", "1")) for one in (weights, WEIGHTS)]
    others = [Document(f"c{number}", body=shown) for number in range(3)]
    assert repeated_texts(texts, [others and [others]])["alone"].to_list() == [0, 3]


def read_once(documents: Sequence[Document], reads: list[int]) -> Iterator[Sequence[Document]]:
    reads.append(len(documents))
    yield documents


def losses_of(
    folder: Path, old: Sequence[Document], new: Sequence[Document], query: str
) -> tuple[pl.DataFrame, list[int]]:
    texts = {}
    for name, documents in (("old", old), ("new", new)):
        texts[name] = folder / f"{name}.sqlite"
        texts[name].unlink(missing_ok=True)
        with DocumentTexts.writing(texts[name]) as add:
            add(documents[:1])
    rows = pl.DataFrame({"row": [0], "query": [query], id_column("old"): ["1"], id_column("new"): ["1"]})
    rows = rows.with_columns(pl.col("row").cast(pl.UInt32))
    reads: list[int] = []
    every = {"old": read_once(old, reads), "new": read_once(new, reads)}
    return text_losses(rows, [("old", "new")], texts, every), reads


def sides(losses: pl.DataFrame, old: float, new: float, *, support: bool = False) -> list[str]:
    """The versions for which the texts speak, with these probabilities of relevance."""
    found = []
    for better, of_better, of_worse in (("old", old, new), ("new", new, old)):
        beside = losses.with_columns(pl.lit(of_better).alias("max_better"), pl.lit(of_worse).alias("max_worse"))
        found += [better] * len(favoured(beside, better, "old", odds=True, support=support))
    return found


def test_a_replaced_text_is_the_one_that_another_document_has(tmp_path: Path) -> None:
    old, new = Document("1", body=TAPE), Document("1", body=CLAY)
    alone, _ = losses_of(tmp_path, [old], [new], "reels and foundations")
    # Equal scores: the judged version. The odds of the paper are a little above e.
    assert sides(alone, 0.5, 0.5) == ["old"] and sides(alone, 0.3, 0.9) == ["new"]
    assert sides(alone, 0.4, 0.6) == []
    where, reads = losses_of(tmp_path, [old], [new, Document("7", body=CLAY)], "reels and foundations")
    assert sides(where, 0.3, 0.9) == ["old"] and reads == [1, 2]
    other, _ = losses_of(tmp_path, [old, Document("7", body=TAPE)], [new], "reels and foundations")
    assert sides(other, 0.5, 0.5) == ["new"]


def test_a_body_that_does_not_speak_of_its_title(tmp_path: Path) -> None:
    title = "Cracks from the corners of windows"
    old, new = Document("1", title=title, body=TAPE), Document("1", title=title, body=CLAY)
    losses, _ = losses_of(tmp_path, [old], [new], "reels and foundations")
    assert sides(losses, 0.5, 0.5) == ["new"]
    # The words of the address are taken for the title's where a text has them.
    old, new = (Document("1", "http://site.org/cracks-corners-windows/", body=text) for text in (TAPE, CLAY))
    assert sides(losses_of(tmp_path, [old], [new], "reels and foundations")[0], 0.5, 0.5) == ["new"]


def test_lists_of_other_documents_are_no_loss(tmp_path: Path) -> None:
    old, new = Document("1", body=TAPE), Document("1", body="\n".join((TAPE, *LISTED)))
    others = [Document(str(number), title=title) for number, title in enumerate(LISTED, 10)]
    query = "harbour lights and welding of plates"
    assert sides(losses_of(tmp_path, [old], [new], query)[0], 0.5, 0.5) == ["new"]
    losses, _ = losses_of(tmp_path, [old, *others], [new, *others], query)
    assert sides(losses, 0.5, 0.5) == [] and sides(losses, 0.5, 0.5, support=True) == ["new"]


@pytest.mark.parametrize("body", ["", " \n", ".", "N/A"])
@pytest.mark.parametrize("title", ["", "Magnetic tape with reels"])
def test_an_emptied_page_is_named_whatever_its_scores(tmp_path: Path, title: str, body: str) -> None:
    old, new = Document("1", title="Magnetic tape with reels", body=TAPE), Document("1", title=title, body=body)
    losses, _ = losses_of(tmp_path, [old], [new], "search for a block")
    assert sides(losses, 0.5, 0.5) == sides(losses, 0.2, 0.9) == ["old"]
    losses, _ = losses_of(tmp_path, [new], [old], "search for a block")
    assert sides(losses, 0.9, 0.2) == ["new"]
    # Copies of what was there do not make an empty page a whole one.
    copies = [Document(f"c{number}", body=TAPE) for number in range(4)]
    losses, _ = losses_of(tmp_path, [old, *copies], [new, *copies], "search for a block")
    assert sides(losses, 0.5, 0.5) == ([] if title else ["old"])


def test_nothing_is_read_where_versions_say_the_same(tmp_path: Path) -> None:
    losses, reads = losses_of(tmp_path, [Document("1", body=TAPE)], [Document("1", body=TAPE)], "tape")
    assert losses.is_empty() and reads == []


@pytest.mark.parametrize("body", ["Views: 1,204", "", "Printed in the archive."])
def test_a_title_alone_is_not_lost_where_it_stays(tmp_path: Path, body: str) -> None:
    old, new = Document("1", title="Latching counters"), Document("1", title="Latching counters", body=body)
    assert losses_of(tmp_path, [old], [new], "counters of latching type")[0].is_empty()


def test_what_is_passed_over_has_nothing_that_is_looked_for() -> None:
    """Documents are put aside by their words, without lines; a loop over all runs of all documents finds the same."""
    draw = random.Random(7)
    words = "tape reel drum clay wall roof mail rail four line lamp dock".split()

    lines = [" ".join(draw.choices(words, k=draw.randint(2, 9))) for _ in range(90)]

    def made(number: int) -> Document:
        body = "".join(line + draw.choice((".\n", ". ", "! ", " ")) for line in draw.sample(lines, 3))
        return Document(str(number), title=" ".join(draw.choices(words, k=3)), body=body)

    documents = [made(number) for number in range(60)]
    pairs = list(zip(documents[:20], documents[20:40], strict=True))
    texts = [new_text(one, other, forms("tape clay"), WEIGHTS, (one.doc_id, one.doc_id)) for one, other in pairs]
    found = repeated_texts(texts, [[documents], [documents[30:]]])
    having = {one.doc_id: {hash(run) for run in word_runs(one)} for one in documents}
    for text, (elsewhere, copies) in zip(texts, found.select("elsewhere", "copies").iter_rows(), strict=True):
        others = [runs for doc_id, runs in having.items() if doc_id != text.ids[0]]
        assert elsewhere == len(text.asked.intersection(*[set().union(*others)])) / max(1, len(text.asked))
        shared = [len(runs & text.runs) for runs in others]
        assert copies == sum(count > 0 and count >= 0.8 * len(text.runs) for count in shared)
    assert 0 < found["elsewhere"].mean() < 1 and found["copies"].max() > 0  # type: ignore[operator]
