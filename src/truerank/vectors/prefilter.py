"""A lexical filter in front of the encoder: character trigrams that a training text shares with a topic text.

The score of a text is the cosine of tf-idf weighted character trigrams within words, the best over the topic texts of
a field. What stays below a field's cut is not encoded; a sample of it, stratified by score, is, and tells what the
filter missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
import scipy
from numpy.typing import NDArray

from truerank.arrays import Floats, frame_schema
from truerank.sources.distinct import text_hashes
from truerank.text.normalising import normalise
from truerank.text.wording import is_question
from truerank.vectors.encoders.base import Vectors
from truerank.vectors.neighbours import PairProbe, Rows, TextBlock, blocks_of, empty_pairs
from truerank.work.blocks import BlockStore, run_blocks
from truerank.work.jobs import Job
from truerank.work.kept import is_whole, keep_text

_BUCKETS: Final = 1 << 17
#: Texts, and cells of text times topic, that are scored at a time: few, so that what lies between stays small.
_TEXTS_AT_ONCE: Final = 1 << 13
_CELLS_AT_ONCE: Final = 1 << 22


class TrigramScorer:
    """Scores texts by the trigrams they share with topic texts.

    Args:
        topic_texts: the topic texts, normalised.
        fields: the field of each topic text.
        sample: texts of the log that the document frequencies are counted on.
    """

    def __init__(self, topic_texts: Sequence[str], fields: Sequence[str], sample: Sequence[str]) -> None:
        document, code, _ = _trigrams([*sample, *topic_texts])
        frequency = np.bincount(code, minlength=_BUCKETS)
        count = len(sample) + len(topic_texts)
        self._idf = (np.log((1 + count) / (1 + frequency)) + 1).astype(np.float32)
        self.fields = tuple(dict.fromkeys(fields))
        order = np.argsort([self.fields.index(field) for field in fields], kind="stable")
        ordered = [topic_texts[place] for place in order]
        self._ends = np.cumsum([sum(field == name for field in fields) for name in self.fields])
        document, code, weight = self._weights(ordered)
        vocabulary = np.unique(code)
        self._column = np.full(_BUCKETS, -1, np.int32)
        self._column[vocabulary] = np.arange(len(vocabulary), dtype=np.int32)
        self._topics = np.zeros((len(vocabulary), len(ordered)), np.float32)
        self._topics[self._column[code], document] = weight

    def scores(self, texts: Sequence[str]) -> Vectors:
        """The best score of each text for each field, shape (texts, fields)."""
        best = np.empty((len(texts), len(self.fields)), np.float32)
        step = max(1, min(_TEXTS_AT_ONCE, _CELLS_AT_ONCE // max(1, self._topics.shape[1])))
        for start in range(0, len(texts), step):
            self._score(texts[start : start + step], best[start : start + step])
        return best

    def _score(self, texts: Sequence[str], best: Vectors) -> None:
        document, code, weight = self._weights(texts)
        column = self._column[code]
        known = column >= 0
        starts = np.searchsorted(document[known], np.arange(len(texts) + 1)).astype(np.int32)
        own = scipy.sparse.csr_array((weight[known], column[known], starts), (len(texts), len(self._topics)))
        similarity = own @ self._topics
        begin = 0
        for place, end in enumerate(self._ends):
            best[:, place] = similarity[:, begin:end].max(axis=1)
            begin = end

    def _weights(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64], Vectors]:
        document, code, count = _trigrams(texts)
        weight = (1 + np.log(count)).astype(np.float32) * self._idf[code]
        norm = np.sqrt(np.bincount(document, weight**2, minlength=len(texts)))
        return document, code, (weight / norm[document]).astype(np.float32)


def _letters_only() -> NDArray[np.uint32]:
    table = np.arange(128, dtype=np.uint32)
    table[[not chr(code).isalnum() for code in range(128)]] = ord(" ")
    return table


_LETTERS: Final = _letters_only()


def _trigrams(texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Distinct trigrams within words as (text, bucket, count), ordered by text and bucket."""
    lowered = [text.lower() for text in texts]
    lengths = np.fromiter((len(text) + 1 for text in lowered), np.int64, len(lowered))
    joined = " " + " ".join(lowered) + " "
    letters = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32).copy()
    plain = letters < 128
    letters[plain] = _LETTERS[letters[plain]]
    owner = np.repeat(np.arange(len(texts), dtype=np.int64), lengths)
    # A window belongs to the text of its middle letter; one with a blank in the middle spans two words.
    inside = np.flatnonzero(letters[1:-1] != ord(" "))
    left, middle, right = letters[inside], letters[inside + 1], letters[inside + 2]
    mixed = left * np.uint32(0x9E3779B1) ^ middle * np.uint32(0x85EBCA6B) ^ right * np.uint32(0xC2B2AE35)
    code = ((mixed ^ (mixed >> np.uint32(15))) * np.uint32(0x2C1B3C6D) >> np.uint32(15)).astype(np.int64)
    keys, counts = np.unique(owner[inside] * _BUCKETS + code, return_counts=True)
    return keys // _BUCKETS, keys % _BUCKETS, counts


#: Cuts by field, from `studies/prefilter.py` (tuned on some logs and topics, tested on others).
DEFAULT_CUTS: Final[Mapping[str, float]] = {"title": 0.45, "description": 0.4, "narrative": 0.4, "variant": 0.45}


class _Stratum(NamedTuple):
    """Texts that miss the cut by less than `distance`: the share of them that is sampled, and the most in all."""

    distance: float
    share: float
    most: int


#: Dense just below the cut, where missed pairs would be.
_STRATA: Final = (
    _Stratum(0.05, 0.2, 400),
    _Stratum(0.10, 0.08, 300),
    _Stratum(0.20, 0.01, 200),
    _Stratum(np.inf, 0.004, 300),
)

_IDF_TEXTS: Final = 1 << 14


@dataclass(frozen=True)
class FilterPlan:
    """How to filter.

    Args:
        topic_texts: the topic texts, normalised.
        fields: the field of each topic text.
        cuts: for each field, the score from which on a text is encoded.
        probe: names texts that pass whatever their score, such as those that have a topic text's words; trigrams alone
            miss "maps" for "map".
        block_size: texts in a block.
        sources: how many sources are filtered so; the recall is estimated over all of them, and they share the sample.
    """

    topic_texts: tuple[str, ...]
    fields: tuple[str, ...]
    cuts: Mapping[str, float]
    probe: PairProbe | None = None
    block_size: int = 1 << 16
    sources: int = 1

    @property
    def most_sampled(self) -> tuple[int, ...]:
        """The most texts of each stratum that are sampled of one source."""
        return tuple(-(-stratum.most // self.sources) for stratum in _STRATA)


@dataclass(frozen=True)
class Recall:
    """Recall of the filter against exhaustive search, estimated from a sample of what it dropped.

    Attributes:
        true_pairs: pairs found above the floor (the ones behind the estimate).
        missed_in_sample: pairs above the floor among the sampled texts that the filter had dropped.
        recall: the estimate; None where there is no pair at all, so that nothing tells what share was missed.
        low, high: its 95% interval; 0 and 1 where nothing tells.
        unmodelled_low: the lower end if nothing is assumed about how the rate of missed pairs falls with the score.
    """

    true_pairs: int
    missed_in_sample: int
    sampled: int
    recall: float | None
    low: float
    high: float
    unmodelled_low: float


@dataclass(frozen=True)
class Filtered:
    """What the filter let through and what it sampled of the rest.

    Attributes:
        chosen: opens the stream of texts to encode: those that passed, and the sample of the others.
        strata: one row per stratum: number, size (texts dropped), sampled.
        sample: the sampled texts with their margins (score minus cut, the best field).
        passed_margins: how many questions and other texts passed by their score with a margin in each bin.
        margins_at: of those of the positions given that passed by their score, the margins and whether they are
            questions.
        sample_pairs: pairs above the floor among the sampled texts.
    """

    chosen: Rows
    strata: pl.DataFrame
    sample: pl.DataFrame
    passed_margins: pl.DataFrame
    margins_at: Callable[[pl.Series], pl.DataFrame]
    read: int
    passed_count: int
    sample_pairs: pl.DataFrame = field(default_factory=empty_pairs)

    def with_sample(self, pairs: pl.DataFrame) -> Filtered:
        """The same with the pairs found in the sample."""
        return replace(self, sample_pairs=pairs)


_FILTERED_SCHEMA: Final[dict[str, Any]] = frame_schema(
    "position: Int64, query_id text: String, margin: Float32, stratum: Int8, question: Boolean, hash: UInt64, "
    "of: UInt32"
)
_PASSED: Final = -1
#: Texts that pass because the probe names them, whatever their score: below the cut there are none, so the rate of true
#: pairs near the cut is modelled without them.
_NAMED: Final = -2


@dataclass(frozen=True)
class _FilterTask:
    plan: FilterPlan
    idf_sample: tuple[str, ...]

    def open(self) -> Callable[[TextBlock], pl.DataFrame]:
        scorer = TrigramScorer(self.plan.topic_texts, self.plan.fields, self.idf_sample)
        cuts = np.array([self.plan.cuts[field] for field in scorer.fields], np.float32)

        def work(block: TextBlock) -> pl.DataFrame:
            margin = (scorer.scores(block.normalised) - cuts).max(axis=1)
            named = np.zeros(len(margin), np.bool_)
            if self.plan.probe is not None:
                named[[place for place, _, _ in self.plan.probe(block.normalised)]] = True
            return _divided(block, margin, named, self.plan.most_sampled)

        return work


def _divided(block: TextBlock, margin: Vectors, named: NDArray[np.bool_], most_sampled: Sequence[int]) -> pl.DataFrame:
    """The texts of a block that pass, and of each stratum of the others those with the smallest hashes."""
    edges = np.array([stratum.distance for stratum in _STRATA])
    stratum = np.where(margin >= 0, _PASSED, np.searchsorted(edges, -margin, side="left")).astype(np.int8)
    stratum[named] = _NAMED
    hashes = text_hashes(block.normalised)
    chosen = [np.flatnonzero(stratum < 0)]
    sizes = [len(block.texts)]
    for number, most in enumerate(most_sampled):
        members = np.flatnonzero(stratum == number)
        chosen.append(members[np.argsort(hashes[members], kind="stable")[:most]])
        sizes.append(len(members))
    rows = np.concatenate(chosen)
    return pl.DataFrame(
        {
            "position": np.asarray(block.positions, np.int64)[rows],
            "query_id": [block.query_ids[row] for row in rows],
            "text": [block.texts[row] for row in rows],
            "margin": margin[rows],
            "stratum": stratum[rows],
            "question": [is_question(block.normalised[row]) for row in rows],
            "hash": hashes[rows],
            "of": np.repeat(sizes, [len(part) for part in chosen]),
        },
        schema=_FILTERED_SCHEMA,
    )


def filter_blocks(rows: Rows, plan: FilterPlan, job: Job) -> Filtered:
    """Filters a stream of distinct texts."""
    store = BlockStore(job.folder, job.key)
    stream = iter(rows())
    first = list(islice(stream, _IDF_TEXTS))
    idf_sample = tuple(row[3] for row in first)
    texts = job.folder.with_name(f"{job.folder.name}.texts")

    def counted(blocks: Iterator[TextBlock]) -> Iterator[TextBlock]:
        read = 0
        for block in blocks:
            read += len(block.texts)
            yield block
            job.progress.advance(len(block.texts))
        keep_text(texts, str(read))

    blocks = counted(blocks_of(chain(first, stream), plan.block_size))
    count = run_blocks(_FilterTask(plan, idf_sample), blocks, store, job.engine, known=is_whole(texts))
    sample, strata, margins = _sample(store, count, plan.most_sampled)

    def chosen() -> Iterator[tuple[int, str, str, str]]:
        in_sample = pl.col("position").is_in(sample["position"].implode())
        for number in range(count):
            frame = store.load(number).filter((pl.col("stratum") < 0) | in_sample).sort("position")
            for position, query_id, text in frame.select("position", "query_id", "text").iter_rows():
                yield position, query_id, text, normalise(text)

    def margins_at(positions: pl.Series) -> pl.DataFrame:
        wanted = (pl.col("stratum") == _PASSED) & pl.col("position").is_in(positions.unique().implode())
        found = [store.load(number).filter(wanted).select(_MARGIN) for number in range(count)]
        return pl.concat(found) if found else pl.DataFrame(schema={name: _FILTERED_SCHEMA[name] for name in _MARGIN})

    passed = sum(int((store.load(number)["stratum"] < 0).sum()) for number in range(count))
    return Filtered(chosen, strata, sample, margins, margins_at, int(texts.read_text()), passed)


def would_pass(rows: Rows, plan: FilterPlan, texts: Sequence[str]) -> list[bool]:
    """Which further texts the filter of a stream would let through by their trigrams."""
    sample = [row[3] for row in islice(rows(), _IDF_TEXTS)]
    scorer = TrigramScorer(plan.topic_texts, plan.fields, sample)
    cuts = np.array([plan.cuts[field] for field in scorer.fields], np.float32)
    return [bool(margin >= 0) for margin in (scorer.scores(texts) - cuts).max(axis=1)]


_MARGIN: Final = ("position", "margin", "question")
#: Bins of the margin above the cut, for the rate of true pairs just above it.
_MARGIN_BIN: Final = 0.05


def _sample(store: BlockStore, count: int, most: Sequence[int]) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """The sample over all blocks, the strata with their sizes, and how many texts passed by how much."""
    sample = pl.DataFrame(schema=_FILTERED_SCHEMA)
    sizes = np.zeros(len(_STRATA), np.int64)
    bins: dict[tuple[int, bool], int] = {}
    for number in range(count):
        frame = store.load(number)
        passed = frame.filter(pl.col("stratum") == _PASSED)
        place_of = (pl.col("margin") / _MARGIN_BIN).floor().cast(pl.Int32)
        for place, question, size in passed.group_by(place_of, "question").len().iter_rows():
            bins[place, question] = bins.get((place, question), 0) + size
        dropped = frame.filter(pl.col("stratum") >= 0)
        for stratum, size in dropped.group_by("stratum").agg(pl.col("of").first()).iter_rows():
            sizes[stratum] += size
        sample = pl.concat([sample, dropped]).sort("stratum", "hash", "position")
        sample = _smallest(sample, most)
    wanted = [
        min(limit, int(np.ceil(stratum.share * size)))
        for limit, stratum, size in zip(most, _STRATA, sizes, strict=True)
    ]
    sample = _smallest(sample, wanted).sort("position")
    drawn = [int((sample["stratum"] == number).sum()) for number in range(len(_STRATA))]
    strata = pl.DataFrame({"stratum": range(len(_STRATA)), "size": sizes, "sampled": drawn})
    margins = pl.DataFrame(
        [(*place, bins[place]) for place in sorted(bins)],
        schema={"bin": pl.Int32, "question": pl.Boolean, "count": pl.Int64},
        orient="row",
    )
    return sample, strata, margins


def _smallest(sample: pl.DataFrame, wanted: Sequence[int]) -> pl.DataFrame:
    """The first texts of each stratum, as many as wanted."""
    limit = pl.col("stratum").replace_strict(dict(enumerate(wanted)), return_dtype=pl.Int64)
    return sample.filter(pl.int_range(pl.len()).over("stratum") < limit)


class _Rates:
    """Counts of true pairs by margin around the cut, over all sources."""

    def __init__(self, parts: Sequence[tuple[Filtered, pl.DataFrame]], question: bool | None) -> None:
        form = pl.lit(True) if question is None else pl.col("question") == question
        near: list[tuple[Floats, Floats, Floats]] = []
        hidden: list[tuple[Floats, Floats, Floats]] = []
        self.true_pairs = self.missed = self.sampled = 0
        self.strata = np.zeros((len(_STRATA), 3))
        for filtered, every in parts:
            found = every.join(filtered.sample.select("position"), on="position", how="anti")
            if question is not None:
                asked = pl.Series([is_question(normalise(text)) for text in found["text"]], dtype=pl.Boolean)
                found = found.filter(asked == question)
            local = filtered.passed_margins.filter(form & (pl.col("bin") * _MARGIN_BIN < _LOCAL))
            bins = local.group_by("bin").agg(pl.col("count").sum()).sort("bin")
            at = found.select("position").join(filtered.margins_at(found["position"]), on="position")
            place = (at["margin"] / _MARGIN_BIN).floor().cast(pl.Int32)
            counted = dict(place.value_counts().iter_rows())
            pairs = [counted.get(number, 0) for number in bins["bin"].to_list()]
            near.append(_columns((bins["bin"] + 0.5) * _MARGIN_BIN, bins["count"], pairs))
            hits = filtered.sample_pairs.group_by("position").len()
            sample = filtered.sample.filter(form).join(hits, on="position", how="left", maintain_order="left")
            sample = sample.with_columns(pl.col("len").fill_null(0))
            near.append(_columns(sample["margin"], np.ones(len(sample)), sample["len"]))
            left = (pl.col("size") - pl.col("sampled")) / pl.col("sampled")
            weights = filtered.strata.select(pl.col("stratum").cast(pl.Int8), weight=left)
            drawn = sample.join(weights, on="stratum", maintain_order="left")
            hidden.append(_columns(drawn["margin"], drawn["weight"], drawn["weight"]))
            self.true_pairs += len(found)
            self.missed += int(sample["len"].sum())
            self.sampled += len(sample)
            self.strata[:, 0] += filtered.strata["size"].to_numpy() - filtered.strata["sampled"].to_numpy()
            self.strata[:, 1] += filtered.strata["sampled"].to_numpy()
            for stratum, count in sample.group_by("stratum").agg(pl.col("len").sum()).iter_rows():
                self.strata[stratum, 2] += count
        self.margins, self.exposures, self.pairs = _binned(*map(np.concatenate, zip(*near, strict=True)))
        self.hidden_margins, self.hidden_weights, _ = _binned(*map(np.concatenate, zip(*hidden, strict=True)))


def _columns(*columns: Any) -> tuple[Floats, Floats, Floats]:
    margins, exposures, pairs = (np.asarray(column, np.float64) for column in columns)
    return margins, exposures, pairs


def _binned(margins: Floats, exposures: Floats, pairs: Floats) -> tuple[Floats, Floats, Floats]:
    """The same sums on a grid of margins, so that the work does not grow with the sample."""
    place, inverse = np.unique(np.round(margins / _GRID).astype(np.int64), return_inverse=True)
    return _columns(place * _GRID, np.bincount(inverse, exposures), np.bincount(inverse, pairs))


#: The interval's error probability.
_ERROR: Final = 0.05
#: Step of the margins that the rate is modelled on.
_GRID: Final = 0.01
#: The rate is modelled from the sample and from what passed by less than this.
_LOCAL: Final = 0.25


def estimate_recall(parts: Sequence[tuple[Filtered, pl.DataFrame]], *, question: bool | None = None) -> Recall:
    """Estimates the filter's recall from what its sample and the texts just above the cut show.

    The rate of true pairs per text is taken to rise exponentially with the filter's score near the cut (Poisson
    regression, slope ≥ 0, weak normal priors, posterior on a grid), which is what lets a few hundred sampled texts
    speak for the many far below the cut. `unmodelled_low` assumes nothing: each stratum's rate is bounded by itself.
    """
    rates = _Rates(parts, question)
    intercept = np.linspace(-25.0, 5.0, 241)[:, None, None]
    slope = np.linspace(0.0, 120.0, 121)[None, :, None]
    log_rate = intercept + slope * rates.margins
    log_posterior = (rates.pairs * log_rate - rates.exposures * np.exp(np.minimum(log_rate, 50))).sum(axis=2)
    log_posterior += -0.5 * ((intercept[..., 0] + 5) / 8) ** 2 - 0.5 * ((slope[..., 0] - 30) / 20) ** 2
    weight = np.exp(log_posterior - log_posterior.max())
    hidden = np.zeros(weight.shape)
    for place, level in enumerate(intercept):
        hidden[place] = np.exp(np.minimum(level + slope[0] * rates.hidden_margins, 50)) @ rates.hidden_weights
    expected = hidden.ravel()
    order = np.argsort(expected, kind="stable")
    cumulated = np.cumsum(weight.ravel()[order])
    # Half of the error is for the rate, half for the pairs that such a rate makes.
    half, rest = _ERROR / 4, 1 - _ERROR / 4
    low, middle, high = (expected[order][np.searchsorted(cumulated, q * cumulated[-1])] for q in (half, 0.5, rest))
    low, high = _poisson_quantile(half, low), _poisson_quantile(rest, high)
    low, middle, high = (rates.missed + missed for missed in (low, float(middle), high))
    bound = rates.missed + sum(
        size * float(scipy.special.gammaincinv(hits + 1, 1 - _ERROR / len(_STRATA))) / drawn
        for size, drawn, hits in rates.strata
        if drawn
    )

    if not rates.true_pairs:
        none, high = (0.0, 0.0) if rates.missed else (None, 1.0)
        return Recall(0, rates.missed, rates.sampled, none, 0.0, high, 0.0)

    def recall(lost: float) -> float:
        return round(float(rates.true_pairs / (rates.true_pairs + lost)), 6)

    return Recall(
        rates.true_pairs, rates.missed, rates.sampled, recall(middle), recall(high), recall(low), recall(bound)
    )


def _poisson_quantile(share: float, mean: float) -> float:
    """The smallest count that is not exceeded with this probability; without SciPy's statistics, slow to load."""
    above = float(np.ceil(scipy.special.pdtrik(share, mean)))
    below = max(0.0, above - 1)
    return below if scipy.special.pdtr(below, mean) >= share else above
