"""`pool topics`: which topics are kept, from tables, qrels and stores; the numbers of the track's Table 5."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from places import DATA
from truerank import judging
from truerank.audits.pool import topics
from truerank.audits.pool.page import topic_notes
from truerank.cli import main
from truerank.errors import InputError
from truerank.judging import Item, Store, Text

TABLE = "topic,relevant,judged\n7,3,10\n8,2,10\n9,7,10\n10,6,10\n"


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


@pytest.mark.shared
def test_the_numbers_of_the_track() -> None:
    counts = DATA / "trec-dl" / "dl19-judging.csv"
    qrels = {"doc": str(DATA / "qrels/dl19-doc.qrels.gz"), "passage": str(DATA / "qrels/dl19-passage.qrels.gz")}
    found = topics(counts, qrels=qrels, rel={"passage": 2})
    doc, passage = found.tasks
    assert [len(task.topics) for task in found.tasks] == [52, 52] and len(doc.kept) == len(passage.kept) == 43
    assert (passage.judged, passage.judged_kept, passage.differences) == (11_904, 9_260, ())
    assert (doc.judged, doc.judged_kept) == (20_159, 16_260) and doc.by_qrels() == (20_157, 16_258)
    assert [(one.topic_id, one.judged, one.judged_in_qrels) for one in doc.differences] == [
        ("47923", 1476, 1475), ("451602", 415, 414),
    ]  # fmt: skip
    # The grey rows of Table 5.
    assert [one.topic_id for one in doc.left_out] == [
        "100983", "168216", "423273", "966413", "1104031", "1104492", "1121709", "1121986", "1134787",
    ]  # fmt: skip
    assert [one.topic_id for one in passage.left_out] == [
        "100983", "287683", "423273", "966413", "1104031", "1104492", "1121986", "1132213", "1134787",
    ]  # fmt: skip
    text = repr(found)
    assert "47923 (1,476 here, 1,475 there), 451602 (415 here, 414 there)" in text and "20,157 judged, 16,258" in text
    from_qrels = topics(qrels["passage"], rel=2)
    assert (from_qrels.tasks[0].judged_kept, len(from_qrels.tasks[0].kept)) == (9_260, 43)


def test_bounds_and_reasons(tmp_path: Path) -> None:
    source = written(tmp_path, "judged.csv", TABLE)
    task = topics(source).tasks[0]
    assert {one.topic_id: one.why_not for one in task.topics} == {
        "7": "", "8": "fewer than 3 relevant", "9": "relevant/judged above 0.6", "10": "",
    }  # fmt: skip
    wider = topics(source, min_relevant=2, max_ratio=None)
    assert [one.topic_id for one in wider.tasks[0].kept] == [
        "7",
        "8",
        "9",
        "10",
    ]
    qrels = written(tmp_path, "t.qrels", "7 0 a 1\n7 0 b 0\n11 0 c 1\n")
    compared = topics(source, qrels=qrels).tasks[0]
    assert compared.by_qrels() == (32, 12) and compared.beyond == ("10", "11")


def test_a_store_counts_by_what_stands(tmp_path: Path) -> None:
    items = [Item("", "q1", texts=(Text("query", "q", "q1"), Text("document", f"text {n}", f"d{n}"))) for n in range(8)]
    items = [judging.Item(f"i{n}", item.topic_id, texts=item.texts) for n, item in enumerate(items)]
    people = judging.People(("ann", "bob"), overlap=8, adjudicators=("eve",))
    judging.new(tmp_path / "s", "relevance-documents", items, people=people)
    with Store.open(tmp_path / "s") as store:
        names = {choice.grade: choice.name for choice in store.scheme.choices}
        for number, (ann, bob) in enumerate([(1, 1), (2, 2), (3, 0), (0, 0), (0, 0), (1, 0)]):
            store.record(f"i{number}", "ann", "label", [names[ann]])
            store.record(f"i{number}", "bob", "label", [names[bob]])
        store.record("i5", "eve", "adjudicate", [names[0]])
        store.record("i6", "ann", "skip", reason="unreadable")
    one = topics(tmp_path / "s").tasks[0].topics[0]
    # Even annotators: the higher grade; an adjudication settles; a skip says nothing.
    assert (one.relevant, one.judged, one.why_not) == (3, 6, "")
    with Store.open(tmp_path / "s") as store:
        store.record("i0", "ann", "label", [names[0]])
        store.record("i0", "bob", "label", [names[0]])
    assert topics(tmp_path / "s").tasks[0].topics[0].relevant == 2
    judging.new(tmp_path / "empty", "relevance-documents", items)
    with pytest.raises(InputError, match="nothing is judged yet"):
        topics(tmp_path / "empty")


def test_judgments_without_non_relevant_rows_are_named(tmp_path: Path) -> None:
    rows = "".join(f"{topic} 0 d{number} 1\n" for topic in "12" for number in range(4))
    # A file whose ending says nothing is read as qrels too.
    for name, text in (("a.qrels", rows), ("qrels.txt", rows), ("b.txt", rows.replace(" ", "\t"))):
        task = topics(written(tmp_path, name, text)).tasks[0]
        assert not task.kept and "lack their non-relevant rows" in topic_notes(task)[-1]
        assert "--max-ratio none" in topic_notes(task)[-1]
    for text in (rows + "1 0 e 0\n", rows + "".join(f"2 0 e{number} 0\n" for number in range(9))):
        notes = topic_notes(topics(written(tmp_path, "c.qrels", text)).tasks[0])
        assert not any("non-relevant rows" in note for note in notes)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.qrels", "7 0 a 0\n7 0 b 0\n", "no document has the grade 1"),
        ("a.csv", "topic,relevant\n7,1\n", "no columns of a topic's counts"),
        ("a.csv", "topic,relevant,judged\n7,x,3\n", "a.csv:2: 'x' in the column 'relevant' is not a count"),
        ("a.csv", "topic,relevant,judged\n7,4,3\n", "4 relevant of 3 judged"),
        ("a.csv", "topic,relevant,judged\n7,1,3\n7,1,3\n", "a.csv:3: the topic '7' appears twice"),
        ("a.csv", "topic,relevant,judged\n,1,3\n", "without a topic"),
    ],
)
def test_bad_statistics(name: str, text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        topics(written(tmp_path, name, text))
    assert message in str(raised.value)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = written(
        tmp_path, "judged.csv", "topic,doc_relevant,doc_judged,p_relevant,p_judged\n7,3,10,0,4\n8,2,9,4,9\n"
    )

    def command(*words: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(["pool", "topics", *words])
        assert ended.value.code == (2 if "--max-ratio" in words else 0)
        return "".join(capsys.readouterr())

    value = json.loads(command(source, "--json", "--out", str(tmp_path / "kept.tsv")))
    assert [task["kept"] for task in value["tasks"]] == [1, 1]
    assert value["tasks"][1]["left_out"] == {"7": "fewer than 3 relevant"}
    assert (tmp_path / "kept.tsv").read_text() == "doc\t7\np\t8\n"
    manifest = json.loads((tmp_path / "kept.tsv.manifest.json").read_text())
    assert manifest["skipped"]["p"] == {"7": "fewer than 3 relevant"} and manifest["options"]["max_ratio"] == 0.6
    for form, sign in (("markdown", "| 7 |"), ("latex", "\\begin{tabular}"), ("csv", "topic,"), ("text", "7 ")):
        assert sign in command(source, "--format", form)
    for wrong in ("2", "0", "much"):
        assert command(source, "--max-ratio", wrong).startswith("--max-ratio: ")
    with pytest.raises(InputError, match="no task 'x'"):
        topics(source, qrels={"x": source})
    assert "Which topics" in command("--help") or "which topics" in command("--help")
