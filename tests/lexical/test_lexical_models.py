"""Every model against its formula, computed document by document, on small random collections; BM25 against bm25s."""

from __future__ import annotations

import math
import random
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lexical_reference import Reference, ranked
from truerank.errors import InputError
from truerank.lexical import (
    BM25,
    BM25PRF,
    RM3,
    Analyser,
    Axiomatic,
    Index,
    QueryLikelihood,
    Searcher,
    build_index,
    model_of,
    retrieve,
)
from truerank.lexical.expansions import _java_draws
from truerank.lexical.models import quantised
from truerank.lexical.scoring import parse_query, weighted_query

PLAIN = Analyser("whitespace", "none", "none")
WORDS = ["aa", "bb", "cc", "dd", "ee", "ff", "gg", "hh", "12", "x", "Zz", "über"]
#: Rare words, so that some stand in less than a tenth of the documents.
RARE = [f"rare{n}" for n in range(12)]


def build(folder: Path, collection: Mapping[str, Sequence[str]]) -> Index:
    lines = "".join(f"{name}\t{' '.join(terms)}\n" for name, terms in collection.items())
    (folder / "docs.tsv").write_text(lines)
    return build_index(str(folder / "docs.tsv"), folder / "index", analyser=PLAIN)


@st.composite
def collections(draw: st.DrawFn) -> tuple[dict[str, list[str]], list[str]]:
    """Documents of a skewed vocabulary, and a query that holds some of it and words that no document holds."""
    rng = random.Random(draw(st.integers(0, 10_000)))
    size = draw(st.integers(2, 40))
    names = rng.sample([f"d{n}" for n in range(100)], size)
    collection = {
        name: rng.choices(WORDS, [1 / (n + 1) for n in range(len(WORDS))], k=rng.randint(1, 12))
        + rng.sample(RARE, rng.randint(0, 2))
        for name in names
    }
    query = draw(st.lists(st.sampled_from([*WORDS, *RARE, "absent"]), min_size=1, max_size=6))
    return collection, query


few = settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])


def found(searcher: Searcher, model: object, query: Sequence[str], k: int) -> list[tuple[str, float]]:
    ranking = retrieve(searcher, model, " ".join(query), k)  # type: ignore[arg-type]
    if ranking is None:
        return []
    return list(zip(searcher.index.doc_ids(ranking.documents), ranking.scores.tolist(), strict=True))


def agree(got: list[tuple[str, float]], scores: Mapping[str, float], k: int) -> None:
    """The same scores in the same order; documents may change places only where rounding decides."""
    wanted = ranked(scores, k)
    assert len(got) == len(wanted)
    assert [score for _, score in got] == pytest.approx([score for _, score in wanted], abs=2e-6)
    for name, score in got:
        assert score == pytest.approx(scores[name], abs=2e-6)
    assert [(-score, name) for name, score in got] == sorted((-score, name) for name, score in got)


@given(drawn=collections(), k=st.integers(1, 50), k1=st.floats(0, 3), b=st.floats(0, 1))
@few
def test_one_stage_models(drawn: tuple[dict[str, list[str]], list[str]], k: int, k1: float, b: float) -> None:
    collection, query = drawn
    reference, counts = Reference(collection), Counter(drawn[1])
    with tempfile.TemporaryDirectory() as folder:
        searcher = Searcher(build(Path(folder), collection))
        for idf in ("lucene", "robertson", "none"):
            agree(found(searcher, BM25(k1, b, idf), query, k), reference.bm25(counts, k1, b, idf), k)  # type: ignore[arg-type]
        saturated = {term: 9 * count / (8 + count) for term, count in counts.items()}
        agree(found(searcher, BM25(k1, b, k3=8), query, k), reference.bm25(saturated, k1, b), k)
        agree(found(searcher, QueryLikelihood(50), query, k), reference.likelihood(counts, 50), k)
        agree(found(searcher, QueryLikelihood(50, "lucene"), query, k), reference.likelihood_lucene(counts, 50), k)


@given(drawn=collections(), terms=st.integers(1, 8), documents=st.integers(1, 8), share=st.floats(0, 1))
@few
def test_expanded_queries(
    drawn: tuple[dict[str, list[str]], list[str]], terms: int, documents: int, share: float
) -> None:
    collection, query = drawn
    reference, base = Reference(collection), BM25(0.9, 0.4)
    with tempfile.TemporaryDirectory() as folder:
        searcher = Searcher(build(Path(folder), collection))
        first = ranked(reference.bm25(Counter(query), 0.9, 0.4), documents)
        if not first:
            assert found(searcher, RM3(), query, 10) == []
            return
        rm3 = reference.rm3(query, first, terms, share)
        expect(searcher, RM3(terms, documents, share, base), query, rm3)
        likely = reference.likelihood(Counter(query), 1000)
        top = ranked(likely, documents)
        weights = [(name, math.exp(score - top[0][1])) for name, score in top]
        rm3 = reference.rm3(query, weights, terms, share)
        expect(searcher, RM3(terms, documents, share, QueryLikelihood(1000)), query, rm3)
        prf = reference.prf([t for t in query if t != "absent"], [name for name, _ in first], terms, 0.2)
        expect(searcher, BM25PRF(terms, documents, 0.2, base=base), query, prf)
        for factor in (1, 2, 50):
            pool = pooled(collection, [name for name, _ in first], documents * factor)
            for idf in ("once", "exact", "whole"):
                if axiomatic := reference.axiomatic(query, pool, 0.4, terms, idf):
                    model = Axiomatic(documents, factor, 0.4, terms, 42, idf, base)  # type: ignore[arg-type]
                    expect(searcher, model, query, axiomatic)


def expect(
    searcher: Searcher, model: RM3 | Axiomatic | BM25PRF, query: Sequence[str], weights: Mapping[str, float]
) -> None:
    """The expanded query has these weights; terms may be others only where weights are equal up to rounding."""
    parsed = parse_query(searcher, " ".join(query))
    first = searcher.rank(weighted_query(parsed.terms, model.base), model.base, model.depth)
    got = {searcher.index.term(term): weight for term, weight in model.expand(searcher, parsed, first).weights.items()}
    known = {term: weight for term, weight in weights.items() if searcher.index.term_number(term) is not None}
    assert sorted(got.values()) == pytest.approx(sorted(known.values()), rel=1e-5, abs=1e-7)
    edge = min(known.values(), default=0.0)
    for term, weight in known.items():
        if weight > edge * 1.001:
            assert got[term] == pytest.approx(weight, rel=1e-5, abs=1e-7)


def pooled(collection: Mapping[str, object], first: Sequence[str], size: int) -> list[str]:
    """The pool: the first documents, and draws among all in the order of their ids."""
    if size >= len(collection):
        return list(collection)
    chosen, order = dict.fromkeys(first), sorted(collection)
    for draw in _java_draws(42, len(order)):
        if len(chosen) >= size:
            return list(chosen)
        chosen[order[draw]] = None
    raise AssertionError


@pytest.mark.parametrize(
    ("bound", "drawn"),
    [
        (100, [30, 63, 48, 84, 70, 25, 5, 18, 19, 93]),
        (64, [46, 3, 43, 3, 19, 60, 17, 45, 42, 5]),
        (3204, [530, 1407, 324, 1160, 1494, 1825, 257, 1946, 2383, 1253]),
    ],
)
def test_draws_are_those_of_java(bound: int, drawn: list[int]) -> None:
    """What a Java program prints for `new Random(42).nextInt(bound)`."""
    assert list(islice(_java_draws(42, bound), 10)) == drawn


def test_bm25_agrees_with_bm25s(tmp_path: Path) -> None:
    bm25s = pytest.importorskip("bm25s")
    rng = random.Random(7)
    vocabulary = [f"w{n}" for n in range(300)]
    collection = {
        f"d{n:04d}": rng.choices(vocabulary, [1 / (i + 3) for i in range(300)], k=rng.randint(3, 80))
        for n in range(500)
    }
    searcher = Searcher(build(tmp_path, collection))
    for method, idf in (("lucene", "lucene"), ("robertson", "robertson")):
        other = bm25s.BM25(method=method, k1=1.2, b=0.6)
        other.index([*collection.values()], show_progress=False)
        for _ in range(20):
            query = rng.sample(vocabulary[30:], 4)  # none in half of the documents: bm25s cuts Robertson's idf off at 0
            theirs = other.get_scores(query)
            ours = dict(found(searcher, BM25(1.2, 0.6, idf), query, 500))  # type: ignore[arg-type]
            got = np.array([ours.get(name, 0.0) for name in collection])
            np.testing.assert_allclose(got, theirs, atol=2e-5)


def test_fields_weigh_as_if_their_words_stood_there_so_often(tmp_path: Path) -> None:
    rng = random.Random(3)
    rows = {f"d{n}": (rng.choices(WORDS[:6], k=rng.randint(0, 3)), rng.choices(WORDS[:6], k=5)) for n in range(20)}
    text = "".join(f"{name}\t{' '.join(title)}\t{' '.join(body)}\n" for name, (title, body) in rows.items())
    (tmp_path / "docs.tsv").write_text(text)
    index = build_index(str(tmp_path / "docs.tsv"), tmp_path / "i", analyser=PLAIN, fields=("title", "body"))
    for title_weight, body_weight in ((1, 1), (3, 1), (0, 1), (2, 0)):
        reference = Reference({name: title * title_weight + body * body_weight for name, (title, body) in rows.items()})
        searcher = Searcher(index, {"title": title_weight, "body": body_weight})
        for query in (["aa"], ["bb", "cc"], ["dd", "dd", "ee"]):
            agree(found(searcher, BM25(1.2, 0.75), query, 9), reference.bm25(Counter(query), 1.2, 0.75), 9)
            agree(found(searcher, QueryLikelihood(10), query, 9), reference.likelihood(Counter(query), 10), 9)
    for weights, fault in (({"url": 1.0}, "no field 'url'"), ({"title": -1.0}, "-1"), ({"body": 0.0}, "weigh 0")):
        with pytest.raises(InputError, match=fault):
            Searcher(index, weights)


def test_lengths_in_a_byte() -> None:
    """Values of Lucene's SmallFloat: byte4ToInt(intToByte4(n))."""
    given_, kept = (
        [0, 1, 23, 24, 39, 40, 41, 42, 100, 101, 1000, 65535],
        [0, 1, 23, 24, 39, 40, 40, 42, 96, 96, 984, 61464],
    )
    assert quantised(np.array(given_, float)).tolist() == kept


def test_few_and_many_postings_score_alike(tmp_path: Path) -> None:
    """Documents are gathered in two ways, by how many a query touches; a rare word added must not move a bit."""
    rng = random.Random(5)
    collection = {f"d{n}": ["common", *rng.choices(RARE, k=2)] for n in range(400)}
    collection["d0"] = ["alone", "rare1"]
    searcher = Searcher(build(tmp_path, collection))
    reference = Reference(collection)
    for query in (["alone"], ["alone", "rare1"], ["common", "alone"], ["common"]):
        agree(found(searcher, BM25(), query, 1000), reference.bm25(Counter(query), 0.9, 0.4), 1000)


@pytest.mark.parametrize(
    ("model", "parameters", "fault"),
    [
        ("bm25", {"k1": -1}, "k1 is -1"),
        ("bm25", {"b": "much"}, "'much' is not a number"),
        ("bm25", {"idf": "bm25"}, "unknown idf 'bm25'"),
        ("bm25", {"mu": 10}, "no parameter 'mu'"),
        ("ql", {"mu": 0}, "mu is 0"),
        ("rm3", {"terms": 2.5}, "not an integer"),
        ("rm3", {"base.b": 7}, "b is 7"),
        ("axiomatic", {"beta": -1}, "beta is -1"),
        ("tfidf", {}, "unknown model 'tfidf'"),
    ],
)
def test_parameters_out_of_range_are_refused(model: str, parameters: dict[str, object], fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        model_of("anserini", model, parameters)


def test_presets_can_be_changed_in_part() -> None:
    changed = model_of("anserini", "rm3", {"terms": "20", "base.k1": "1.5"})
    assert isinstance(changed, RM3) and (changed.terms, changed.documents) == (20, 10)
    assert changed.base == BM25(1.5, 0.4, lengths="lucene")
    assert model_of("track-documents") == QueryLikelihood(2500)
    assert changed.json()["base"]["k1"] == 1.5
