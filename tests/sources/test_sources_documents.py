"""Documents of every format: what is read, what is counted, and how faults are told."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from places import DATA
from truerank.errors import InputError
from truerank.records import Document
from truerank.sources import SourceCounts, open_documents
from truerank.sources.documents import trec_records
from truerank.sources.lines import LineBlock
from truerank.sources.markup import html_text, trec_document

TWO = [Document("a", "", "Cats", "Cats purr."), Document("b", "", "", "Dogs bark.")]


def written(folder: Path, name: str, text: str | bytes) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def archive(files: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return target.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "c.jsonl",
            '{"_id": "a", "title": "Cats", "text": "Cats purr."}\n{"_id": "b", "title": "", "text": "Dogs bark."}\n',
        ),
        ("c.json", '[{"docno": "a", "headline": "Cats", "body": "Cats purr."}, {"docno": "b", "body": "Dogs bark."}]'),
        ("c.csv", 'doc_id,title,contents\na,Cats,"Cats purr."\nb,,Dogs bark.\n'),
        ("c.tsv", "pid\ttitle\tpassage\na\tCats\tCats purr.\nb\t\tDogs bark.\n"),
        ("c3.tsv", "a\tCats\tCats purr.\nb\t\tDogs bark.\n"),
        ("c4.tsv", "a\t\tCats\tCats purr.\nb\t\t\tDogs bark.\n"),
        (
            "c.trec",
            "<DOC>\n<DOCNO> a </DOCNO>\n<HEADLINE><P>Cats</P></HEADLINE>\n<DATE>May</DATE>\n"
            "<TEXT>\n<P>Cats <F P=1>purr</F>.\n"
            "</P></TEXT>\n</DOC>\n<doc><docno>b</docno><text>Dogs bark.</text></doc>\n",
        ),
    ],
)
def test_formats(tmp_path: Path, name: str, content: str) -> None:
    source = open_documents(written(tmp_path, name, content))
    found = list(source)
    assert [document._replace(body=document.body.replace(" .", ".")) for document in found] == TWO
    assert source.counts == SourceCounts(read=2)
    assert list(source) == found
    compressed = open_documents(written(tmp_path, f"{name}.gz", gzip.compress(content.encode())))
    assert list(compressed) == found
    assert compressed.fingerprint != source.fingerprint


def test_parquet_reads_the_columns_it_needs(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": [1, 2], "vector": [[0.1], [0.2]], "title": ["Cats", None], "text": ["Cats purr.", "x"]})
    frame.write_parquet(tmp_path / "c.parquet")
    assert list(open_documents(str(tmp_path / "c.parquet"))) == [
        Document("1", "", "Cats", "Cats purr."),
        Document("2", "", "", "x"),
    ]
    chosen = list(open_documents(f"{tmp_path / 'c.parquet'}#title"))
    assert chosen == [Document("1", body="Cats")]


def test_ms_marco_documents_keep_further_tabs(tmp_path: Path) -> None:
    path = written(
        tmp_path, "docs.tsv", "D1\thttps://x.org/\tA title\tbody with\ttab\nD2\t\t\tbody only\nD4\t\t\tx\nD3\tshort\n"
    )
    source = open_documents(path)
    assert list(source) == [
        Document("D1", "https://x.org/", "A title", "body with\ttab"),
        Document("D2", "", "", "body only"),
        Document("D4", "", "", "x"),
    ]
    assert source.counts == SourceCounts(read=4, skipped=1)
    with pytest.raises(InputError, match=r"wide.tsv:1: 5 columns without names"):
        list(open_documents(written(tmp_path, "wide.tsv", "1\t2\t3\t4\t5\n" * 3)))
    assert list(open_documents(written(tmp_path, "wide.tsv", "1\t2\tthe body\t4\t5\n") + "#3")) == [
        Document("1", body="the body")
    ]


def test_a_beir_folder_and_the_url_in_its_metadata(tmp_path: Path) -> None:
    written(tmp_path, "beir/corpus.jsonl", '{"_id": "a", "title": "T", "text": "x", "metadata": {"url": "http://y"}}\n')
    written(tmp_path, "beir/queries.jsonl", '{"_id": "q", "text": "x"}\n')
    assert list(open_documents(str(tmp_path / "beir"))) == [Document("a", "http://y", "T", "x")]


def test_a_folder_of_pages_texts_and_trec_files(tmp_path: Path) -> None:
    folder = tmp_path / "all"
    written(folder, "b/page.html", "<html><title>A &amp; B</title><script>no()</script><p>Bo<b>ld</b></p>x<br>y</html>")
    written(folder, "a/plain.txt", "just\ttext\n\nin lines\n")
    written(folder, "c.gz", gzip.compress(b"<DOC><DOCNO>t1</DOCNO>first</DOC>\n<DOC><DOCNO>t2</DOCNO>second</DOC>\n"))
    written(folder, "d.jsonl", '{"id": "j", "text": "row"}\n')
    written(folder, ".hidden/x.txt", "not seen")
    written(folder, "empty.txt", "")
    source = open_documents(str(folder))
    expected = [
        Document("plain", body="just\ttext\n\nin lines"),
        Document("page", "", "A & B", "Bold x y"),
        Document("t1", body="first"),
        Document("t2", body="second"),
        Document("j", body="row"),
    ]
    assert list(source) == expected
    assert source.counts == SourceCounts(read=6, empty=1)
    before = source.fingerprint
    written(folder, "e.txt", "more")
    assert open_documents(str(folder)).fingerprint != before


@pytest.mark.parametrize("squeeze", [bytes, gzip.compress, bz2.compress], ids=["tar", "gz", "bz2"])
def test_an_archive(tmp_path: Path, squeeze: type[bytes]) -> None:
    content = archive(
        {
            "x/A-1.html": b"<html><pre>One &lt; two</pre></html>",
            "x/A-2.txt": "zwei größer".encode(),
            "x/t.trec": b"<DOC><DOCNO>t</DOCNO><TEXT>in trec</TEXT></DOC>",
            "x/rows.jsonl.gz": gzip.compress(b'{"id": "j", "text": "row"}\n'),
        }
    )
    assert list(open_documents(written(tmp_path, "c.tar.x", squeeze(content)))) == [
        Document("A-1", body="One < two"),
        Document("A-2", body="zwei größer"),
        Document("t", body="in trec"),
        Document("j", body="row"),
    ]
    with pytest.raises(InputError, match="tar"):
        list(open_documents(written(tmp_path, "cut.tar", content[:1000])))


def test_web_records_have_a_header_a_url_and_a_page() -> None:
    record = (
        "\n<DOCNO>WTX001</DOCNO>\n<DOCHDR>\nhttp://site.org:80/a.html 1.2.3.4 19970101 text/html 12\n"
        "Server: x\n</DOCHDR>\n"
        "<html><head><title>Home</title></head><body><h1>Hello</h1><!-- no --> wo<i>rl</i>d</body></html>"
    )
    assert trec_document(record) == ("WTX001", "http://site.org:80/a.html", "Home", "Hello world")


def test_html_without_title_and_entities_stay_words() -> None:
    assert html_text("<p>5 < 6 &eacute;t&#233;</p>") == ("", "", "", "5 < 6 été")


@given(
    bodies=st.lists(st.text("ab <\n\r&", max_size=30), min_size=1, max_size=6),
    cuts=st.lists(st.integers(0, 8), max_size=6),
    upper=st.booleans(),
)
@settings(max_examples=60)
def test_trec_records_do_not_depend_on_where_blocks_end(bodies: list[str], cuts: list[int], upper: bool) -> None:
    tag = "DOC" if upper else "doc"
    text = "\n".join(f"<{tag}>\n<DOCNO>{n}</DOCNO>{body}\n</{tag}>" for n, body in enumerate(bodies)).replace("\r", "")
    lines, blocks, at = text.split("\n"), [], 0
    for size in [*cuts, len(lines)]:
        if piece := lines[at : at + size]:
            blocks.append(LineBlock(at + 1, "\n".join(piece)))
            at += size
    found = list(trec_records(Path("f"), blocks))
    assert [record.document.doc_id for record in found] == [str(n) for n in range(len(bodies))]
    assert [lines[record.line - 1] for record in found] == [f"<{tag}>"] * len(bodies)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.trec", "<DOC>\n<DOCNO>1</DOCNO>x\n</DOC>\n\n<DOC>\n<DOCNO>2</DOCNO>", "a.trec:5: a <DOC> without </DOC>"),
        ("b.trec", "<DOC><DOCNO>1</DOCNO>x</DOC>\nlost\n<DOC><DOCNO>2</DOCNO></DOC>", "b.trec:2: text outside <DOC>"),
        ("c.trec", "<DOC>\n<TEXT>x</TEXT></DOC>", "c.trec:1: a <DOC> without <DOCNO>"),
        (
            "d.jsonl",
            '{"_id": "1", "text": "x"}\n{"_id": "1", "text": "y"}\n',
            "d.jsonl:2: the document '1' occurs in line 1",
        ),
        ("e.jsonl", '{"_id": "1", "embedding": [1]}\n', "e.jsonl:1: no column or key that holds a document's text"),
        ("f.jsonl", '{"_id": "1", "text": \n', "f.jsonl:1: no valid JSON"),
        ("g.qrels", "1 0 d 1\n", "a file of the kind 'qrels' holds no documents"),
        ("h.txt", "", "the file is empty"),
        ("i.csv", "id,text\n", "no documents in it"),
    ],
)
def test_faults_say_where(tmp_path: Path, name: str, content: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        list(open_documents(written(tmp_path, name, content)))
    assert message in str(caught.value)
    with pytest.raises(InputError, match="no such file"):
        open_documents(str(tmp_path / "nothing.jsonl"))


def test_repeated_empty_and_repaired_documents_are_counted(tmp_path: Path) -> None:
    rows = [{"_id": "1", "text": "x"}, {"_id": "2", "text": " "}, {"_id": "1", "text": "x"}, {"_id": "3", "text": None}]
    lines = [json.dumps(row).encode() for row in rows]
    lines += [b'{"_id": "4", "text": "caf\xe9"}', b'{"_id": "5", "text": "\\ud800"}']
    path = written(tmp_path, "c.jsonl", b"\n".join(lines))
    source = open_documents(path)
    assert [document.doc_id for document in source] == ["1", "4", "5"]
    assert source.counts == SourceCounts(read=6, empty=2, repaired=2, skipped=0, repeated=1)
    assert [document.doc_id for document in open_documents(path, keep_empty=True)] == ["1", "2", "3", "4", "5"]
    with pytest.raises(InputError, match=r"c\.jsonl:5: byte 0xe9 is not UTF-8"):
        list(open_documents(path, strict=True))


class _Item(NamedTuple):
    doc_id: str
    title: str
    url: str
    text: str


class _Marked(NamedTuple):
    doc_id: str
    marked: str

    def default_text(self) -> str:
        return self.marked


def test_ir_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    import ir_datasets
    from ir_datasets.formats import BaseDocs

    class Docs(BaseDocs):  # type: ignore[misc]
        def docs_iter(self) -> object:
            return iter([_Item("1", "T", "http://u", "body"), _Marked("2", "all of it")])

    registered = dict(ir_datasets.registry._registered)
    registered["own/docs"], registered["own/none"] = ir_datasets.Dataset(Docs()), ir_datasets.Dataset()
    monkeypatch.setattr(ir_datasets.registry, "_registered", registered)
    source = open_documents("irds:own/docs")
    assert list(source) == [Document("1", "http://u", "T", "body"), Document("2", body="all of it")]
    assert source.counts.read == 2
    with pytest.raises(InputError, match="this data set has no docs"):
        open_documents("irds:own/none")


@pytest.mark.shared
@pytest.mark.parametrize(
    ("path", "count", "last"),
    [("vaswani/docs.trec.gz", 11_429, "11429"), ("cacm/cacm.tar.gz", 3_204, "CACM-3204")],
    ids=["vaswani", "cacm"],
)
def test_real_collections(path: str, count: int, last: str) -> None:
    source = open_documents(str(DATA / "collections" / path))
    documents = list(source)
    assert source.counts == SourceCounts(read=count)
    assert documents[-1].doc_id == last
    assert "<" not in documents[0].body
