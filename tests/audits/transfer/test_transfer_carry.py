"""Judgments carried over and cleaned: by versions, mapping and pattern; against what experts say."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import polars as pl
import pytest
from scipy import stats

from truerank.audits.transfer import (
    Matched,
    Route,
    Scan,
    carry,
    clean,
)
from truerank.audits.transfer.matching.versions import FOUND_SCHEMA
from truerank.audits.transfer.scanning.candidates import CANDIDATE_SCHEMA, SET_SCHEMA
from truerank.audits.transfer.scanning.results import SCORES_SCHEMA, SKIPPED_SCHEMA
from truerank.cli import main
from truerank.errors import InputError


def write(path: Path, *lines: str) -> str:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return str(path)


def matched(*rows: tuple[str, str, str | None]) -> Matched:
    pairs = pl.DataFrame(
        [(doc, f"ex.com/{doc}", "V2", status, found, 2, "x y", f"because {status}") for doc, status, found in rows],
        schema=FOUND_SCHEMA,
        orient="row",
    )
    frame = pairs.select("key", "doc_id", pl.col("doc_id").alias("V1"), pl.col("found").alias("V2"))
    return Matched(frame, pairs, ("V1", "V2"), "url")


def test_versions_and_what_is_put_together(tmp_path: Path) -> None:
    qrels = write(
        tmp_path / "q.qrels", "1 0 a 1", "1 0 b 3", "1 0 c 0", "2 0 a 0", "2 0 lost 2", "3 0 two 1", "4 0 absent 1"
    )
    links = matched(
        ("a", "matched", "X"),
        ("b", "matched", "X"),
        ("c", "matched", "Y"),
        ("lost", "lost", None),
        ("two", "ambiguous", None),
    )
    out = tmp_path / "new.qrels"
    result = carry(qrels, matched=links, out=out)
    assert out.read_text() == "1 0 X 3\n1 0 Y 0\n2 0 X 0\n"
    assert result.counts() == {
        "read": 7, "carried": 4, "written": 3, "merged": 1, "differing": 1, "lost": 2, "ambiguous": 1,
        "topics": {"read": 4, "written": 2, "without_relevant": 3},
    }  # fmt: skip
    assert result.warnings == ("No relevant document is left for topic 2, 3, 4.",)
    assert (tmp_path / "new.qrels.lost.tsv").read_text().splitlines() == [
        "topic_id\tdoc_id\trelevance\tkey\treason",
        "2\tlost\t2\tex.com/lost\tbecause lost",
        "4\tabsent\t1\t\tnot among the documents that were matched",
    ]
    assert (tmp_path / "new.qrels.ambiguous.tsv").read_text().splitlines()[1:] == [
        "3\ttwo\t1\tex.com/two\t2\tx y\tbecause ambiguous"
    ]
    assert (tmp_path / "new.qrels.merged.tsv").read_text().splitlines()[1:] == ["1\tX\t3\t2\ta b\t1 3"]
    manifest = json.loads((tmp_path / "new.qrels.manifest.json").read_text())
    assert set(manifest["artifacts"]) == {"new.qrels", *(f"new.qrels.{n}.tsv" for n in ("lost", "ambiguous", "merged"))}
    with pytest.raises(InputError, match="no version 'V3'"):
        carry(qrels, matched=links, to="V3", out=out)
    with pytest.raises(InputError, match="would replace its own source"):
        carry(qrels, matched=links, out=qrels)


@pytest.mark.parametrize(
    ("combine", "wanted"),
    [("max", "1 0 D 3\n"), ("min", "1 0 D 0\n"), ("majority", "1 0 D 1\n"), ("agree", "1 0 E 1\n")],
)
def test_rules_for_several_passages_of_a_document(tmp_path: Path, combine: str, wanted: str) -> None:
    qrels = write(tmp_path / "p.qrels", "1 0 D#0 1", "1 0 D#1 0", "1 0 D#2 3", "1 0 D#7 1", "1 0 E#0 1", "1 0 E#1 1")
    result = carry(qrels, pattern="segment", combine=combine, out=tmp_path / "d.qrels.gz")
    written = gzip.decompress((tmp_path / "d.qrels.gz").read_bytes()).decode()
    assert written.startswith(wanted)
    assert result.ambiguous == (4 if combine == "agree" else 0)
    assert result.merged == (1 if combine == "agree" else 2)


@pytest.mark.parametrize(
    ("pattern", "passage", "document"),
    [
        ("qna", "7349780-0", "7349780"),
        ("cast", "MARCO_D59865-12", "MARCO_D59865"),
        ("segment", "msmarco_v2.1_doc_00_0#3_12", "msmarco_v2.1_doc_00_0"),
        ("window", "D59865%p3", "D59865"),
        (r"p(\d+)_\d+", "p12_3", "12"),
    ],
)
def test_patterns(tmp_path: Path, pattern: str, passage: str, document: str) -> None:
    qrels = write(tmp_path / "p.qrels", f"1 0 {passage} 1", "1 0 other 1")
    result = carry(qrels, pattern=pattern, out=tmp_path / "d.qrels")
    assert (tmp_path / "d.qrels").read_text() == f"1 0 {document} 1\n"
    assert result.reasons == (("lost", "the id does not follow the pattern", 1),)


def test_a_mapping_and_a_collection(tmp_path: Path) -> None:
    qrels = write(tmp_path / "p.qrels", "1 0 p1 1", "1 0 p2 1", "1 0 p3 1", "1 0 p4 2")
    mapping = write(tmp_path / "m.tsv", "passage_id\tdoc", "p1\tD1", "p2\tD2", "p4\tD1", "p4\tD9")
    docs = write(tmp_path / "docs.tsv", "D1\thttp://a.b\ttitle\tbody", "D7\thttp://a.c\ttitle\tbody")
    result = carry(qrels, mapping=mapping, docs=docs, out=tmp_path / "d.qrels")
    # D9 is not in the collection, so that p4 goes to D1 alone.
    assert (tmp_path / "d.qrels").read_text() == "1 0 D1 2\n"
    assert {reason: n for _, reason, n in result.reasons} == {
        "not in the mapping": 1, "the collection has no such document": 1,
    }  # fmt: skip
    without = carry(qrels, mapping=mapping, out=tmp_path / "e.qrels")
    assert (without.ambiguous, without.lost, without.written) == (1, 1, 2)
    with pytest.raises(InputError, match="no judgment was carried"):
        carry(write(tmp_path / "x.qrels", "1 0 z 1"), mapping=mapping, out=tmp_path / "f.qrels")
    with pytest.raises(InputError, match="one way"):
        Route(mapping=mapping, pattern="cast")
    with pytest.raises(InputError, match="one way"):
        carry(qrels)


def test_experts_disagree_on_11_of_46_as_in_the_paper(tmp_path: Path) -> None:
    # The track's sparse judgments are not among the data here: 46 topics of which 11 are judged not relevant.
    qrels = write(tmp_path / "sparse.qrels", *(f"{topic} 0 D{topic}-0 1" for topic in range(60)))
    judged = [f"{topic} 0 D{topic} {0 if topic < 11 else 1 + topic % 3}" for topic in range(46)]
    expert = write(tmp_path / "nist.qrels", *judged, "0 0 other 3")
    result = carry(qrels, pattern="cast", expert_qrels=expert, out=tmp_path / "d.qrels")
    experts = result.experts
    assert experts is not None
    assert experts.relevant[:2] == experts.topics[:2] == (11, 46)
    low, high = stats.beta.ppf(0.025, 11, 36), stats.beta.ppf(0.975, 12, 35)
    assert experts.relevant[3:] == pytest.approx((low, high))
    assert (experts.unjudged, experts.other_topics) == (0, 14)
    assert "0.239" in repr(result)
    assert len((tmp_path / "d.qrels.disagreements.tsv").read_text().splitlines()) == 12
    again = carry(qrels, pattern="cast", expert_qrels=expert, expert_rel=2).experts
    assert again is not None
    assert again.relevant.k == 11 + sum(1 + topic % 3 < 2 for topic in range(11, 46))


def scan() -> Scan:
    def candidate(topic: str, doc: str, reason: str, first: bool, best: bool, worse: str = "V2") -> dict[str, object]:
        better = "V1" if worse == "V2" else "V2"
        row: dict[str, object] = dict.fromkeys(CANDIDATE_SCHEMA)
        return row | {
            "topic_id": topic, "doc_id": doc, "better": better, "worse": worse, "better_id": doc,
            "worse_id": f"{doc}v2", "first": first, "max": best, "first_difference": 0.6, "max_difference": 0.9,
            "texts": False, "evidence": "scores", "reason": reason, "shown": "see\there",
        }  # fmt: skip

    rows = [
        candidate("1", "a", "crawl error", True, True),
        candidate("1", "b", "truncated", True, False),
        candidate("2", "c", "crawl error", True, True),
        candidate("2", "d", "redirect", False, True, worse="V1"),
        candidate("9", "z", "truncated", False, True),
    ]
    sets = {
        "V1≫V2 (MaxP)": {
            "better": "V1", "worse": "V2", "aggregation": "max", "reasons": {"crawl error": 2, "truncated": 1},
        },
        "V2≫V1 (MaxP)": {"better": "V2", "worse": "V1", "aggregation": "max", "reasons": {"redirect": 1}},
    }  # fmt: skip
    return Scan(
        pl.DataFrame(schema=SCORES_SCHEMA),
        pl.DataFrame(rows, schema=CANDIDATE_SCHEMA),
        pl.DataFrame(schema=SET_SCHEMA),
        pl.DataFrame(schema=SKIPPED_SCHEMA),
        {"versions": ["V1", "V2"], "pairs": [["V1", "V2"]], "sets": sets},
    )


def labels(path: Path, *rows: tuple[str, str, str]) -> str:
    records = [
        {
            "topic_id": topic, "query": f"query {topic}", "doc_id": doc, "V1_id": doc, "V2_id": f"{doc}v2",
            "dataset": "V1≫V2 (MaxP)", "label": [label], "annotator": "ann",
        }
        for topic, doc, label in rows
    ]  # fmt: skip
    return write(path, *(json.dumps(record) for record in records))


def test_clean_by_scan_and_by_labels(tmp_path: Path) -> None:
    qrels = write(tmp_path / "q.qrels", "1 0 a 1", "1 Q7 b 2", "2 0 c 1", "2 0 d 1", "2 0 e 0", "3 0 f 1")
    out = tmp_path / "c.qrels"
    result = clean(qrels, scan=scan(), out=out)
    assert out.read_text() == "1 Q7 b 2\n2 0 d 1\n2 0 e 0\n3 0 f 1\n"
    assert result.removed == {"flagged: crawl error": 2}
    assert (result.not_found, result.kept) == (1, 4)
    assert (tmp_path / "c.qrels.removed.tsv").read_text().splitlines()[1] == (
        "1\ta\t1\tflagged by the scan\tV1\t0.900000\tcrawl error\tsee here"
    )
    removed = {by: clean(qrels, scan=scan(), named_by=by).removed for by in ("first", "any", "both")}  # type: ignore[arg-type]
    assert {by: sum(found.values()) for by, found in removed.items()} == {"first": 3, "any": 3, "both": 2}
    assert clean(qrels, scan=scan(), named_by="any", reason=("truncated",), out=out).removed == {
        "flagged: truncated": 1
    }
    other = clean(qrels, scan=scan(), version_name="V1", out=out)
    assert other.removed == {"flagged: redirect": 1}
    judged = labels(
        tmp_path / "l.jsonl", ("1", "a", "both"), ("1", "b", "only V1"), ("2", "d", "neither"), ("3", "f", "only V2")
    )
    result = clean(qrels, scan=scan(), labels=judged, out=out)
    assert result.removed == {"flagged: crawl error": 1, "judged: none is relevant": 1, "judged: only V1 relevant": 1}
    assert result.reprieved == 1
    assert result.topics == {"read": 3, "without_relevant": 1}
    assert out.read_text() == "1 0 a 1\n2 0 e 0\n3 0 f 1\n"
    unwritten = clean(qrels, scan=scan(), labels=judged)
    assert unwritten.qrels is not None and unwritten.removed == result.removed
    assert unwritten.qrels.rows() == [("1", "a", 1), ("2", "e", 0), ("3", "f", 1)]
    only = clean(qrels, scan=scan(), labels=judged, trust="labels-only", out=out)
    assert sum(only.removed.values()) == 2
    either = clean(qrels, scan=scan(), labels=judged, trust="either", out=out)
    assert sum(either.removed.values()) == 4
    # Without a scan, of the first version; and carried judgments, which have the other version's ids.
    first = clean(qrels, labels=judged, version_name="V1")
    assert first.removed == {"judged: none is relevant": 1, "judged: only V2 relevant": 1}
    carried = write(tmp_path / "v2.qrels", "1 0 av2 1", "1 0 bv2 1", "3 0 fv2 1")
    assert clean(carried, scan=scan(), labels=judged, ids="version", out=out).removed == {"judged: only V1 relevant": 1}
    assert "--ids version" in clean(carried, scan=scan(), out=out).warnings[-1]


def test_cleaning_has_faults_to_mend(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    qrels = write(tmp_path / "q.qrels", "1 0 a 1")
    for words, fault in (
        (["--scan", str(tmp_path)], "give the folder that"),
        ([], "nothing says what is broken"),
        (["--scan", str(tmp_path), "--trust", "labels-only"], "labels-only needs labels"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["transfer", "clean", "--qrels", qrels, "--out", str(tmp_path / "c.qrels"), *words])
        assert ended.value.code == 2
        error = capsys.readouterr().err
        assert fault in error
        assert error.count("\n") == 1
    with pytest.raises(InputError, match="no judgment is left"):
        clean(qrels, scan=scan(), out=tmp_path / "c.qrels")
    with pytest.raises(InputError, match="no version 'V7'"):
        clean(qrels, scan=scan(), version_name="V7", out=tmp_path / "c.qrels")
    assert not (tmp_path / "c.qrels").exists()
    with pytest.raises(SystemExit) as ended:
        main(["transfer", "carry", "--qrels", qrels, "--pattern", "(", "--out", str(tmp_path / "d.qrels")])
    assert ended.value.code == 2
    assert "no valid pattern" in capsys.readouterr().err
