"""The metadata header of runs: rows below it are read as without it, and training data are told."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from truerank.errors import InputError
from truerank.sources import read_run, read_run_frame
from truerank.sources.runs import TrainingData, stated_training, trained_on

HEADER = """# ir_metadata.start
# schema-version: 0.1
# tag: dense
# data:
#   test collection:
#     name: Robust04
#   training data:
#   - name: MS MARCO
#     source: https://example.org/msmarco
#     ir_datasets: https://ir-datasets.com/msmarco-document.html#msmarco-document/train
#   - name: TREC disks 4 and 5
#     ir_datasets: disks45/nocr/trec-robust-2004
# ir_metadata.end
"""
ROWS = "301 Q0 a 1 2.5 dense\n301 Q0 b 2 1.5 dense\n302 Q0 a 1 0.5 dense\n"


def written(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def test_rows_below_a_header_are_read_as_without_it(tmp_path: Path) -> None:
    plain = written(tmp_path / "plain.run", ROWS)
    for name, text in {
        "a.run": HEADER + ROWS, "b.run.gz": HEADER + ROWS, "c.run": "\ufeff" + HEADER.replace("\n", "\r\n") + ROWS,
        "d.run": HEADER + "\n" + ROWS.replace(" ", "\t"),
    }.items():  # fmt: skip
        path = written(tmp_path / name, text)
        assert list(read_run(path)) == list(read_run(plain))
        assert read_run_frame(path).equals(read_run_frame(plain))


def test_faults_name_the_line_of_the_file(tmp_path: Path) -> None:
    lines = HEADER.count("\n")
    bad = written(tmp_path / "bad.run", HEADER + ROWS + "302 Q0 c x 0.1 dense\n")
    twice = written(tmp_path / "twice.run", HEADER + ROWS + "302 Q0 a 2 0.1 dense\n")
    for read in (lambda path: list(read_run(path)), read_run_frame):
        with pytest.raises(InputError, match=rf"bad.run:{lines + 4}: "):
            read(bad)
        with pytest.raises(InputError, match=rf"twice.run:{lines + 4}: .*line {lines + 3}"):
            read(twice)


@pytest.mark.parametrize("text", ["# a comment\n" + ROWS, HEADER.replace("# ir_metadata.end\n", "") + ROWS])
def test_other_comments_are_left_out(text: str, tmp_path: Path) -> None:
    plain = written(tmp_path / "plain.run", ROWS)
    assert list(read_run(written(tmp_path / "x.run", text))) == list(read_run(plain))
    with pytest.raises(InputError, match="no rows"):
        list(read_run(written(tmp_path / "x.run", HEADER)))
    for row in ("#1 Q0 a x 2.5 dense\n", "a # comment\n"):
        with pytest.raises(InputError, match=r"x\.run:5: " if row[0] == "a" else "no rows"):
            list(read_run(written(tmp_path / "x.run", (ROWS + "\n" if row[0] == "a" else "") + row)))


def test_training_data_are_told(tmp_path: Path) -> None:
    assert stated_training(written(tmp_path / "a.run.gz", HEADER + ROWS)) == (
        TrainingData("MS MARCO", "https://example.org/msmarco", "msmarco-document/train"),
        TrainingData("TREC disks 4 and 5", "", "disks45/nocr/trec-robust-2004"),
    )
    assert stated_training(written(tmp_path / "b.run", ROWS)) is None
    one = "# ir_metadata.start\n# data:\n#   training data: MS MARCO\n# ir_metadata.end\n"
    assert stated_training(written(tmp_path / "c.run", one)) == (TrainingData("MS MARCO", "", ""),)
    none = "# ir_metadata.start\n# tag: x\n# ir_metadata.end\n"
    assert stated_training(written(tmp_path / "d.run", none)) == ()


def test_a_header_that_is_no_yaml_names_its_line(tmp_path: Path) -> None:
    path = written(tmp_path / "a.run", "# ir_metadata.start\n# tag: [\n# ir_metadata.end\n" + ROWS)
    with pytest.raises(InputError, match=r"a.run:2: no YAML"):
        stated_training(path)


def test_a_run_stands_for_its_training_data(tmp_path: Path) -> None:
    path = written(tmp_path / "a.run", HEADER + ROWS)
    assert trained_on(str(path)) == ("irds:msmarco-document/train", "irds:disks45/nocr/trec-robust-2004")
    assert trained_on("irds:vaswani") == ("irds:vaswani",)
    assert trained_on(str(written(tmp_path / "log.tsv", "1\tx\n"))) == (str(tmp_path / "log.tsv"),)
    bare = written(tmp_path / "b.run", HEADER.replace("    ir_datasets: disks45", "    note: disks45") + ROWS)
    with pytest.raises(InputError, match="'TREC disks 4 and 5' of this run have no id of ir_datasets"):
        trained_on(str(bare))
