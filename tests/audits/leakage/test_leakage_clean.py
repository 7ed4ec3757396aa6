"""Cleaning: what stays keeps its bytes, what leaks goes in every format, and nothing half written is left."""

import bz2
import csv
import gzip
import hashlib
import io
import json
import lzma
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from leakage_example import audit, save
from places import DATA
from truerank import leakage
from truerank.audits.leakage.filters import SourceForm, Target, copy
from truerank.core.plain import plain
from truerank.errors import InputError
from truerank.measures import detectable_difference
from truerank.records import Judgment
from truerank.sources import open_queries, read_topics

LEAKS = [
    ("robust", "301", "title", "log", "q2", "organized  crime", 0.97),
    ("robust", "302", "title", "log", "q4", "polio outbreaks", 0.93),
    ("robust", "303", "title", "log", "q6", "hubble telescope", 0.905),
]


def clean(source, audited, out, **options):
    return leakage.clean(audited, source, out=out, **options)


def reduce_topics(source, audited, out, **options):
    return leakage.clean(audited, test=source, out=out, remove="test", **options)


def removed(cleaning):
    with cleaning.removed_file.open(newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))


def test_tsv_keeps_the_bytes_of_what_stays(tmp_path):
    source = tmp_path / "log.tsv"
    lines = [
        b"q1\t  leading blanks and tab\tend\r\n",
        b"q2\torganized crime\n",
        b"q3\tnot utf-8: caf\xe9\n",
        b"\n",
        b"only one column\n",
        b"q4\t polio\xc2\xa0outbreaks \n",
        b"q5\tOrganized crime\n",
        b"q6\thubble telescope\n",
        b"q7\torganized crime\r\n",
        b"q8\tlast line without end",
    ]
    source.write_bytes(b"".join(lines))
    cleaning = clean(source, audit(LEAKS), tmp_path / "clean.tsv")
    assert cleaning.out.read_bytes() == b"".join(lines[i] for i in (0, 2, 3, 4, 6, 7, 9))
    assert (cleaning.read, cleaning.kept, cleaning.removed, cleaning.removed_queries) == (8, 5, 3, 2)
    assert cleaning.topics == {"robust": 2}
    assert cleaning.warnings == ("1 records hold no readable query; they were kept unseen.",)
    assert removed(cleaning)[0] == {
        "query_id": "q2",
        "text": "organized crime",
        "test": "robust",
        "topic_id": "301",
        "field": "title",
        "similarity": "0.970000",
        "type": "identical",
        "why": "leak by the same text or a label",
        "line": "2",
    }
    assert [(row["query_id"], row["line"]) for row in removed(cleaning)] == [("q2", "2"), ("q4", "6"), ("q7", "9")]


def test_jsonl_csv_and_triples(tmp_path):
    audited = audit(LEAKS)
    jsonl = tmp_path / "log.jsonl"
    rows = [
        '{"_id": "1", "text": "organized crime", "extra": [1]}\n',
        '{"text":"keep  me",  "_id":"2"}\n',
        '{"_id": "3", "text": "polio \\u006futbreaks"}\n',
    ]
    jsonl.write_text("".join(rows))
    assert clean(jsonl, audited, tmp_path / "c.jsonl").out.read_text() == rows[1]

    table = tmp_path / "log.csv"
    records = [
        "qid,query,note\n",
        'a,"organized\ncrime","x, ""quoted""\nline 3"\n',
        'b,"keep ""this""\nrecord",y\n',
        "c,polio outbreaks,\n",
        'd,5" disk,z\n',
        'e,"organized crime",end',
    ]
    table.write_text("".join(records))
    cleaning = clean(table, audited, tmp_path / "c.csv")
    assert cleaning.out.read_text() == records[0] + records[2] + records[4]
    assert [row["text"] for row in removed(cleaning)] == ["organized crime", "polio outbreaks", "organized crime"]

    triples = tmp_path / "triples.tsv"
    lines = [
        "organized crime\ta good passage\ta bad one\n",
        "what is kept\tmentions organized crime\tpolio outbreaks\n",
        "organized crime\tanother passage\ta bad one\n",
    ]
    triples.write_text("".join(lines))
    cleaning = clean(triples, audited, tmp_path / "t.tsv")
    assert cleaning.out.read_text() == lines[1]
    assert (cleaning.removed, cleaning.removed_queries) == (2, 1)


def test_parquet_keeps_columns_types_and_metadata(tmp_path):
    source = tmp_path / "log.parquet"
    frame = pl.DataFrame(
        {
            "query_id": ["1", "2", "3", "4"],
            "query": ["organized crime", "keep", None, "polio outbreaks"],
            "row": [[1], [2, 3], [], None],
            "score": pl.Series([1.5, 2.5, 3.5, 4.5], dtype=pl.Float32),
        }
    )
    frame.write_parquet(source, metadata={"huggingface": '{"info": 1}'})
    cleaning = clean(source, audit(LEAKS), tmp_path / "clean.parquet")
    kept = pl.read_parquet(cleaning.out)
    assert kept.to_dicts() == frame.to_dicts()[1:3]
    assert kept.schema == frame.schema
    assert pl.read_parquet_metadata(cleaning.out)["huggingface"] == '{"info": 1}'
    assert [row["line"] for row in removed(cleaning)] == ["1", "4"]


@pytest.mark.parametrize(
    ("ending", "pack", "unpack"),
    [
        (".gz", gzip.compress, gzip.decompress),
        (".bz2", bz2.compress, bz2.decompress),
        (".xz", lzma.compress, lzma.decompress),
        (".zst", zstandard.compress, lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data)),
    ],
)
def test_compression_is_that_of_the_new_name(tmp_path, ending, pack, unpack):
    source = tmp_path / f"log.tsv{ending}"
    source.write_bytes(pack(b"1\tkeep this one\n2\torganized crime\n3\tand this\n"))
    out = clean(source, audit(LEAKS), tmp_path / f"a.tsv{ending}").out
    assert unpack(out.read_bytes()) == b"1\tkeep this one\n3\tand this\n"
    again = clean(source, audit(LEAKS), tmp_path / "b" / f"a.tsv{ending}").out
    assert out.read_bytes() == again.read_bytes()
    assert clean(source, audit(LEAKS), tmp_path / "plain.tsv").out.read_bytes() == b"1\tkeep this one\n3\tand this\n"


def test_other_sources_become_tsv(tmp_path):
    topics = tmp_path / "old.trec"
    topics.write_text(
        "<top>\n<num> Number: 1\n<title> organized crime\n</top>\n<top>\n<num> Number: 2\n<title> kept\n</top>\n"
    )
    assert clean(topics, audit(LEAKS), tmp_path / "clean.tsv").out.read_text() == "2\tkept\n"
    array = tmp_path / "log.json"
    array.write_text('[{"id": "1", "query": "tab\\tand\\nline"}, {"id": "2", "query": "organized crime"}]')
    assert clean(array, audit(LEAKS), tmp_path / "array.tsv").out.read_text() == "1\ttab and line\n"
    with pytest.raises(InputError, match=r"written as TSV\. give `out` a name that ends in \.tsv"):
        clean(array, audit(LEAKS), tmp_path / "array.jsonl")


def test_labels_and_policies(tmp_path):
    source = tmp_path / "log.tsv"
    source.write_text("q2\torganized crime\nq4\tpolio outbreaks\nq6\thubble telescope\nq8\tblack bear attacks\n")
    labels = [
        Judgment("301", "", "organized crime", ("Different Topic",)),
        Judgment("303", "", "hubble telescope", ("Title-Identical",), annotator="a"),
        Judgment("336", "", "black bear attacks", ("leak",)),
        Judgment("302", "", "polio outbreaks", ("yes",), annotator="a"),
        Judgment("302", "", "polio outbreaks", ("no",), annotator="b"),
    ]

    def gone(**options):
        cleaning = clean(source, audit(LEAKS), tmp_path / "clean.tsv", **options)
        return {row["query_id"]: row["why"] for row in removed(cleaning)}

    leak = "leak by the same text or a label"
    assert gone() == {"q2": leak, "q4": leak}
    doubtful = audit(LEAKS)
    standing = pl.when(pl.col("standing") == "").then(pl.lit("doubt")).otherwise("standing")
    frame = doubtful.candidates.with_columns(standing=standing, evidence=pl.lit("words+letters"))
    cleaning = clean(source, replace(doubtful, candidates=frame), tmp_path / "clean.tsv")
    assert {row["query_id"]: row["why"] for row in removed(cleaning)}["q6"] == "doubt by words, letters"
    # Judged no leak: kept; judged a leak, also where it is in doubt or no candidate: removed; tied: by the audit.
    judged = {"q6": "judged a leak", "q8": "judged a leak, no candidate"}
    assert gone(labels=labels) == {"q4": leak, **judged}
    assert gone(labels=labels, basis="labels-only") == judged


def test_a_query_judged_harmless_for_one_topic_still_goes_for_another(tmp_path):
    source = tmp_path / "log.tsv"
    source.write_text("q1\tshared query\n")
    rows = [("robust", topic, "title", "log", "q1", "shared query", 0.95) for topic in ("301", "302")]
    labels = [Judgment("301", "", "shared query", ("no leak",))]
    cleaning = clean(source, audit(rows), tmp_path / "clean.tsv", labels=labels)
    assert [row["topic_id"] for row in removed(cleaning)] == ["302"]


def test_faults_of_options(tmp_path):
    source = tmp_path / "log.tsv"
    source.write_text("1\ta b\n2\tc d\n")
    audited = audit(LEAKS)
    for fault, options in [
        ("basis: labels-only needs labels", {"basis": "labels-only"}),
        ("basis: 'all' is not one of the choices", {"basis": "all"}),
    ]:
        with pytest.raises(InputError, match=fault):
            clean(source, audited, tmp_path / "clean.tsv", **options)
    with pytest.raises(InputError, match="would replace its own source"):
        clean(source, audited, source)
    with pytest.raises(InputError, match=r"keeps the source's format \(tsv\)"):
        clean(source, audited, tmp_path / "clean.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.tsv"]


def test_nothing_is_left_where_the_source_is_cut_off(tmp_path):
    source = tmp_path / "log.tsv.gz"
    rng = random.Random(1)
    content = "".join(f"{i}\t{rng.random()} {rng.random()}\n" for i in range(5000)).encode()
    source.write_bytes(gzip.compress(content)[:-5000])
    with pytest.raises(InputError, match="cut off"):
        clean(source, audit(LEAKS), tmp_path / "out" / "clean.tsv")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", ["tsv", "csv", "parquet"])
def test_a_source_that_changes_while_it_is_read(tmp_path, form):
    source = tmp_path / f"log.{form}"
    if form == "parquet":
        pl.DataFrame({"query": ["a b", "c d"]}).write_parquet(source)
    else:
        source.write_text("qid,query\n1,a b\n2,c d\n")
    with pytest.raises(InputError, match="the file changed while it was read"):
        copy(SourceForm(source, form), Target(tmp_path / "out", "out"), [2, 7])


def test_killed_in_the_middle_nothing_stands_under_the_final_name(tmp_path):
    source = tmp_path / "log.tsv"
    source.write_text("".join(f"{i}\tquery number {i}\n" for i in range(200_000)))
    folder = save(audit(LEAKS), tmp_path / "audit")
    out = tmp_path / "out" / "clean.tsv.gz"
    code = f"from truerank import leakage; leakage.clean({str(folder)!r}, {str(source)!r}, out={str(out)!r})"
    process = subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    deadline = time.monotonic() + 60
    while not list(out.parent.glob(".clean.tsv.gz.*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not out.exists()
    cleaning = clean(source, folder, out)
    assert gzip.decompress(cleaning.out.read_bytes()) == source.read_bytes()


def test_an_audit_of_queries_knows_no_other_kind_of_leak(tmp_path):
    source = tmp_path / "log.tsv"
    source.write_text("q2\torganized crime\nq3\tkeep this\n")
    assert clean(source, audit(LEAKS), tmp_path / "a.tsv", kinds=("query-query",)).removed == 1
    with pytest.raises(InputError, match="pair"):
        clean(source, audit(LEAKS), tmp_path / "b.tsv", kinds=("pair",))


def test_manifest_and_json(tmp_path):
    source = tmp_path / "log.tsv"
    source.write_text("q2\torganized crime\nq3\tkeep this\n")
    fingerprint = open_queries(str(source)).fingerprint
    folder = save(audit(LEAKS, fingerprint=fingerprint), tmp_path / "audit")
    cleaning = clean(source, folder, tmp_path / "clean.tsv")
    written = json.loads(cleaning.manifest_file.read_text())
    train, audited = written["inputs"]
    assert (train["role"], train["rows"], train["source"]) == ("train", 2, str(source))
    assert train["sha256"] == hashlib.sha256(source.read_bytes()).hexdigest()
    assert audited["sha256"] == hashlib.sha256((folder / "candidates.parquet").read_bytes()).hexdigest()
    assert (cleaning.read, cleaning.kept, cleaning.removed, cleaning.removed_queries) == (2, 1, 1, 1)
    assert (cleaning.topics, cleaning.not_found) == ({"robust": 1}, 1)
    assert written["skipped"] == {"skipped": 0, "empty": 0}
    assert (written["command"], written["options"]["basis"]) == ("leakage clean", "labels-first")
    assert sorted(written["artifacts"]) == ["clean.tsv", "clean.tsv.removed.tsv"]
    assert cleaning.warnings == ("1 leaking queries that the audit found in log are not in it.",)
    assert json.loads(json.dumps(plain(cleaning)))["removed"] == 1
    assert "records removed" in repr(cleaning) and "holds for a leak or in doubt" in repr(cleaning)
    judged = clean(source, folder, tmp_path / "b.tsv", labels=[Judgment("301", "", "organized crime", ("yes",))])
    assert "what was judged follows the judgment" in repr(judged) and plain(judged)["judged"] == 1


def test_warnings_about_another_or_changed_source_and_mode(tmp_path):
    source = tmp_path / "other.tsv"
    source.write_text("q2\torganized crime\nq3\tkeep this\n")
    first = clean(source, audit(LEAKS, mode="prefilter"), tmp_path / "clean.tsv")
    assert first.warnings[0].startswith("The audit did not read other (it read log)")
    assert first.warnings[1] == "The audit ran in prefilter mode and may have missed leaking queries."
    changed = tmp_path / "log.tsv"
    changed.write_text("q2\torganized crime\nq4\tpolio outbreaks\n")
    folder = save(audit(LEAKS, fingerprint="sha256:0;bytes=1"), tmp_path / "audit")
    assert clean(changed, folder, tmp_path / "clean.tsv").warnings == (
        "log has changed since the audit: queries that are new in it were not audited.",
    )


WORDS = st.sampled_from(["organized crime", "polio outbreaks", "keep this", "and that", "", " organized\tcrime", "x"])


@settings(max_examples=30)
@given(st.lists(WORDS, min_size=1, max_size=30), st.booleans())
def test_what_is_kept_is_the_source_without_the_leaks(texts, quoted):
    leaking = {"organized crime", "polio outbreaks"}
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL)
    rows = [["qid", "query"], *([f"q{i}", text] for i, text in enumerate(texts))]
    writer.writerows(rows)
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "log.csv", Path(folder) / "clean.csv"
        source.write_bytes(buffer.getvalue().encode())
        if not any(text.strip() for text in texts):
            with pytest.raises(InputError, match="no queries in it"):
                clean(source, audit(LEAKS), out)
            return
        clean(source, audit(LEAKS), out)
        with out.open(newline="") as stream:
            kept = list(csv.reader(stream))
    assert kept == [row for row in rows if " ".join(row[1].split()) not in leaking]


TREC = """<!-- topics -->
<top>
<num> Number: 301
<title> organized crime

<desc> Description:
Which ones?
</top>

<top>
<num> Number: 302
<title> polio outbreaks
</top>
<top>
<num> Number: 305
<title> kept   as it is
</top>

"""


def test_reduced_trec_topics_keep_their_bytes(tmp_path):
    source = tmp_path / "robust.trec.txt"
    source.write_text(TREC)
    reduction = reduce_topics(source, audit(LEAKS[:1]), tmp_path / "reduced.txt")
    start, end = TREC.index("<top>"), TREC.index("<top>\n<num> Number: 302")
    assert reduction.out.read_text() == TREC[:start] + TREC[end:]
    assert (reduction.before, reduction.after, reduction.removed) == (3, 2, ("301",))
    last = [("robust", "305", "title", "log", "q", "kept as it is", 0.99)]
    assert (
        reduce_topics(source, audit(last), tmp_path / "r.txt").out.read_text()
        == TREC[: TREC.index("<top>\n<num> Number: 305")] + "\n"
    )
    manifest = json.loads((tmp_path / "reduced.txt.manifest.json").read_text())
    assert manifest["skipped"]["leaked_topics"] == ["301"]


def test_reduced_xml_tsv_jsonl_csv_and_json_topics(tmp_path):
    audited = audit(LEAKS[:2])
    comment = '  <!-- <topic number="301"> -->\n'
    first = '  <topic number="301" type="f">\n   <query>a</query>\n  </topic>\n'
    second = '  <topic number="9"><query>b</query></topic>\n'
    cases = {
        "web.xml": (f"<web>\n{comment}{first}{second}</web>\n", f"<web>\n{comment}{second}</web>\n"),
        "plain.tsv": ("301\torganized crime\r\n9\tkept one\r\n302\tpolio outbreaks\r\n", "9\tkept one\r\n"),
        "named.tsv": ("topic_id\ttitle\n301\ta\n9\tb\n", "topic_id\ttitle\n9\tb\n"),
        "topics.jsonl": ('{"_id": "9", "text": "b"}\n{"_id": "301", "text": "a"}\n', '{"_id": "9", "text": "b"}\n'),
        "topics.csv": ('query_id,topic,title\n1,301,"a\nb"\n2,9,c\n', "query_id,topic,title\n2,9,c\n"),
    }
    for name, (before, after) in cases.items():
        source = tmp_path / name
        source.write_bytes(before.encode())
        assert reduce_topics(source, audited, tmp_path / "out" / name).out.read_bytes() == after.encode(), name
    array = tmp_path / "topics.json"
    array.write_text('[{"id": "301", "title": "a"}, {"id": "9", "title": "b", "description": "c"}]')
    out = reduce_topics(array, audited, tmp_path / "out.jsonl").out
    assert out.read_text() == '{"_id": "9", "title": "b", "description": "c"}\n'
    assert reduce_topics(array, audited, tmp_path / "out.tsv").out.read_text() == "9\tb\n"


def test_reduced_topics_by_labels(tmp_path):
    source = tmp_path / "robust.tsv"
    source.write_text("".join(f"{topic}\ttopic number {topic}\n" for topic in (301, 302, 303, 304, 305)))
    audited = audit(LEAKS)
    assert reduce_topics(source, audited, tmp_path / "a.tsv").removed == ("301", "302")
    labels = [Judgment("301", "", "organized crime", ("no",)), Judgment("304", "", "anything", ("yes",))]
    assert reduce_topics(source, audited, tmp_path / "a.tsv", labels=labels).removed == ("302", "304")


def test_which_test_set_and_which_topics(tmp_path):
    source = tmp_path / "topics.tsv"
    source.write_text("301\tone topic\n399\tanother topic\n")
    two = audit([*LEAKS, ("core", "399", "title", "log", "q", "x", 0.99)], tests=("robust", "core"))
    with pytest.raises(InputError, match="no test set 'topics', it has robust, core"):
        reduce_topics(source, two, tmp_path / "a.tsv")
    assert reduce_topics(source, two, tmp_path / "a.tsv", test_set="core").removed == ("399",)
    (tmp_path / "all.tsv").write_text("301\tone topic\n302\tanother topic\n")
    with pytest.raises(InputError, match="every topic leaks"):
        reduce_topics(tmp_path / "all.tsv", audit(LEAKS), tmp_path / "a.tsv")
    (tmp_path / "none.tsv").write_text("1\tone topic\n2\tanother topic\n")
    with pytest.raises(InputError, match="none of the leaked topics of robust"):
        reduce_topics(tmp_path / "none.tsv", audit(LEAKS), tmp_path / "a.tsv")


def test_smallest_detectable_difference():
    # G*Power and R's power.t.test: a paired effect of half a standard deviation needs 34 topics.
    assert detectable_difference(33, 1.0) > 0.5 > detectable_difference(34, 1.0)
    assert detectable_difference(50, 0.1) == pytest.approx(0.040418, abs=1e-6)
    assert detectable_difference(2, 0.1) == pytest.approx(1.15499, abs=1e-4)
    assert detectable_difference(1, 0.1) is None


def test_detectable_differences_in_the_result(tmp_path):
    source = tmp_path / "robust.tsv"
    source.write_text("".join(f"{topic}\ttopic number {topic}\n" for topic in range(300, 350)))
    reduction = reduce_topics(source, audit(LEAKS), tmp_path / "a.tsv")
    assert [row.sd for row in reduction.detectable] == [0.1, 0.2, 0.3]
    _, before, after = reduction.detectable[0]
    assert before == pytest.approx(0.0404, abs=1e-4)
    assert after == detectable_difference(48, 0.1) > before
    assert "48 of 50 topics of robust remain" in repr(reduction)


@pytest.mark.shared
@pytest.mark.parametrize(
    "name", ["robust04.trec.txt", "core17.trec.txt", "web09.xml", "dl19-doc.tsv", "beir-scifact.tsv.gz"]
)
def test_real_topic_files(tmp_path, name):
    source = DATA / "topics" / name
    topics = read_topics(str(source)).topics
    gone = {topic.topic_id for topic in topics[::3]}
    rows = [("robust", topic_id, "title", "log", "q", "x", 0.99) for topic_id in sorted(gone)]
    reduction = reduce_topics(source, audit(rows), tmp_path / name)
    left = read_topics(str(reduction.out)).topics
    assert left == tuple(topic for topic in topics if topic.topic_id not in gone)
