"""What another package adds: a ranker, an encoder, a source format and a measure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import truerank
from places import SUPPORT
from truerank.cli import main
from truerank.errors import InputError
from truerank.measures import lower_is_better, parse_measures
from truerank.plugins import Plugins
from truerank.rankers.base import RANKERS, Pair, Ranker, RankerSpec, open_ranker
from truerank.sources import open_documents, open_queries, read_topics
from truerank.vectors.encoders import Encoder, open_encoder

PLACE = SUPPORT / "plugin_example"
TOPICS = "topic_id|title\n1|red fox\n2|\n3|blue sky over sea\n"
DOCS = "doc_id|title|body\nd1||a red house\nd2||the red fox\nd3|blue|sky over the sea\n"
RUN = "".join(f"{topic} Q0 d{doc} {doc} {4 - doc} first\n" for topic in (1, 3) for doc in (1, 2, 3))


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PLACE))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in (("topics.pipes", TOPICS), ("docs.pipes", DOCS), ("first.run", RUN)):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_ranker_of_another_package_scores_saves_and_names_its_settings(tmp_path: Path) -> None:
    ranker = open_ranker("overlap", weight=2)
    assert isinstance(ranker, Ranker)
    assert ranker.score([Pair("red fox", "red house"), Pair("a", "b")]).tolist() == [1.0, 0.0]
    ranker.save(tmp_path)
    assert open_ranker(str(tmp_path)).fingerprint == ranker.fingerprint == "overlap (2)"
    with pytest.raises(InputError, match=r"overlap has no such setting: colour\. there are weight"):
        open_ranker("overlap", colour="red")


def test_a_format_of_another_package_is_read_as_queries_topics_and_documents(files: Path) -> None:
    assert [query.text for query in open_queries(str(files / "topics.pipes") + "#title")] == [
        "red fox",
        "blue sky over sea",
    ]
    assert [topic.title for topic in read_topics(str(files / "topics.pipes")).topics] == [
        "red fox",
        "blue sky over sea",
    ]
    assert [document.doc_id for document in open_documents(str(files / "docs.pipes"))] == ["d1", "d2", "d3"]
    other = files / "topics.unknown"
    other.write_text(TOPICS)
    assert read_topics(f"{other}?format=pipes").topics == read_topics(str(files / "topics.pipes")).topics
    (files / "broken.pipes").write_text("a|b\n1|2|3\n")
    with pytest.raises(InputError, match=r"broken\.pipes: cannot be read as 'pipes' after 0 records \(ValueError"):
        read_topics(str(files / "broken.pipes"))


def test_both_are_used_from_python_and_from_the_command_line(files: Path) -> None:
    named = {name: str(files / f"{name}.pipes") for name in ("topics", "docs")}
    found = truerank.rerank(files / "first.run", "overlap", **named, out=files / "python.run")
    # The best overlap of each topic comes first; equal scores in the order of the ids.
    assert found.run.rows()[0][:2] == ("1", "d2")
    assert [row[1] for row in found.run.rows() if row[0] == "3"] == ["d3", "d1", "d2"]
    options = [part for name, value in named.items() for part in (f"--{name}", value)]
    with pytest.raises(SystemExit) as ended:
        main(
            ["rerank", "--model", "overlap", "--run", str(files / "first.run"), *options, "--out", str(files / "c.run")]
        )
    assert ended.value.code == 0
    assert (files / "c.run").read_bytes() == (files / "python.run").read_bytes()


def test_a_measure_of_another_package_is_computed_and_ordered(files: Path) -> None:
    (files / "qrels").write_text("1 0 d2 1\n1 0 d3 0\n3 0 d1 1\n3 0 d3 2\n")
    scores = truerank.evaluate(files / "qrels", files / "first.run", "LastRank LastRank(rel=2) P@1").json()
    assert scores["runs"]["first"]["measures"] == {"LastRank": 2.5, "LastRank(rel=2)": 1.5, "P@1": 0.5}
    assert lower_is_better(parse_measures("LastRank")[0])


def test_an_encoder_of_another_package() -> None:
    encoder = open_encoder("letters:latin")
    assert isinstance(encoder, Encoder)
    assert encoder.name == "letters latin"
    vectors = encoder.encode(["ab", "ba", "c"])
    assert np.allclose(vectors @ vectors.T, [[1, 1, 0], [1, 1, 0], [0, 0, 1]])


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("broken", "the ranker 'broken' of the package truerank-example 1.0 cannot be loaded (ModuleNotFoundError"),
        ("unfinished", "the ranker 'unfinished' of the package truerank-example 1.0 has no kind and no open"),
    ],
)
def test_a_package_that_cannot_be_used_is_named_in_one_line(name: str, fault: str) -> None:
    with pytest.raises(InputError) as refused:
        RankerSpec(f"{name}:x").open()
    assert fault in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_a_name_in_two_packages_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "other-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text("[truerank.rankers]\noverlap = os:path\nbm25 = os:path\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InputError, match=r"'overlap' is in other 2\.0 and truerank-example 1\.0"):
        open_ranker("overlap")
    # What is truerank's own stays so.
    assert RANKERS.load("bm25").__module__ == "truerank.rankers.bm25"


_LIES = {
    "raise OSError('gone')": "fails (OSError: gone)",
    "raise SystemExit(0)": "fails (SystemExit: 0)",
    "return None": "gives a NoneType",
    "return unit.tolist()": "gives a list",
    "return unit[1:]": "shape (2, 3)",
    "return np.hstack([unit, unit])": "shape (3, 6)",
    "return unit * np.nan": "not finite",
    "return 3 * unit": "length 3",
    "return 0 * unit": "zeros",
    "return rng.permutation(unit.T).T.copy()": "other vectors",
}


@pytest.mark.parametrize(("lie", "says"), list(_LIES.items()), ids=list(_LIES.values()))
def test_an_encoder_that_lies_is_named_with_its_package(
    lie: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    info = tmp_path / "liar-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: liar\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text("[truerank.encoders]\nlies = liar:Home\n")
    (tmp_path / "liar.py").write_text(f"""
import numpy as np
rng = np.random.default_rng(1)
class Home:
    name = precision = fingerprint = "lies"
    dimension = 3
    @classmethod
    def open(cls, place, spec):
        return cls()
    def encode(self, texts):
        unit = np.eye(3, dtype=np.float32)[[len(text) % 3 for text in texts]]
        {lie}
""")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "liar", raising=False)
    with pytest.raises(InputError) as refused:
        open_encoder("lies").encode(["a", "bb", "ccc"])
    assert "the encoder 'lies' of the package liar 2.0" in str(refused.value)
    assert says in str(refused.value)
    for name, text in (("train", "1\ta query\n"), ("test", "1\tanother\n")):
        (tmp_path / name).write_text(text)
    words = ["leakage", "audit", "--encoder", "lies", "--train", str(tmp_path / "train")]
    if says.startswith("fails"):
        with pytest.raises(SystemExit) as ended:
            main([*words, "--test", str(tmp_path / "test")])
        assert ended.value.code == 2
        assert "liar 2.0" in capsys.readouterr().err


def test_what_commands_call_cannot_end_as_success(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("truerank.measures.scoring.parse_measures", lambda *_: sys.exit(0))
    with pytest.raises(SystemExit) as ended:
        main(["evaluate", "--qrels", str(files / "first.run"), "--run", str(files / "first.run")])
    assert ended.value.code == 70
    assert "ended the process" in capsys.readouterr().err


def test_without_the_package_its_names_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert "overlap" not in RANKERS
    with pytest.raises(InputError, match=r"no ranker 'overlap'\. there are ance, bm25"):
        RANKERS.load("overlap")
    assert list(Plugins("truerank.nothing", "thing")) == []


def test_every_ranker_declares_what_is_derived_from_it() -> None:
    homes = {kind: RANKERS.load(kind) for kind in RANKERS if kind not in ("broken", "unfinished")}
    assert all(home.kind == kind for kind, home in homes.items())
    # A file that defines a ranker is found without a table: one with the members of a ranker is in the list.
    folder = Path(truerank.__file__).parent / "rankers"
    declared = {path.stem for path in folder.glob("*.py") if 'kind: ClassVar[str] = "' in path.read_text()}
    assert declared == {kind for kind, home in homes.items() if home.__module__.startswith("truerank.")}


def test_the_list_of_rankers_loads_none_of_them() -> None:
    code = "import sys, truerank.rankers.base as k; sys.exit('monobert' not in k.RANKERS or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
