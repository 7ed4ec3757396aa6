"""Estimates: the paper's Table 3 from its counts, labels of a scan's sample, and totals by bands."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from scipy.stats import binomtest

from transfer_example import FAULTS, Files, options, write
from truerank import transfer
from truerank.audits.transfer import Scan
from truerank.audits.transfer.descriptions import registered_domain
from truerank.audits.transfer.estimates import Counts, _estimate
from truerank.cli import main
from truerank.core.result import summary
from truerank.errors import InputError

TABLE_3 = """set,00,01,10,11,21,12,documents,error
V1>>V2 FirstP,1,4,48,37,6,4,"41,587",10
V1>>V2 MaxP,5,3,73,11,7,1,17969,10
V2>>V1 FirstP,0,21,7,55,2,15,9991,01
V2>>V1 MaxP,0,25,5,51,0,19,15817,01
Random,4,0,9,79,3,5,325183,
Wayback M.,0,1,3,89,7,0,41269,
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return write(tmp_path_factory.mktemp("versions"))


@pytest.fixture(scope="module")
def scan(files: Files) -> Scan:
    return transfer.scan(files.versions, files.qrels, files.topics, out=files.folder / "scan", **options())


def test_table_3_of_the_paper(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "table3.csv"
    path.write_text(TABLE_3)
    found = transfer.estimate(counts=path)
    printed = {part.counts.name: part for part in found.parts}
    errors = {name: part.errors and round(part.errors.value) for name, part in printed.items()}
    assert errors == {
        "V1>>V2 FirstP": 19962, "V1>>V2 MaxP": 13117, "V2>>V1 FirstP": 2098, "V2>>V1 MaxP": 3954,
        "Random": None, "Wayback M.": None,
    }  # fmt: skip
    precision = [part.precision.value for part in found.parts if part.precision]
    assert precision == [0.48, 0.73, 0.21, 0.25]
    known = binomtest(73, 100).proportion_ci(0.95, "wilson")
    mine = printed["V1>>V2 MaxP"].precision
    assert mine is not None and (mine.low, mine.high) == pytest.approx((known.low, known.high))
    with pytest.raises(SystemExit) as ended:
        main(["transfer", "estimate", "--counts", str(path), "--format", "markdown"])
    shown = capsys.readouterr().out
    assert ended.value.code == 0 and "| 13,117 | 11,423–14,506 |" in shown and "0.64–0.81" in shown


def test_bands_weigh_by_their_documents() -> None:
    strata = {"0.5-0.75": (900, 30, 3), "0.75-1": (100, 30, 27)}
    labels = {"10": 30, "11": 30}
    found = _estimate(Counts("a", labels, 1000, "10", strata), 0.95, 0)
    assert found.precision is not None and found.precision.value == 0.5
    assert found.stratified is not None and found.stratified.value == pytest.approx(900 * 0.1 + 100 * 0.9)
    assert found.stratified.low < 180 < found.stratified.high < 400
    everything = {"0.5-0.75": (30, 30, 3), "0.75-1": (30, 30, 27)}
    known = _estimate(Counts("a", labels, 60, "10", everything), 0.95, 0)
    assert known.errors is not None and (known.errors.low, known.errors.high) == (30, 30)
    assert known.stratified is not None and known.stratified[:] == (30, 30, 30)
    assert _estimate(Counts("a", labels, 1000, "10", {"0.5-1": (1000, 60, 30)}), 0.95, 0).stratified is None


def test_labels_of_a_scan(scan: Scan, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scan.folder is not None
    labels = tmp_path / "labels.jsonl"
    with labels.open("w", encoding="utf-8") as out:
        for line in (scan.folder / "items.jsonl").read_text(encoding="utf-8").splitlines():
            item = json.loads(line)
            side = FAULTS.get(int(item["topic_id"]), ("", ""))[1]
            broken = {"new": "only V1", "old": "only V2", "": "both"}[side]
            # One of those that were found is, for this annotator, no error.
            item["label"] = ["V1 better" if item["topic_id"] == "20" else broken]
            item.pop("V1"), item.pop("V2")
            out.write(json.dumps(item) + "\n")
    found = {part.counts.name: part for part in transfer.estimate(scan, labels=str(labels)).parts}
    one = found["old>>new MaxP"]
    assert one.counts.labels == {"00": 0, "01": 0, "10": 6, "11": 0, "21": 1, "12": 0}
    assert one.precision is not None and one.precision.value == pytest.approx(6 / 7)
    assert one.errors is not None and one.errors.value == pytest.approx(6)
    assert sum(size for size, _, _ in one.counts.strata.values()) == 7
    assert found["new>>old MaxP"].counts.error == "01" and found["new>>old MaxP"].errors is not None
    parts = [found[f"old>>new {kind}"] for kind in ("MaxP alone", "MaxP and texts") if f"old>>new {kind}" in found]
    # The classes have nothing in common, and what MaxP names is in two of them.
    assert sum(part.counts.documents for part in parts) == 7
    assert sum(part.counts.labels["10"] for part in parts) == 6
    assert found["old>>new texts"].counts.documents == sum(
        part.counts.documents
        for name, part in found.items()
        if name in ("old>>new texts alone", "old>>new MaxP and texts")
    )
    assert found["random"].errors is None and found["random"].counts.labels["11"] == 20
    with pytest.raises(SystemExit) as ended:
        main(["transfer", "estimate", str(scan.folder), "--labels", str(labels), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert ended.value.code == 0 and told["sets"]["old>>new MaxP"]["errors"][0] == 6


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("set,00\na,1\n", "no column '01'"),
        (TABLE_3.splitlines()[0] + "\n", "no data set in it"),
        (TABLE_3.replace("73,11", "many,11"), "'many' is not a number"),
        (TABLE_3.replace("17969,10", "17969,11"), "'11' is not an error of a set"),
    ],
    ids=["columns", "empty", "number", "error"],
)
def test_faults_in_counts_are_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "counts.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        transfer.estimate(counts=tmp_path / "counts.csv")


def test_nothing_to_estimate_from(scan: Scan, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to estimate from"):
        transfer.estimate()
    with pytest.raises(InputError, match="confidence"):
        transfer.estimate(counts="x.csv", confidence=1)
    (tmp_path / "other.jsonl").write_text('{"topic_id": "3", "doc_id": "old3", "dataset": "x", "label": ["both"]}\n')
    with pytest.raises(InputError, match="no data set of the scan"):
        transfer.estimate(scan, labels=str(tmp_path / "other.jsonl"))


def test_description_is_that_of_a_plain_count(scan: Scan) -> None:
    found = {name: SimpleNamespace(**part) for name, part in scan.summary["documents"].items()}
    one = found["old>>new MaxP"]
    topics = [topic for topic, (_, side) in FAULTS.items() if side == "new"]
    assert one.documents == one.with_url == len(topics) == 7
    assert one.path_length == pytest.approx(sum(len(f"/papers/{topic}") for topic in topics) / 7, abs=1e-6)
    assert one.parameters == pytest.approx(2 * sum(topic % 5 == 0 for topic in topics) / 7, abs=1e-6)
    domains = [f"site{topic % 4}.org" for topic in topics]
    assert one.domain == min(domains, key=lambda name: (-domains.count(name), name))
    assert one.domain_share == pytest.approx(domains.count(one.domain) / 7, abs=1e-6)
    assert (one.similar, one.similarity) == ("old>>new texts", pytest.approx(6 / 7, abs=1e-6))
    assert found["all"].documents == 29
    shown = summary(scan).show()
    assert "The documents of the data sets." in shown and "old>>new texts" in shown and "0.86" in shown


def test_registered_domains() -> None:
    urls = (
        "https://en.wikipedia.org/wiki/X",
        "http://news.bbc.co.uk:80/",
        "http://10.1.2.3/x",
        "x.com/a",
        "http://[bad",
        "",
    )
    assert [registered_domain(url) for url in urls] == ["wikipedia.org", "bbc.co.uk", "10.1.2.3", "x.com", "", ""]
