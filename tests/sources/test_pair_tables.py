"""Judgments and runs as Parquet: the same as the text, by any usual names of columns, and every fault."""

from pathlib import Path

import polars as pl
import pytest

from truerank.errors import InputError
from truerank.measures import evaluate
from truerank.sources import read_qrels, read_qrels_frame, read_run, read_run_frame

RUN = "1 Q0 d1 1 3.5 r\n1 Q0 d2 2 2.5 r\n2 Q0 d9 1 1.25 r\n2 Q0 d1 2 -1 r\n"
QRELS = "1 0 d1 0\n1 0 d2 2\n2 0 d1 1\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "r.run").write_text(RUN)
    (tmp_path / "r.qrels").write_text(QRELS)
    read_run_frame(tmp_path / "r.run").write_parquet(tmp_path / "run.parquet")
    read_qrels_frame(str(tmp_path / "r.qrels")).write_parquet(tmp_path / "qrels.parquet")
    return tmp_path


def test_parquet_is_read_as_the_text_is(files):
    assert read_run_frame(files / "run.parquet").equals(read_run_frame(files / "r.run"))
    assert [*read_run(files / "run.parquet")] == [*read_run(files / "r.run")]
    assert read_qrels_frame(str(files / "qrels.parquet")).equals(read_qrels_frame(str(files / "r.qrels")))
    assert [*read_qrels(str(files / "qrels.parquet"))] == [*read_qrels(str(files / "r.qrels"))]
    text, table = (
        evaluate(str(files / qrels), str(files / run), "nDCG@10 AP RR P@1").values
        for qrels, run in (("r.qrels", "r.run"), ("qrels.parquet", "run.parquet"))
    )
    assert (text == table).all()


def test_columns_by_the_names_of_other_programs(files):
    """ranx writes q_id and no rank, BEIR's judgments have query-id, corpus-id and score."""
    run = pl.read_parquet(files / "run.parquet")
    run.select(pl.col("topic_id").alias("q_id"), "doc_id", "score").write_parquet(files / "ranx.parquet")
    assert read_run_frame(files / "ranx.parquet").equals(run.with_columns(tag=pl.lit("ranx")))
    qrels = pl.read_parquet(files / "qrels.parquet")
    beir = {"topic_id": "query-id", "doc_id": "corpus-id", "relevance": "score"}
    qrels.rename(beir).with_columns(pl.col("score").cast(pl.Int64)).write_parquet(files / "beir.parquet")
    assert read_qrels_frame(str(files / "beir.parquet")).equals(qrels)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda run: pl.concat([run, run.head(1)]), ("topic 1", "d1", "twice")),
        (lambda run: run.with_columns(score=pl.lit(float("nan"))), ("not finite",)),
        (lambda run: run.drop("doc_id"), ("columns missing: doc_id",)),
        (lambda run: run.with_columns(doc_id=pl.lit(None, pl.String)), ("missing",)),
        (lambda run: run.with_columns(rank=pl.col("rank") + 0.5), ("rank 1.5", "whole")),
    ],
)
def test_a_broken_run_says_what_is_wrong_and_where(files, change, words):
    change(pl.read_parquet(files / "run.parquet")).write_parquet(files / "bad.parquet")
    with pytest.raises(InputError) as error:
        read_run_frame(files / "bad.parquet")
    assert all(word in str(error.value) for word in ("bad.parquet", *words))


def test_a_file_that_is_cut_off(files):
    whole = (files / "run.parquet").read_bytes()
    (files / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="Parquet"):
        read_run_frame(files / "cut.parquet")


def test_no_rows(files):
    for name, read in (("run", read_run_frame), ("qrels", lambda path: read_qrels_frame(str(path)))):
        pl.read_parquet(files / f"{name}.parquet").clear().write_parquet(files / "none.parquet")
        with pytest.raises(InputError, match=r"none\.parquet.* no "):
            read(files / "none.parquet")


def test_a_run_is_the_same_in_pieces(files, monkeypatch):
    monkeypatch.setattr("truerank.sources.pair_tables._ROWS", 1)
    run = pl.read_parquet(files / "run.parquet")
    assert read_run_frame(files / "run.parquet").equals(run)
    run.drop("rank").write_parquet(files / "scores.parquet")
    assert read_run_frame(files / "scores.parquet").equals(run)
