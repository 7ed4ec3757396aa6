"""Analysers and the index: what becomes a term, what lies on the disk, and that nothing half-written stays there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from places import ROOT
from truerank.core.result import summary
from truerank.errors import InputError
from truerank.lexical import Analyser, Index, Searcher, build_index, building
from truerank.lexical.analysis import TOKENISERS
from truerank.lexical.building import ArrayFile
from truerank.lexical.index import LETTERS, NUMBER, WORD, term_flags
from truerank.records import Document
from truerank.sources.documents import open_documents

DOCS = [
    ("d3", "The cats' cat sat; cats!"),
    ("d1", "Überraschung naïve U.S.A. 3.14 cats"),
    ("d2", "the and of"),
    ("d10", "dogs' dog"),
]


@pytest.fixture
def docs(tmp_path: Path) -> str:
    path = tmp_path / "docs.tsv"
    path.write_text("".join(f"{name}\t{text}\n" for name, text in DOCS), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The U.S.A.'s foo_bar isn't here", ["u.s.a", "s", "foo_bar", "isn't", "here"]),
        ("1,000.50 is 3.14; 2-3 a:b C++ __ x_", ["1,000.50", "3.14", "2", "3", "a:b", "c", "x_"]),
        ("possibly geology us s technologies ably", ["possibl", "geologi", "us", "s", "technolog", "abli"]),
        ("Müllers naïve café’s", ["müller", "naïv", "café"]),
        ("東京 ひら カタカナ 한국어 नमस्ते", ["東", "京", "ひ", "ら", "カタカナ", "한국어", "नमस्ते"]),
        (
            "_a a_ a__b 1_000 x.1 1.x a'1 e.g. dogs' www.a-b.com/x?y=1 a@b.de #tag",
            "_a a_ a__b 1_000 x 1 1 x 1 e.g dog www.a b.com x y 1 b.de tag".split(),
        ),
        ("ﬁne Ⅷ ٣٫٤ ภาษาไทย", ["ﬁne", "ⅷ", "٣٫٤", "ภาษาไทย"]),
        ("", []),
    ],
)
def test_the_lucene_like_analyser(text: str, terms: list[str]) -> None:
    """Terms as Lucene's English analysis gives them (printed by Anserini 1.7.1)."""
    assert Analyser()(text) == terms


def test_long_words_are_cut_as_lucene_cuts_them() -> None:
    assert [len(word) for word in TOKENISERS["lucene"]("a" * 600)] == [255, 255, 90]
    assert TOKENISERS["terrier"]("aaaa bbb abcde12345 ab1234 " + "x1" * 11) == ["bbb", "ab1234"]


def test_stemmers_and_stopwords(tmp_path: Path) -> None:
    text = "Running generalizations of the utilities"
    assert Analyser("alphanumeric", "none", "none")(text) == ["running", "generalizations", "of", "the", "utilities"]
    assert Analyser("letters", "none", "none")("Über 4ever x self-made it's") == ["über", "ever", "self", "made", "it"]
    assert Analyser("alphanumeric", "grammar", "english")(text) == ["run", "general", "util"]
    assert Analyser("whitespace", "none", "none")("Kept AS is") == ["Kept", "AS", "is"]
    (tmp_path / "own.txt").write_text("# mine\nrunning\nOF | comment\n")
    own = Analyser("alphanumeric", str(tmp_path / "own.txt"), "none")
    assert own(text) == ["generalizations", "the", "utilities"]
    (tmp_path / "own.txt").unlink()
    assert Analyser.from_json(json.loads(json.dumps(own.json()))) == own
    assert own.name != Analyser("alphanumeric", "none", "none").name
    (tmp_path / "bad.txt").write_text("two words\n")
    for arguments, fault in (
        (("syllables",), "unknown tokeniser"),
        (("lucene", "mine"), "unknown list of stopwords 'mine'"),
        (("lucene", "none", "lovins"), "unknown stemmer"),
        (("lucene", str(tmp_path / "bad.txt")), r"bad.txt:1: 2 words in a line"),
    ):
        with pytest.raises(InputError, match=fault):
            Analyser(*arguments)


def test_krovetz() -> None:
    pytest.importorskip("krovetzstemmer")
    krovetz = Analyser("alphanumeric", "none", "krovetz")
    assert krovetz("utilities photocopies über " + "z" * 200) == ["utility", "photocopy", "über", "z" * 200]


@given(st.text(max_size=80), st.sampled_from(sorted(TOKENISERS)))
@settings(max_examples=150)
def test_any_text_becomes_words_of_it(text: str, tokeniser: str) -> None:
    words = TOKENISERS[tokeniser](text)
    whole, at = text if tokeniser != "terrier" else text.lower(), 0
    for word in words:
        at = whole.index(word, at) + len(word)
    for term in Analyser(tokeniser, "lucene", "porter")(text):
        assert term and term.split() == [term]


def test_what_the_index_holds(docs: str, tmp_path: Path) -> None:
    index = build_index(docs, tmp_path / "index")
    terms = [index.term(number) for number in range(index.terms)]
    assert terms == sorted(terms) == ["3.14", "cat", "dog", "naïv", "sat", "u.s.a", "überraschung"]
    cat = index.term_number("cat")
    assert cat is not None and index.term_number("bird") is None
    documents, counts = index.postings(cat)
    assert dict(zip(index.doc_ids(documents), counts[:, 0].tolist(), strict=True)) == {"d3": 3, "d1": 1}
    assert index.lengths[:, 0].tolist() == [4, 5, 0, 2]
    assert index.ranks.tolist() == [3, 0, 2, 1]  # d1, d10, d2, d3
    assert [index.doc_id(number) for number in index.by_rank] == ["d1", "d10", "d2", "d3"]
    places, held, counts = index.vectors(np.array([1, 3]))
    assert [(int(p), index.term(int(t)), int(c)) for p, t, c in zip(places, held, counts[:, 0], strict=True)] == [
        (0, "3.14", 1), (0, "cat", 1), (0, "naïv", 1), (0, "u.s.a", 1), (0, "überraschung", 1), (1, "dog", 2),
    ]  # fmt: skip
    assert Searcher(index).documents == 3
    assert index.json()["documents"] == 4 and "4 documents" in summary(index).show()
    made_of = [WORD | LETTERS, 0, WORD | NUMBER, WORD, 0, 0, NUMBER, 0]
    assert term_flags(pl.Series(["cat", "c", "12", "a1", "u.s.a", "ü", "7", "١٢"])).tolist() == made_of


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@given(st.lists(st.lists(st.sampled_from("ab ab bc über x y z 12".split()), max_size=7), min_size=1, max_size=30))
@settings(max_examples=11)
def test_the_bytes_do_not_depend_on_how_runs_are_cut(texts: list[list[str]]) -> None:
    import tempfile

    texts[0] = ["first", *texts[0]]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "d.tsv").write_text("".join(f"d{n}\tx{n}\t{' '.join(words)} end\n" for n, words in enumerate(texts)))
        source = open_documents(str(folder / "d.tsv"))
        blocks = {size: list(source.batches(size)) for size in (1, 1024)}
        built = []
        for run_postings in (1, 5, 1 << 22):
            # Small blocks, so that runs of a few postings come about.
            source.batches = lambda size=0: iter(blocks[1])  # type: ignore[method-assign,misc]
            index = build_index(
                source, folder / f"i{run_postings}", fields=("title", "body"), run_postings=run_postings
            )
            built.append(content(index.folder))
        with pytest.MonkeyPatch.context() as patch:
            for name, size in (("_TERMS", 1), ("_FEWEST_TERMS", 2), ("_CHUNK", 3)):
                patch.setattr(building, name, size)  # terms are merged in many pieces, postings in many chunks
            source.batches = lambda size=0: iter(blocks[1])  # type: ignore[method-assign,misc]
            built.append(
                content(build_index(source, folder / "pieces", fields=("title", "body"), run_postings=5).folder)
            )
        assert built[0] == built[1] == built[2] == built[3]
        counts = Counter(word for words in texts for word in [*words, "end"])
        index = Index(folder / "i1")
        for term, count in counts.items():
            number = index.term_number(Analyser()(term)[0])
            assert number is not None
            assert index.postings(number)[1].sum() == index.totals[number].sum() >= count


def test_worker_processes_give_the_same_bytes(docs: str, tmp_path: Path) -> None:
    (tmp_path / "more.tsv").write_text("".join(f"m{n}\tword{n % 700} and {n}\n" for n in range(2100)))
    one = build_index(str(tmp_path / "more.tsv"), tmp_path / "one")
    two = build_index(str(tmp_path / "more.tsv"), tmp_path / "two", workers=2)
    assert content(one.folder) == content(two.folder)
    assert one.fingerprint == two.fingerprint


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a b\tx y\n", "the id 'a b' holds a blank"),
        ("a\tthe\nb\tof\n", "no document has a term"),
        ("a\tx\nb\ty\na\tother\n", r"bad.tsv:3: the document 'a' occurs in line 1"),
    ],
)
def test_faults_of_documents(tmp_path: Path, text: str, fault: str) -> None:
    (tmp_path / "bad.tsv").write_text(text)
    with pytest.raises(InputError, match=fault):
        build_index(str(tmp_path / "bad.tsv"), tmp_path / "index")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.tsv"]


def test_an_id_that_comes_back_much_later_is_found_at_the_end(docs: str, tmp_path: Path) -> None:
    source = open_documents(docs)
    blocks = list(source.batches(2))
    source.batches = lambda size=0: iter([*blocks, blocks[0][:1]])  # type: ignore[method-assign,misc]
    with pytest.raises(InputError, match=r"the id 'd3' occurs twice \(the other time with the document number 5\)"):
        build_index(source, tmp_path / "index")


def test_faults_of_folders_and_fields(docs: str, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("precious")
    with pytest.raises(InputError, match="holds something that is not an index"):
        build_index(docs, tmp_path / "full")
    assert (tmp_path / "full" / "thesis.txt").read_text() == "precious"
    for fields, fault in ((("a=b",), "no 'b'"), (("title", "title"), "different names"), (("x=",), "is not a field")):
        with pytest.raises(InputError, match=fault):
            build_index(docs, tmp_path / "index", fields=fields)
    with pytest.raises(InputError, match="no index there"):
        Index(tmp_path / "full")
    index = build_index(docs, tmp_path / "index")
    build_index(docs, tmp_path / "index", analyser=Analyser(stemmer="none"))
    assert Index(tmp_path / "index").analyser.stemmer == "none" != index.analyser.stemmer
    manifest = json.loads((tmp_path / "index" / "manifest.json").read_text())
    (tmp_path / "index" / "manifest.json").write_text(json.dumps({**manifest, "version": 99}))
    with pytest.raises(InputError, match="an index of version 99, not 2"):
        Index(tmp_path / "index")
    (tmp_path / "index" / "manifest.json").write_text(json.dumps(manifest))
    with (tmp_path / "index" / "postings.counts.npy").open("r+b") as file:
        file.truncate(100)
    with pytest.raises(InputError, match=r"postings.counts.npy: not as it was written. build the index again"):
        Index(tmp_path / "index")


def test_an_interrupted_build_leaves_the_old_index(docs: str, tmp_path: Path) -> None:
    before = content(build_index(docs, tmp_path / "index").folder)
    source = open_documents(docs)

    def broken_off(size: int = 0) -> Iterator[list[Document]]:
        yield [Document("d1", body="something else")]
        assert list(tmp_path.glob(".index.*.tmp"))
        raise KeyboardInterrupt

    source.batches = broken_off  # type: ignore[method-assign,assignment]
    with pytest.raises(KeyboardInterrupt):
        build_index(source, tmp_path / "index")
    assert content(tmp_path / "index") == before
    assert not list(tmp_path.glob(".index.*"))


def test_an_index_that_was_moved_away_by_a_killed_build_comes_back(docs: str, tmp_path: Path) -> None:
    before = content(build_index(docs, tmp_path / "index").folder)
    (tmp_path / "index").rename(tmp_path / ".index.99999999.old.tmp")
    (tmp_path / "bad.tsv").write_text("a\tthe\n")
    with pytest.raises(InputError, match="no document has a term"):
        build_index(str(tmp_path / "bad.tsv"), tmp_path / "index")
    assert content(tmp_path / "index") == before
    assert not list(tmp_path.glob(".index.*"))


BUILD = "import sys; from truerank.lexical.building import build_index; build_index(sys.argv[1], sys.argv[2])"


def test_what_a_killed_build_left_is_removed_by_the_next(docs: str, tmp_path: Path) -> None:
    before = content(build_index(docs, tmp_path / "index").folder)
    large = tmp_path / "large.jsonl"
    large.write_text("".join(f'{{"_id": "{n}", "text": "word{n} and more words"}}\n' for n in range(60_000)))
    process = subprocess.Popen(
        [sys.executable, "-c", BUILD, str(large), str(tmp_path / "index")],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".index.*.tmp/documents.bin")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait(30) == -signal.SIGKILL
    assert list(tmp_path.glob(".index.*.tmp"))
    assert content(Index(tmp_path / "index").folder) == before
    build_index(docs, tmp_path / "index")
    assert not list(tmp_path.glob(".index.*"))
    assert content(tmp_path / "index") == before


def test_an_array_in_pieces_has_the_bytes_of_a_whole_one(tmp_path: Path) -> None:
    for kind, shape in ((np.int32, (70_000, 2)), (np.uint8, (3,)), (np.int64, (0, 1))):
        whole = np.arange(np.prod(shape)).astype(kind).reshape(shape)
        np.save(tmp_path / "whole.npy", whole)
        with ArrayFile(tmp_path / "pieces.npy", kind, shape[1:]) as pieces:
            for part in np.array_split(whole, 7):
                pieces.write(part)
        assert (tmp_path / "pieces.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()


@given(st.lists(st.text(max_size=60), min_size=1, max_size=4), st.sampled_from(sorted(TOKENISERS)))
@settings(max_examples=80)
@example(["ΑΣ.Β ΟΔΟΣ, x_ 'a' a.b.c. 1,000.5;2 \ud800z _ __a \u0301b e\u0301t\u00a0x", "東京 a"], "lucene")
@example(["ΑΣ.Β ΟΔΟΣ", "a\x1cb\x0bc\u2003d\u00a0e"], "terrier")
@example(["a\x1cb\x0bc\u2003d\u00a0e\x85f", ""], "whitespace")
def test_the_terms_of_a_text_are_those_of_its_pieces(texts: list[str], tokeniser: str) -> None:
    analyser = Analyser(tokeniser, "none", "none")
    for text, pieces in zip(texts, analyser.pieces(texts), strict=True):
        assert [term for piece in pieces for term in Analyser(tokeniser, "none", "none")(piece)] == analyser(text)
