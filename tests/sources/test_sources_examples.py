"""Training examples in the forms in which people have them: which text has which role."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from places import real
from truerank.errors import InputError, OptionError
from truerank.sources import open_documents, open_examples, open_queries
from truerank.sources.columns import Roles, roles_of

QUERY, GOOD, BAD = "who sang hurt first", "Nine Inch Nails sang it in 1994.", "Cash was born in Arkansas."


def jsonl(path: Path, *records: Any) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return str(path)


def texts(source: str, **options: Any) -> list[tuple[str, str]]:
    return [(one.role, one.text) for one in open_examples(source, **options)]


TRIPLE = [("query", QUERY), ("positive", GOOD), ("negative", BAD)]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"anchor": QUERY, "positive": GOOD, "negative": BAD}, TRIPLE),
        ({"query": QUERY, "pos": [GOOD], "neg": [BAD]}, TRIPLE),
        ({"query": QUERY, "positive": GOOD, "negative_1": BAD, "negative_2": "x y"}, [*TRIPLE, ("negative", "x y")]),
        ({"query": f"Query: {QUERY}", "pos": [GOOD], "neg": [BAD], "prompt": "Query: "}, TRIPLE),
        (
            {
                "query_id": "7", "query": QUERY,
                "positive_passages": [{"docid": "1", "title": "Hurt", "text": GOOD}],
                "negative_passages": [{"docid": "2", "title": "-", "text": BAD}],
            },
            [("query", QUERY), ("positive", f"Hurt {GOOD}"), ("negative", BAD)],
        ),
        (
            {"question": QUERY, "answers": ["trent"], "positive_ctxs": [{"text": GOOD}],
             "hard_negative_ctxs": [{"text": BAD}]},
            [("query", QUERY), ("positive", "trent"), ("positive", GOOD), ("negative", BAD)],
        ),
        ([QUERY, GOOD, BAD], TRIPLE),
        ([QUERY, GOOD], TRIPLE[:2]),
        ({"set": [QUERY, "hurt original singer", "hurt first version"]},
         [("query", QUERY), ("positive", "hurt original singer"), ("positive", "hurt first version")]),
        (
            {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUERY},
                          {"role": "assistant", "content": GOOD}]},
            TRIPLE[:2],
        ),
        ({"conversations": [{"from": "human", "value": QUERY}, {"from": "gpt", "value": GOOD}]}, TRIPLE[:2]),
        ({"sentence1": QUERY, "sentence2": GOOD, "score": 4.2}, TRIPLE[:2]),
        ({"query": QUERY, "response": GOOD}, TRIPLE[:2]),
        ({"title": "Hurt", "text": GOOD}, [("query", "Hurt"), ("positive", GOOD)]),
        ({"text": GOOD}, [("document", GOOD)]),
        ({"_id": "d1", "contents": GOOD, "url": "https://example.org/hurt"}, [("document", GOOD)]),
        ({"premise": QUERY, "hypothesis": GOOD, "label": 0}, TRIPLE[:2]),
    ],
)  # fmt: skip
def test_roles_by_names_and_contents(tmp_path: Path, record: Any, expected: list[tuple[str, str]]) -> None:
    assert texts(jsonl(tmp_path / "train.jsonl", record)) == expected


def test_a_low_score_makes_the_second_text_a_negative(tmp_path: Path) -> None:
    """Half of the largest score is the middle: 1.0 of 5 is low, 1 of 1 is not."""
    wide = jsonl(tmp_path / "sts.jsonl", *({"sentence1": QUERY, "sentence2": GOOD, "score": s} for s in (5.0, 1.0)))
    binary = jsonl(tmp_path / "qp.jsonl", *({"sentence1": QUERY, "sentence2": GOOD, "label": s} for s in (1, 0)))
    roles = ["query", "positive", "query", "negative"]
    assert [role for role, _ in texts(wide)] == roles
    assert [role for role, _ in texts(binary)] == roles


def test_lines_with_and_without_names(tmp_path: Path) -> None:
    plain, named = tmp_path / "triples.tsv", tmp_path / "named.tsv"
    plain.write_text(f"{QUERY}\t{GOOD}\t{BAD}\n" * 2)
    named.write_text(f"anchor\tpositive\n{QUERY}\t{GOOD}\n")
    with gzip.open(tmp_path / "triples.tsv.gz", "wt") as stream:
        stream.write(plain.read_text())
    assert texts(str(plain)) == TRIPLE * 2 == texts(str(tmp_path / "triples.tsv.gz"))
    assert texts(str(named)) == TRIPLE[:2]


def test_ids_without_texts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "qidpidtriples.tsv"
    path.write_text("1185869\t0\t2942565\n1185868\t16\t3985960\n")
    with pytest.raises(InputError, match="ids only, no texts"):
        list(open_examples(str(path)))


def saved(folder: Path, *frames: pl.DataFrame) -> Path:
    """A folder as `Dataset.save_to_disk` writes it, with one Arrow stream for each frame."""
    folder.mkdir(parents=True)
    names = [f"data-{number:05}-of-{len(frames):05}.arrow" for number in range(len(frames))]
    for name, frame in zip(names, frames, strict=True):
        frame.write_ipc_stream(folder / name, compat_level=pl.CompatLevel.oldest())
    state = {"_data_files": [{"filename": name} for name in names], "_fingerprint": "0", "_split": None}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text("{}")
    return folder


def test_nested_lists_of_parquet_and_a_saved_folder(tmp_path: Path) -> None:
    frame = pl.DataFrame({"query": [QUERY, "b c"], "pos": [[GOOD], ["d e", "f g"]], "neg": [[BAD], []]})
    frame.write_parquet(tmp_path / "train.parquet")
    expected = [*TRIPLE, ("query", "b c"), ("positive", "d e"), ("positive", "f g")]
    assert texts(str(tmp_path / "train.parquet")) == expected
    folder = str(saved(tmp_path / "saved", frame[:1], frame[1:]))
    assert texts(folder) == expected
    assert [query.text for query in open_queries(folder)] == [QUERY, "b c"]
    assert ";files=2" in open_queries(folder).fingerprint and ";files=2" in open_examples(folder).fingerprint
    documents = open_documents(str(saved(tmp_path / "docs", pl.DataFrame({"_id": ["d1"], "text": [GOOD]}))))
    assert [one.body for one in documents] == [GOOD]
    assert documents.fingerprint.startswith("sha256:")


def test_broken_saved_folders(tmp_path: Path) -> None:
    folder = saved(tmp_path / "splits/train", pl.DataFrame({"anchor": [QUERY], "positive": [GOOD]}))
    assert texts(str(folder)) == TRIPLE[:2]
    (tmp_path / "splits/dataset_dict.json").write_text('{"splits": ["train"]}')
    with pytest.raises(InputError, match=r"of the splits train\. give one of them: .*/train"):
        open_examples(str(tmp_path / "splits"))
    data = next(folder.glob("*.arrow"))
    data.write_bytes(data.read_bytes()[:40])
    with pytest.raises(InputError, match="no valid Arrow stream"):
        list(open_examples(str(folder)))
    data.unlink()
    with pytest.raises(InputError, match="is missing"):
        list(open_examples(str(folder)))


def test_a_beir_folder_gives_judged_queries_with_their_documents(tmp_path: Path) -> None:
    jsonl(tmp_path / "queries.jsonl", {"_id": "1", "text": QUERY}, {"_id": "2", "text": "of the test split"})
    corpus = [("a", "Hurt", GOOD), ("b", "", BAD), ("c", "", "not judged")]
    jsonl(tmp_path / "corpus.jsonl", *({"_id": key, "title": title, "text": text} for key, title, text in corpus))
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels/train.tsv").write_text("query-id\tcorpus-id\tscore\n1\ta\t1\n1\tb\t0\n")
    assert texts(str(tmp_path)) == [("query", QUERY), ("positive", f"Hurt {GOOD}"), ("negative", BAD)]
    with pytest.raises(InputError, match=r"no qrels/dev\.tsv"):
        texts(str(tmp_path), split="dev")


def test_given_roles_win(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "odd.jsonl", {"id": "e1", "asked": QUERY, "told": GOOD, "text": BAD})
    assert texts(source, roles="query=asked,positive=told") == TRIPLE[:2]
    assert [one.example_id for one in open_examples(source, roles="query=asked")] == ["e1"]
    with pytest.raises(InputError, match=r"no column 'said'\. there are id, asked, told, text"):
        texts(source, roles="query=said")
    with pytest.raises(OptionError, match="'answer=told' is not ROLE=COLUMN"):
        open_examples(source, roles="answer=told")


def test_counts_say_what_was_empty_skipped_and_repaired(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    path.write_bytes(
        json.dumps({"query": QUERY, "pos": [GOOD, "  "]}).encode() + b'\n{"query": null, "pos": []}\n'
        + b'{"query": "caf\xe9 noir", "pos": ["x"]}\n'
    )  # fmt: skip
    source = open_examples(str(path))
    assert [one.text for one in source] == [QUERY, GOOD, "café noir", "x"]
    assert (source.counts.read, source.counts.empty, source.counts.skipped, source.counts.repaired) == (6, 1, 1, 1)


words = st.text("abc ", min_size=1, max_size=8).map(lambda text: f"q{text}")


@given(st.lists(st.tuples(words, st.lists(words, max_size=3)), min_size=1, max_size=30), st.integers(1, 9))
def test_blocks_hold_every_text_once_and_no_example_is_divided(tmp_path_factory, examples, size) -> None:
    folder = tmp_path_factory.mktemp("blocks")
    source = open_examples(jsonl(folder / "t.jsonl", *({"query": q, "pos": p} for q, p in examples)))
    blocks = list(source.batches(size))
    assert [text for block in blocks for text in block] == [
        (str(line), role, text)
        for line, (q, p) in enumerate(examples, 1)
        for role, text in [("query", q), *(("positive", one) for one in p)]
    ]
    assert all(left[-1].example_id != right[0].example_id for left, right in pairwise(blocks))


def test_roles_of_nothing() -> None:
    assert roles_of([]) == Roles(())
    assert roles_of([{"n": 1, "m": 2}]).columns == ()


@pytest.mark.shared
def test_a_real_log_is_queries_alone() -> None:
    source = open_examples(str(real("query-logs/nq-dev.tsv.gz")))
    block = next(source.batches())
    assert {text.role for text in block} == {"query"}
    assert block[0].text == "who sings does he love me with reba"
