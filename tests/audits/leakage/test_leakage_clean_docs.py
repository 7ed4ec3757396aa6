"""`leakage clean --remove docs`: what stays of the corpus and the judgments keeps its bytes; nothing is lost."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made_audits import made_audit
from truerank import leakage
from truerank.audits.leakage.kinds import KindVerdict
from truerank.cli.app import main
from truerank.core.result import summary
from truerank.errors import InputError
from truerank.measures.document_placebo import RankedDocuments, document_placebos
from truerank.options import Resampling

NAMES = [f"d{n}" for n in range(12)]
TEXTS = {name: f"the words of {name}, with “quotes”" for name in NAMES}
#: d0 and d1 leak as positives, d2 as a negative, d5 only as a document of the corpus.
LEAKING = {"positive-relevant": ["d0", "d1"], "negative-relevant": ["d2"], "document-corpus": ["d0", "d5"]}
QRELS = "t1 0 d0 1\nt1 0 d7 0\nt2 Q0 d1 2\nt2  0\td3 1\nt3 0 d4 1\n\nt3 0 d2 1\nt4 0 d6 0\n"


def found(leaking: dict[str, list[str]] = LEAKING, *, folder: Path | None = None) -> leakage.AuditResult:
    rows: list[dict[str, Any]] = [
        {"kind": kind, "doc_id": name, "source": "log", "example_id": f"e{name}", "training_text": f"seen {name}"}
        for kind, names in leaking.items()
        for name in names
    ]
    rows.append({"kind": "query-query", "topic_id": "t1", "source": "log", "example_id": "q", "training_text": "a q"})
    kinds = [KindVerdict(kind, "CONTAMINATED", "", leaked=len(names), of=9) for kind, names in leaking.items()]
    return made_audit(rows, kinds, 12, {"log": {}}, folder)


def corpus(folder: Path, form: str) -> Path:
    """The same documents in one of the forms that are kept."""
    path = folder / f"corpus.{form}"
    cells = {name: text.replace("of", "of\n") for name, text in TEXTS.items()}
    records = {
        "jsonl": [json.dumps({"_id": name, "text": text, "more": [1]}) + "\n" for name, text in TEXTS.items()],
        "tsv": ["id\ttext\n", *(f"{name}\t{text}\r\n" for name, text in TEXTS.items())],
        "csv": ["id,text\n", *(f'{name},"{cell}"\n' for name, cell in cells.items())],
        "trec": [f"<DOC>\n<DOCNO> {name} </DOCNO>\n{text}\n</DOC>\n\n" for name, text in TEXTS.items()],
    }
    path.write_bytes("".join(records[form]).encode())
    return path


def blocks(content: bytes, form: str) -> list[bytes]:
    """The bytes of each document of the file above, what stands before the first one in front."""
    if form == "trec":
        return [b"", *(b"<DOC>" + part for part in content.split(b"<DOC>")[1:])]
    start = {"jsonl": b'{"_id"', "tsv": b"d", "csv": b"d"}[form]
    parts = [b""]
    for line in content.splitlines(keepends=True):
        if line.startswith(start):
            parts.append(b"")
        parts[-1] += line
    return parts


@pytest.mark.parametrize("form", ["jsonl", "tsv", "csv", "trec"])
def test_documents_that_stay_keep_their_bytes(form: str, tmp_path: Path) -> None:
    docs, out = corpus(tmp_path, form), tmp_path / f"clean.{form}"
    result = leakage.clean(found(), remove="docs", docs=docs, out=out)
    before = blocks(docs.read_bytes(), form)
    assert len(before) == 13
    assert out.read_bytes() == b"".join(one for n, one in enumerate(before) if n - 1 not in (0, 1, 2))
    assert isinstance(result, leakage.CorpusReduction)
    assert (result.read, result.removed, result.not_found, result.ids) == (12, 3, 0, ("d0", "d1", "d2"))
    assert result.kinds == {"positive-relevant": 2, "negative-relevant": 1} and result.qrels_file is None
    assert "take these documents out of yours, too" in result.warnings[0]
    listed = (tmp_path / f"clean.{form}.removed.tsv").read_text().splitlines()
    assert listed[0].split("\t") == ["doc_id", "kinds", "sources", "examples", "why", "line"]
    assert listed[1].split("\t")[:5] == ["d0", "positive-relevant", "log", "ed0", "found by the audit"]
    both = leakage.clean(found(), remove="docs", docs=docs, out=out, kinds=("document-corpus", "positive-relevant"))
    assert both.kinds == {"document-corpus": 2, "positive-relevant": 2} and both.kept == 9
    assert (tmp_path / f"clean.{form}.removed.tsv").read_text().splitlines()[1].split("\t")[1] == (
        "positive-relevant;document-corpus"
    )


@settings(max_examples=30)
@given(st.sets(st.sampled_from(NAMES), max_size=11), st.sampled_from(["jsonl", "csv", "trec"]), st.booleans())
def test_what_is_removed_and_what_stays_are_the_whole(leaking: set[str], form: str, packed: bool) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        docs, out = corpus(Path(place), form), Path(place) / f"clean.{form}{'.gz' if packed else ''}"
        leakage.clean(found({"positive-relevant": sorted(leaking)}), remove="docs", docs=docs, out=out)
        content = gzip.decompress(out.read_bytes()) if packed else out.read_bytes()
        first, *before = blocks(docs.read_bytes(), form)
        assert content == first + b"".join(b for name, b in zip(NAMES, before, strict=True) if name not in leaking)


def test_parquet_keeps_its_columns_and_other_sources_become_jsonl(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"doc_id": NAMES, "text": list(TEXTS.values()), "score": range(12)}, schema_overrides={"score": pl.Int8}
    )
    frame.write_parquet(tmp_path / "corpus.parquet")
    out = tmp_path / "clean.parquet"
    leakage.clean(found(), remove="docs", docs=tmp_path / "corpus.parquet", out=out)
    assert pl.read_parquet(out).equals(frame[3:])
    (tmp_path / "pages").mkdir()
    for name, text in TEXTS.items():
        (tmp_path / "pages" / f"{name}.html").write_text(f"<html><title>T {name}</title><p>{text}</p></html>")
    with pytest.raises(InputError, match="such a corpus is written as JSONL"):
        leakage.clean(found(), remove="docs", docs=tmp_path / "pages", out=tmp_path / "pages.clean")
    result = leakage.clean(found(), remove="docs", docs=tmp_path / "pages", out=tmp_path / "pages.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "pages.jsonl").read_text().splitlines()]
    assert {row["_id"] for row in rows} == set(NAMES[3:]) and rows[0]["title"] == f"T {rows[0]['_id']}"
    assert result.warnings[-1] == "The corpus is written as JSONL: its own form cannot be kept."


def test_judgments_lose_documents_and_topics_without_a_relevant_one(tmp_path: Path) -> None:
    docs, qrels = corpus(tmp_path, "jsonl"), tmp_path / "test.qrels"
    qrels.write_text(QRELS)
    out = tmp_path / "clean.jsonl"
    result = leakage.clean(found(), remove="docs", docs=docs, qrels=str(qrels), out=out)
    # t1 loses its only relevant document; t4 had none before, and stays.
    assert (tmp_path / "clean.jsonl.qrels").read_text() == "t2  0\td3 1\nt3 0 d4 1\n\nt4 0 d6 0\n"
    assert isinstance(result, leakage.CorpusReduction) and result.judgments is not None
    assert result.judgments == (7, 3, 1, 3, ("t1",))
    shown = summary(result).show()
    assert "1 of 3 topics lose each relevant document, and all of their judgments are left out: t1." in shown
    assert "judgments kept" in shown
    manifest = json.loads((tmp_path / "clean.jsonl.manifest.json").read_text())
    assert set(manifest["artifacts"]) == {"clean.jsonl", "clean.jsonl.qrels", "clean.jsonl.removed.tsv"}
    assert manifest["skipped"] == {"leaking_documents": 3, "topics": ["t1"]}
    nothing = leakage.clean(found({}), remove="docs", docs=docs, qrels=str(qrels), out=tmp_path / "same.jsonl")
    assert (tmp_path / "same.jsonl.qrels").read_text() == QRELS and nothing.removed == 0
    assert (tmp_path / "same.jsonl").read_bytes() == docs.read_bytes()


def test_a_beir_folder(tmp_path: Path) -> None:
    folder = tmp_path / "reefs"
    (folder / "qrels").mkdir(parents=True)
    corpus(tmp_path, "jsonl").rename(folder / "corpus.jsonl")
    (folder / "queries.jsonl").write_text('{"_id": "t1", "text": "a reef"}\n')
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nt1\td0\t1\nt2\td3\t1\n")
    out = tmp_path / "corpus.jsonl"
    leakage.clean(found(), remove="docs", docs=folder, qrels=str(folder), out=out)
    assert (tmp_path / "corpus.jsonl.qrels").read_text() == "query-id\tcorpus-id\tscore\nt2\td3\t1\n"
    assert out.read_bytes() == b"".join((folder / "corpus.jsonl").read_bytes().splitlines(keepends=True)[3:])


def test_what_people_said_counts(tmp_path: Path) -> None:
    docs, labels = corpus(tmp_path, "jsonl"), tmp_path / "labels.tsv"
    labels.write_text("topic_id\tquery_text\tlabel\nd0\tseen d0\t0\nd1\tseen  d1\t1\nd2\tanother text\t0\n")

    def ids(**how: Any) -> tuple[str, ...]:
        made = leakage.clean(found(), remove="docs", docs=docs, labels=str(labels), out=tmp_path / "c.jsonl", **how)
        assert isinstance(made, leakage.CorpusReduction) and made.judged == 3
        return made.ids

    assert ids() == ("d1", "d2")
    assert "d1\tpositive-relevant\tlog\ted1\tjudged a leak\t2" in (tmp_path / "c.jsonl.removed.tsv").read_text()
    assert ids(basis="labels-only") == ("d1",)
    with pytest.raises(InputError, match="labels-only needs labels"):
        leakage.clean(found(), remove="docs", docs=docs, out=tmp_path / "c.jsonl", basis="labels-only")


def test_nothing_is_written_on_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    docs, out, folder = corpus(tmp_path, "jsonl"), tmp_path / "out" / "clean.jsonl", tmp_path / "audit"
    out.parent.mkdir()
    found(folder=folder)
    words = ["leakage", "clean", "--remove", "docs", "--audit", str(folder), "--out", str(out)]
    (tmp_path / "bad.qrels").write_text("t1 0 d0\nt1 x\n")
    (tmp_path / "one.qrels").write_text("t1 0 d0 1\n")
    (tmp_path / "broken.jsonl").write_text('{"_id": "d0", "text": "a"}\n{"_id": \n')
    (tmp_path / "all.jsonl").write_text('{"_id": "d0", "text": "a"}\n')
    (tmp_path / "none.jsonl").write_text('{"_id": "x", "text": "a"}\n')
    (tmp_path / "two.trec").write_text("<DOC><DOCNO>d0</DOCNO>a</DOC><DOC><DOCNO>x</DOCNO>b</DOC>\n")
    (tmp_path / "none").mkdir()
    run = tmp_path / "a.run"
    run.write_text("t1 Q0 d0 1 2 a\n")
    (tmp_path / "good.qrels").write_text(QRELS)
    for more, message in (
        ([], "--docs: no corpus. name the one to reduce."),
        (
            ["--docs", str(docs), "--qrels", str(tmp_path / "bad.qrels")],
            "bad.qrels:1: expected an integer as relevance",
        ),
        (["--docs", str(docs), "--qrels", str(tmp_path / "one.qrels")], "no topic keeps a relevant document"),
        (["--docs", str(tmp_path / "broken.jsonl")], "broken.jsonl:2"),
        (["--docs", str(tmp_path / "all.jsonl")], "every document leaks, nothing would remain"),
        (["--docs", str(tmp_path / "none.jsonl")], "it holds none of the leaking documents of reefs"),
        (["--docs", str(docs), "--kinds", "pair"], "'pair' is a leak of queries"),
        (["--docs", str(docs), "--kinds", "pairs"], "--kinds: there is no kind of leak 'pairs'. choose from pair, qu"),
        (["--docs", str(docs), "--match", "id"], "by the audit alone"),
        (["--docs", str(docs), "--run", str(run)], "runs without judgments"),
        (
            ["--docs", str(docs), "--run", str(run), "--qrels", str(tmp_path / "good.qrels"), "--matched-by", "b"],
            "there is no run 'b'",
        ),
    ):
        with pytest.raises(SystemExit, match="2"):
            main([*words, *more])
        assert message in capsys.readouterr().err.replace("\n", " "), message
        assert list(out.parent.iterdir()) == [], message
    with pytest.raises(InputError, match=r"no summary\.json here"):
        leakage.clean(tmp_path / "none", remove="docs", docs=docs, out=out)
    with pytest.raises(InputError, match="two documents on one line"):
        leakage.clean(found(), remove="docs", docs=tmp_path / "two.trec", out=out.with_suffix(".trec"))
    with pytest.raises(InputError, match=r"`out`|own source"):
        leakage.clean(found(), remove="docs", docs=docs, out=docs)
    with pytest.raises(InputError, match="the output would replace its own source"):
        (tmp_path / "e.jsonl.qrels").write_text(QRELS)
        leakage.clean(
            found(), remove="docs", docs=docs, qrels=str(tmp_path / "e.jsonl.qrels"), out=tmp_path / "e.jsonl"
        )
    assert list(out.parent.iterdir()) == [] and (tmp_path / "e.jsonl.qrels").read_text() == QRELS


def test_runs_are_compared_as_by_the_placebo(tmp_path: Path) -> None:
    docs, qrels, run = corpus(tmp_path, "jsonl"), tmp_path / "test.qrels", tmp_path / "a.run"
    qrels.write_text("".join(f"t{n % 2} 0 {name} 1\n" for n, name in enumerate(NAMES)))
    run.write_text("".join(f"t{n % 2} Q0 {name} {n + 1} {20 - n} a\n" for n, name in enumerate(NAMES)))
    how: dict[str, Any] = {"qrels": str(qrels), "run": (str(run),), "resamples": 99, "matched_by": "difficulty"}
    made = leakage.clean(found(), remove="docs", docs=docs, out=tmp_path / "c.jsonl", **how)
    ranked = RankedDocuments.of(str(qrels), [str(run)])
    expected = document_placebos(
        ranked, ["d0", "d1", "d2"], "nDCG@10", matched_by="difficulty", resampling=Resampling(99)
    )
    assert isinstance(made, leakage.CorpusReduction) and made.placebos == expected
    shown = summary(made).show()
    assert "Did scores move more than chance without the leaked documents?" in shown
    assert "and that all runs rank about as high" in shown
