"""Files of users: never lost, never taken for what they were before, and faults that name them."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from test_damage import called
from truerank.errors import InputError
from truerank.judging.items import Item, Text
from truerank.judging.schemes import load_scheme
from truerank.judging.store import Store
from truerank.near_duplicates import within
from truerank.options import overwrites
from truerank.work.jobs import Job
from truerank.work.runs import run

_VERSIONS = "--version a=IN/a.jsonl --version b=IN/b.jsonl --qrels IN/qrels"
_SCAN = f"transfer scan {_VERSIONS} --topics IN/topics.tsv --model bm25"
INDEX = "index IN/a.jsonl --out OUT"
EVALUATE = "evaluate --qrels IN/qrels --run IN/first.run --out OUT"
SEARCH = "search --index IN/index --topics IN/topics.tsv -k 5 --out OUT"


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """Two versions of a collection, judgments, topics and a run."""
    folder = tmp_path / "in"
    folder.mkdir()
    for version in "ab":
        rows = [
            {"doc_id": f"{version}{n}", "url": f"http://a.org/{n}", "body": f"word{n % 5} topic{n} and more of word{n}"}
            for n in range(9)
        ]
        (folder / f"{version}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "topics.tsv").write_text("".join(f"{n}\ttopic{n} word{n}\n" for n in range(9)))
    (folder / "qrels").write_text("".join(f"{n} 0 a{n} 1\n{n} 0 a{(n + 7) % 9} 0\n" for n in range(9)))
    (folder / "first.run").write_text(
        "".join(f"{n} Q0 a{at} {at} {9 - at} r\n" for n in range(8) for at in range(1, 9))
    )
    return folder


def contents(folder: Path) -> dict[str, bytes | str]:
    """What lies in a folder and below it; links are not followed."""
    return {
        str(one.relative_to(folder)): f"link to {one.readlink()}" if one.is_symlink() else one.read_bytes()
        for one in folder.rglob("*")
        if one.is_symlink() or one.is_file()
    }


def _notes(out: Path) -> None:
    (out / "notes.txt").write_text("mine")


def _folder(out: Path) -> None:
    (out / "mine").mkdir()
    (out / "mine" / "manifest.json").write_text("{}")


def _edited(out: Path) -> None:
    (out / "summary.json").write_text((out / "summary.json").read_text() + " ")


def _link_to_own(out: Path) -> None:
    (out.parent / "precious").write_text("mine")
    (out / "summary.json").unlink()
    (out / "summary.json").symlink_to("../precious")


def _work_elsewhere(out: Path) -> None:
    (out.parent / "work").mkdir()
    for name in ("lock", "thesis"):
        (out.parent / "work" / name).write_text("7")
    (out / ".work").symlink_to("../work")


@pytest.mark.parametrize(
    ("line", "change", "said"),
    [
        (INDEX, _notes, "notes.txt: is not of the index"),
        (INDEX, _folder, "mine: is not of the index"),
        (EVALUATE, _edited, "summary.json: the file is not as 'evaluate' wrote it"),
        (EVALUATE, _link_to_own, "summary.json: the file is not as 'evaluate' wrote it"),
        (EVALUATE, _work_elsewhere, "a folder .work that is not unfinished work"),
    ],
)
def test_a_finished_folder_loses_nothing(line, change, said, given, tmp_path, capsys):
    out = tmp_path / "out"
    # The same again replaces its own.
    assert [called(line, IN=given, OUT=out) for _ in range(2)] == [0, 0]
    change(out)
    before = contents(tmp_path)
    capsys.readouterr()
    assert called(line, IN=given, OUT=out) == 2
    assert said in capsys.readouterr().err
    assert contents(tmp_path) == before
    if change is _edited:
        assert called(f"{line} --overwrite", IN=given, OUT=out) == 0
        assert contents(tmp_path) != before


@pytest.mark.parametrize(("line", "name"), [(INDEX, ""), (EVALUATE, "summary.json"), (SEARCH, "")])
def test_links_stay_and_broken_ones_are_refused(line, name, given, tmp_path):
    called("index IN/a.jsonl --out IN/index", IN=given)
    out, target = tmp_path / "out", tmp_path / "target"
    place = out / name
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(target)
    assert called(line, IN=given, OUT=out) == 2
    assert place.is_symlink() and not target.exists()
    if line != INDEX:
        assert called(f"{line} --overwrite", IN=given, OUT=out) == 0
    else:
        target.mkdir()
        assert [called(line, IN=given, OUT=out) for _ in range(2)] == [0, 0]
    assert place.is_symlink() and target.exists()


def test_what_a_killed_run_replaced_is_its_own(tmp_path):
    def write(text, error=None):
        with run("x", (), {}, tmp_path / "out") as job:
            job.text("a.txt", text)
            if error is not None:
                raise error
            job.text("b.txt", text)

    write("first")
    with pytest.raises(KeyboardInterrupt):
        write("second", KeyboardInterrupt())
    write("third")
    (tmp_path / "out" / "b.txt").write_text("by hand")
    before = contents(tmp_path)
    for _ in range(2):
        with pytest.raises(InputError, match=r"b\.txt: the file is not as 'x' wrote it"):
            write("fourth")
    assert contents(tmp_path) == before
    given = overwrites.set(True)
    write("fifth")
    overwrites.reset(given)
    assert set(contents(tmp_path / "out").values()) >= {b"fifth"}


def test_damaged_work_is_made_again_and_what_lies_beside_it_stays(tmp_path):
    documents = [(f"d{n}", " ".join(f"w{word * (n % 3 + 1)}" for word in range(60))) for n in range(9)]
    (tmp_path / "lists").mkdir()
    for name in ("notes.txt", "lists/mine.txt"):
        (tmp_path / name).write_text("mine")
    first = within(documents, job=Job(tmp_path))
    (tmp_path / "work.sha256").write_text("")
    assert within(documents, job=Job(tmp_path)).pairs.equals(first.pairs)
    assert (tmp_path / "notes.txt").exists() and (tmp_path / "lists" / "mine.txt").exists()


MADE = {
    "transfer match": f"transfer match {_VERSIONS} --out OUT",
    "transfer scan": f"{_SCAN} --out OUT",
    "collection audit": "collection audit --qrels IN/qrels --docs IN/a.jsonl --out OUT",
}


@pytest.mark.parametrize(
    ("maker", "changed", "line"),
    [
        ("transfer match", "b.jsonl", f"{_SCAN} --matched OUT"),
        ("transfer match", "qrels", "transfer carry --qrels IN/qrels --matched OUT --to b"),
        ("transfer scan", "qrels", "transfer clean --qrels IN/qrels --scan OUT"),
        ("transfer scan", "a.jsonl", "transfer select OUT --qrels IN/qrels --out NEW"),
        ("collection audit", "qrels", "collection clean --qrels IN/qrels --audit OUT"),
    ],
)
def test_what_was_made_of_other_files_says_so(maker, changed, line, given, tmp_path, capsys):
    places = {"IN": given, "OUT": tmp_path / "out", "NEW": tmp_path / "new"}
    assert called(MADE[maker], **places) in (0, 1)
    lines = (given / changed).read_text().splitlines(keepends=True)
    (given / changed).write_text("".join(lines[:-1]))
    capsys.readouterr()
    assert called(line, **places) == 2
    said = capsys.readouterr().err
    assert f"{changed} is not what 'truerank {maker}' read" in said and f"run 'truerank {maker}' again" in said


_POOL = "pool build --run IN/first.run --run IN/second.run --topics IN/topics.tsv --docs IN/a.jsonl --annotators ann"
_AUDIT = "leakage audit --train IN/topics.tsv --test IN/topics.tsv --encoder letters --threshold 0.95 --out OUT/audit"
_NEW = "judge new NEW --annotators ann --items OUT"


@pytest.mark.parametrize(
    ("makers", "name", "line"),
    [
        ([f"{_SCAN} --out OUT"], "items.jsonl", f"{_NEW} --scheme transfer"),
        ([f"{_POOL} --out OUT"], "batches/ann.jsonl", f"{_NEW}/batches/ann.jsonl --scheme relevance-documents"),
    ],
)
def test_a_flipped_bit_in_a_file_of_a_command_is_said(makers, name, line, given, tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "plugin"))
    (given / "second.run").write_text((given / "first.run").read_text().replace(" r\n", " s\n"))
    places = {"IN": given, "OUT": tmp_path / "out"}
    assert all(called(maker, **places) in (0, 1) for maker in makers)
    whole = (tmp_path / "out" / name).read_bytes()
    flipped(tmp_path / "out" / name, b"topic")
    capsys.readouterr()
    assert called(line, NEW=tmp_path / "new", **places) == 2
    assert f"{name}: is not as it was written" in capsys.readouterr().err
    (tmp_path / "out" / name).write_bytes(whole)
    assert called(line, NEW=tmp_path / "new", **places) == 0


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store that two people judged."""
    scheme = load_scheme("relevance-documents")
    items = [Item(f"i{n}", f"{n}", f"q{n}", texts=(Text("document", f"text {n}", f"d{n}"),)) for n in range(12)]
    work = {name: [item.item_id for item in items] for name in ("ann", "bob")}
    with Store.create(tmp_path / "store", scheme, items, work) as made:
        for name, ids in work.items():
            for item_id in ids:
                made.record(item_id, name, "label", [scheme.choices[0].name], comment="a remark")
        made.add_annotator("ann", about="about ann")
        with pytest.raises(InputError, match="a comment with NUL characters"):
            made.record("i0", "ann", "label", [scheme.choices[0].name], comment="a\0b")
    return tmp_path / "store"


CALLS = """
import os, sys
from truerank.cli.app import main
for line in sys.argv[1:]:
    try:
        main(line.split())
    except SystemExit as ended:
        print("exit", ended.code, file=sys.stderr)
"""


def unprivileged(*lines: str) -> list[str]:
    """What command lines say on stderr, run by somebody whom permissions bind."""
    binds = ["setpriv", "--inh-caps=-all", "--bounding-set=-all"] if os.geteuid() == 0 else []
    if binds and shutil.which("setpriv") is None:
        pytest.skip("nobody here whom permissions bind")
    ended = subprocess.run(
        [*binds, sys.executable, "-c", CALLS, *lines], capture_output=True, text=True, timeout=120, check=False
    )
    return ended.stderr.splitlines()


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are others there")
def test_permissions(store, given, tmp_path):
    kept, matched = tmp_path / "kept", tmp_path / "matched"
    kept.mkdir()
    shutil.copy(store, kept / "store")
    (kept / "store").chmod(0o444)
    kept.chmod(0o555)
    readers = (f"judge export STORE {tmp_path}/l.jsonl", "judge agreement --labels STORE", "judge table --labels STORE")
    said = unprivileged(*(line.replace("STORE", f"{kept}/store") for line in readers))
    assert [line for line in said if line.startswith("exit")] == ["exit 0"] * 3, said
    assert [path.name for path in kept.iterdir()] == ["store"]
    assert (tmp_path / "l.jsonl").read_text().count("\n") == 24
    kept.chmod(0o755)
    called(MADE["transfer match"], IN=given, OUT=matched)
    for name in ("pairs.parquet", "manifest.json"):
        (matched / name).chmod(0)
        lines = (f"{_SCAN} --matched OUT", MADE["transfer match"])
        said = unprivileged(*(line.replace("IN", str(given)).replace("OUT", str(matched)) for line in lines))
        faults = [line for line in said if not line.startswith("exit")]
        assert len(faults) == 2 and all(f"{name}: " in line and "Permission denied" in line for line in faults), said
        (matched / name).chmod(0o644)


def _database(place: Path) -> None:
    with sqlite3.connect(place) as connection:
        connection.execute("CREATE TABLE bookmarks (address)")


@pytest.mark.parametrize(
    ("make", "line", "said"),
    [
        (lambda place: place.write_text(""), "check FILE.yaml", "names nothing to check"),
        (lambda place: place.symlink_to(place), "evaluate --qrels FILE --run IN/first.run", "that leads nowhere"),
        (lambda place: place.write_text("a\n"), "evaluate --qrels FILE --run IN/first.run", "1 column instead of 4"),
        (
            _database,
            "rerank --run IN/first.run --topics IN/topics.tsv --docs IN/a.jsonl --model bm25:IN/index --cache FILE "
            "--out OUT",
            "a database of something else",
        ),
    ],
)  # fmt: skip
def test_a_fault_of_a_file_names_it(make, line, said, given, tmp_path, capsys):
    called("index IN/a.jsonl --out IN/index", IN=given)
    place = tmp_path / ("file.yaml" if "FILE.yaml" in line else "file")
    make(place)
    before = contents(tmp_path)
    capsys.readouterr()
    assert called(line.replace("FILE.yaml", "FILE"), IN=given, FILE=place, OUT=tmp_path / "o.run") == 2
    shown = capsys.readouterr().err
    assert shown.startswith(f"{place}:") and said in shown
    assert contents(tmp_path) == before


@pytest.mark.parametrize("line", ["export FILE OUT", "agreement --labels FILE", "table --labels FILE"])
def test_a_store_that_lacks_its_end_is_refused(line, store, tmp_path, capsys):
    os.truncate(store, store.stat().st_size - 1)
    assert called(f"judge {line}", FILE=store, OUT=tmp_path / "l.jsonl") == 2
    assert "--recover" in capsys.readouterr().err
    assert called("judge export FILE OUT --recover", FILE=store, OUT=tmp_path / "l.jsonl") == 0


def flipped(place: Path, text: bytes) -> None:
    """Damages one bit in the last place of a text in a file."""
    content = bytearray(place.read_bytes())
    content[content.rindex(text) + len(text) - 1] ^= 1
    place.write_bytes(content)


@pytest.mark.parametrize(
    ("text", "table", "lost"),
    [
        (f'["{load_scheme("relevance-documents").choices[0].name}'.encode(), "events", 1),
        (b"remark", "events", 1),
        (b"text 11", "items", 3),
        (b"q1", "items", 3),
        (b'"grade":3', "meta", None),
        (b"about ann", "annotators", 12),
    ],
)
@pytest.mark.parametrize("line", ["export FILE OUT", "agreement --labels FILE", "table --labels FILE"])
def test_a_flipped_bit_in_a_store_is_said(line, text, table, lost, store, tmp_path, capsys):
    flipped(store, text)
    assert called(f"judge {line}", FILE=store, OUT=tmp_path / "l.jsonl") == 2
    assert f"the store is damaged (a row of {table})" in capsys.readouterr().err
    ended = called("judge export FILE OUT --recover", FILE=store, OUT=tmp_path / "l.jsonl")
    assert ended == (0 if lost else 2)
    assert lost is None or f"{lost} rows of the damaged store could not be read" in capsys.readouterr().out


def test_a_flipped_bit_in_kept_scores_is_scored_again(given, tmp_path, capsys):
    line = "rerank --run IN/first.run --topics IN/topics.tsv --docs IN/a.jsonl --model bm25:IN/index --cache C --out O"
    places = {"IN": given, "C": tmp_path / "c", "O": tmp_path / "o.run"}
    called("index IN/a.jsonl --out IN/index", IN=given)
    assert called(line, **places) == 0
    first = places["O"].read_bytes()
    with sqlite3.connect(places["C"]) as connection:
        kept = [row for (row,) in connection.execute("SELECT score FROM scores")]
    for _ in range(2):
        for score in kept[:3]:
            flipped(places["C"], score[:7])
        places["O"].unlink()
        capsys.readouterr()
        assert called(line, **places) == 0
        assert places["O"].read_bytes() == first
    with sqlite3.connect(places["C"]) as connection:
        assert sorted(kept) == sorted(row for (row,) in connection.execute("SELECT score FROM scores"))
    with sqlite3.connect(tmp_path / "old") as connection:
        connection.execute("CREATE TABLE scores (key BLOB PRIMARY KEY, score REAL NOT NULL) WITHOUT ROWID")
    assert called(line, **places | {"C": tmp_path / "old"}) == 2
    assert "scores of another version" in capsys.readouterr().err


def test_a_named_version_without_an_ending(given, tmp_path, capsys):
    shutil.copy(given / "a.jsonl", given / "a a")
    words = ["transfer", "match", "--version", f"V1={given}/a a", "--version", f"b={given}/b.jsonl"]
    from truerank.cli.app import main

    with pytest.raises(SystemExit) as ended:
        main([*words, "--qrels", f"{given}/qrels", "--out", str(tmp_path / "out")])
    assert ended.value.code in (0, None), capsys.readouterr().err
