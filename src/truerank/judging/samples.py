"""Which items are judged (each with its chance of being drawn), by whom, in which order; and a new store of them.

What is drawn depends on the set of items and the seed, not on the order in which the items came.
"""

from __future__ import annotations

import itertools
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from truerank.arrays import Floats
from truerank.core.plain import picked
from truerank.core.result import Result
from truerank.errors import InputError
from truerank.judging.item_sources import read_items
from truerank.judging.items import Annotator, Item
from truerank.judging.schemes import Scheme, load_scheme
from truerank.judging.store import Store
from truerank.loading import decimal_number, whole_number
from truerank.options import Flag, Names, Options, Range, Seed, command
from truerank.sources.grammar import SourceSpec, named_source
from truerank.sources.inputs import input_of, inputs_of
from truerank.work.runs import run as started

_REMEDY: Final = "write all, random:N, strata:0.8-1:N, top:N@0.91 or per:dataset:N"
_EDGES: Final = re.compile(r"(?P<low>-?[\d.]+(?:e-?\d+)?)-(?P<high>-?[\d.]+(?:e-?\d+)?)(?:/(?P<bins>\d+))?", re.ASCII)
_BINS: Final = 4

Kind = Literal["all", "random", "strata", "top", "per"]


@dataclass(frozen=True)
class Stage:
    """One step of a plan: "all"; "random" n items; "strata" of the score, n items in all; the "top" n of each topic
    (above a score); n items "per" value of a field (dataset, stratum or topic), or a number for each name.

    A stratum is above its lower and at most at its upper edge; without edges, `quantiles` of them have one size.
    """

    kind: Kind
    n: int = 0
    edges: tuple[float, ...] = ()
    quantiles: int = 0
    above: float | None = None
    field: str = ""
    quotas: tuple[tuple[str, int], ...] = ()

    @property
    def drawn(self) -> bool:
        """Whether chance decides."""
        return self.kind in ("random", "strata", "per")


@dataclass(frozen=True)
class SamplePlan:
    """Steps one after the other: each takes from what the one before it left."""

    text: str
    stages: tuple[Stage, ...]


def parse_plan(text: str) -> SamplePlan:
    """Takes a plan apart.

    `all`; `random:100`; `strata:0.8-1:100` (four strata of one width; `0.8-1/10` makes ten; `0.8,0.9,0.95,1` gives
    the borders; `q5` makes five of one size), the same number from each as far as it has them; `top:5@0.91`, per topic
    the five with the highest score above 0.91; `per:dataset:50` (or `stratum`, `topic`), or with a number for each
    that is wanted, `per:dataset:robust04=50,core17=20`. Steps are joined by "then".
    """
    stages = tuple(_stage(part.strip(), text) for part in re.split(r"\s+then\s+", text.strip()))
    for before, after in itertools.pairwise(stages):
        if before.drawn and after.kind != "random":
            fault = f"'{after.kind}' after '{before.kind}', which draws at random"
            raise InputError(fault, "put it first; only 'then random:N' can follow", where=f"sample {text}")
    return SamplePlan(" ".join(text.split()), stages)


def _stage(text: str, whole: str) -> Stage:
    kind, _, rest = text.partition(":")
    if kind == "all" and not rest:
        return Stage("all")
    if kind == "random":
        return Stage("random", _count(rest, whole))
    if kind == "top":
        count, at, above = rest.partition("@")
        return Stage("top", _count(count, whole), above=_number(above, whole) if at else None)
    if kind == "per":
        field, _, count = rest.partition(":")
        if field not in ("dataset", "stratum", "topic"):
            raise InputError(f"no items per '{field}'", "per dataset, stratum or topic", where=f"sample {whole}")
        if "=" in count:
            return Stage("per", field=field, quotas=_quotas(count, whole))
        return Stage("per", _count(count, whole), field=field)
    if kind == "strata":
        borders, _, count = rest.rpartition(":")
        return _strata(borders, _count(count, whole), whole)
    raise InputError(f"'{text}' is not a sample", _REMEDY, where=f"sample {whole}")


def _strata(borders: str, n: int, whole: str) -> Stage:
    if re.fullmatch(r"q\d+", borders):
        return Stage("strata", n, quantiles=_count(borders[1:], whole))
    if match := _EDGES.fullmatch(borders):
        low, high = _number(match["low"], whole), _number(match["high"], whole)
        bins = _count(match["bins"], whole) if match["bins"] else _BINS
        edges = tuple(round(low + (high - low) * k / bins, 12) for k in range(bins + 1))
    else:
        edges = tuple(_number(part, whole) for part in borders.split(","))
    if len(edges) < 2 or any(a >= b for a, b in itertools.pairwise(edges)):
        raise InputError(f"borders must rise, got '{borders}'", "write 0.8-1 or 0.8,0.9,1", where=f"sample {whole}")
    return Stage("strata", n, edges)


def _quotas(text: str, whole: str) -> tuple[tuple[str, int], ...]:
    quotas: dict[str, int] = {}
    for part in text.split(","):
        name, _, count = part.rpartition("=")
        if not name.strip() or name.strip() in quotas:
            raise InputError(f"'{part}' is not a number for a name", "write NAME=N,NAME=N", where=f"sample {whole}")
        quotas[name.strip()] = _count(count.strip(), whole)
    return tuple(quotas.items())


def _count(text: str, whole: str) -> int:
    number = whole_number(text) or 0
    if number < 1:
        raise InputError(f"'{text[:40]}' is not a number of items", _REMEDY, where=f"sample {whole}")
    return number


def _number(text: str, whole: str) -> float:
    value = decimal_number(text)
    if value is None:
        raise InputError(f"'{text}' is not a score", _REMEDY, where=f"sample {whole}")
    return value


Order = Literal["shuffled", "topic", "given"]
_Mask = npt.NDArray[np.bool_]


class Stratum(NamedTuple):
    """How many items of a stratum there are and were drawn."""

    name: str
    population: int
    drawn: int


@dataclass(frozen=True)
class ItemSample:
    """A sample.

    Attributes:
        items: what was drawn, in the order of the source, each with its probability and stratum.
        population: how many items there were.
        plans: the plans, as text.
        seed: of the draw.
        strata: what each stratum holds, where the plans have strata.
    """

    items: tuple[Item, ...]
    population: int
    plans: tuple[str, ...]
    seed: int
    strata: tuple[Stratum, ...] = ()

    def json(self) -> dict[str, Any]:
        """The plan and its outcome as a JSON object."""
        known = picked(self, "sample=plans, seed, population")
        return {**known, "drawn": len(self.items), "strata": [stratum._asdict() for stratum in self.strata]}


@dataclass(frozen=True)
class Assignment:
    """Who judges what.

    Attributes:
        work: annotator → item ids in the order of work.
        overlap: items that every annotator judges.
        checked: items that a second person looks at.
    """

    work: Mapping[str, tuple[str, ...]]
    overlap: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()

    def json(self) -> dict[str, Any]:
        """How many items each annotator has."""
        return {
            "annotators": {name: len(ids) for name, ids in self.work.items()},
            "overlap": len(self.overlap),
            "spot_check": len(self.checked),
        }


def draw(
    items: Sequence[Item], plans: str | SamplePlan | Sequence[str | SamplePlan] = "all", *, seed: int = 0
) -> ItemSample:
    """Draws a sample.

    Several plans are drawn independently of each other, and what any of them took is in the sample: the probability
    of an item is then that of at least one.

    Args:
        items: what there is; a probability that an item has already is multiplied by that of this draw.
        plans: one plan or several, see `sampling_plans.parse_plan`.
        seed: of the draw.

    Returns:
        The sample; the items' probabilities are exact.

    Raises:
        InputError: a plan of an unknown form, a plan by score and an item without one, or nothing that fits the plan.
    """
    given = [plans] if isinstance(plans, (str, SamplePlan)) else list(plans) or ["all"]
    parsed = [parse_plan(plan) if isinstance(plan, str) else plan for plan in given]
    population = _Population.of(items)
    probability = np.zeros(len(items))
    taken = np.zeros(len(items), np.bool_)
    names = np.array([item.stratum for item in items], dtype=object)
    strata: list[Stratum] = []
    for number, plan in enumerate(parsed):
        outcome, random = (
            _Outcome(np.ones(len(items), np.bool_), np.ones(len(items))),
            np.random.default_rng([seed, number]),
        )
        for stage in plan.stages:
            outcome = _step(outcome, stage, population, plan, random)
        probability += outcome.probability - probability * outcome.probability
        taken |= outcome.mask
        if outcome.named is not None:
            names = np.where(outcome.named != "", outcome.named, names)
            for name in outcome.order:
                there = outcome.named == name
                strata.append(Stratum(name, int(there.sum()), int((there & outcome.mask).sum())))
    drawn = [
        replace(item, probability=item.probability * float(p), stratum=str(name))
        for item, p, name, take in zip(items, probability, names, taken, strict=True)
        if take
    ]
    texts = tuple(plan.text for plan in parsed)
    if not drawn:
        raise InputError("no item fits the sample", "lower the scores in it", where=f"sample {'; '.join(texts)}")
    return ItemSample(tuple(drawn), len(items), texts, seed, tuple(strata))


def assign(
    items: Sequence[Item],
    annotators: Sequence[str],
    *,
    overlap: int = 0,
    spot_check: int = 0,
    checkers: Sequence[str] = (),
    order: Order = "shuffled",
    seed: int = 0,
) -> Assignment:
    """Says who judges which items, and in which order.

    Args:
        items: the sample.
        annotators: who judges; each gets the overlap first and then an equal part of the rest.
        overlap: how many items all annotators judge, at least: topics are drawn at random, and all items of a topic
            that is touched are in, until there are as many.
        spot_check: how many of the other items a second person looks at.
        checkers: who does that; without them it is the other annotators.
        order: "shuffled" for each annotator on their own; "topic" keeps the items of a topic together, the topics in
            an order of the annotator's own; "given" as the items came.
        seed: of everything that is drawn here.

    Returns:
        The work of everyone.

    Raises:
        InputError: no annotator, one that is named twice, or nobody to make an overlap or a spot check with.

    Source: the leakage paper, section 3 (103 pairs of both annotators, the rest in halves); the transfer paper,
        section 5 (random checks by others).
    """
    _check_people(annotators, checkers, overlap, spot_check)
    by_id = {item.item_id: item for item in items}
    places = {item.item_id: place for place, item in enumerate(items)}
    shared = _overlap(items, overlap, _random(seed, "overlap"))
    rest = [item.item_id for item in items if item.item_id not in shared]
    # Consecutive parts whose sizes differ by at most one.
    rest = _ordered(rest, by_id, order, _random(seed, "split"))
    borders = [len(rest) * k // len(annotators) for k in range(len(annotators) + 1)]
    parts = [rest[low:high] for low, high in itertools.pairwise(borders)]
    owner = {item_id: name for name, part in zip(annotators, parts, strict=True) for item_id in part}
    checked = _spot_checks(owner, checkers or annotators, spot_check, _random(seed, "spot check"))
    work = {name: [*part] for name, part in zip(annotators, parts, strict=True)}
    for name, extra in checked.items():
        work[name] = [*work.get(name, []), *extra]
    ordered = {}
    for name, ids in work.items():
        # What everybody judges comes first: whoever stops early has it.
        first = sorted(shared if name in annotators else (), key=places.__getitem__)
        random, in_place = _random(seed, f"order {name}"), sorted(ids, key=places.__getitem__)
        ordered[name] = tuple(i for part in (first, in_place) for i in _ordered(part, by_id, order, random))
    second = sorted({item_id for ids in checked.values() for item_id in ids}, key=places.__getitem__)
    return Assignment(ordered, tuple(sorted(shared, key=places.__getitem__)), tuple(second))


class _Population(NamedTuple):
    """The items as arrays; `ranked` holds their positions in the order of their ids."""

    scores: Floats
    topics: npt.NDArray[np.object_]
    datasets: npt.NDArray[np.object_]
    strata: npt.NDArray[np.object_]
    ranked: npt.NDArray[np.int64]

    @classmethod
    def of(cls, items: Sequence[Item]) -> _Population:
        scores = [np.nan if item.score is None else item.score for item in items]
        names = ("topic_id", "dataset", "stratum")
        topics, datasets, strata = (np.array([getattr(one, name) for one in items], dtype=object) for name in names)
        ranked = np.array(sorted(range(len(items)), key=lambda place: items[place].item_id), np.int64)
        return cls(np.array(scores, np.float64), topics, datasets, strata, ranked)

    def checked_scores(self, plan: SamplePlan) -> Floats:
        """The scores, where every item has one."""
        lacking = int(np.isnan(self.scores).sum())
        if lacking:
            fault = f"{lacking} of {len(self.scores)} items have no score"
            raise InputError(fault, "sample with random:N or per:topic:N", where=f"sample {plan.text}")
        return self.scores


class _Outcome(NamedTuple):
    """What a plan drew, the probability of every item, and the strata's names where it has strata."""

    mask: _Mask
    probability: Floats
    named: npt.NDArray[np.object_] | None = None
    order: tuple[str, ...] = ()


def _step(
    before: _Outcome, stage: Stage, population: _Population, plan: SamplePlan, random: np.random.Generator
) -> _Outcome:
    """One step: what is left of `before`. Only `random` follows a random step, and its size is no matter of chance."""
    if stage.kind == "all":
        return before
    if stage.kind == "top":
        kept = before.mask & _top(population, stage, before.mask, plan)
        return before._replace(mask=kept, probability=before.probability * kept)
    if stage.kind == "random":
        size = int(before.mask.sum())
        part = min(stage.n, size)
        mask = _some(before.mask, part, population, random)
        return before._replace(mask=mask, probability=before.probability * (part / size if size else 0.0))
    named, order = _groups(population, stage, before.mask, plan)
    sizes = [int(((named == name) & before.mask).sum()) for name in order]
    parts = _shared(stage.n, sizes) if stage.kind == "strata" else _quota_sizes(stage, order, sizes, plan)
    mask, probability = np.zeros_like(before.mask), np.zeros_like(before.probability)
    for name, size, part in zip(order, sizes, parts, strict=True):
        group = before.mask & (named == name)
        mask |= _some(group, part, population, random)
        probability[group] = before.probability[group] * (part / size if size else 0.0)
    shown = named if stage.kind == "strata" or stage.field != "topic" else None
    return _Outcome(mask, probability, shown, order if shown is not None else ())


def _some(mask: _Mask, n: int, population: _Population, random: np.random.Generator) -> _Mask:
    """n of the items of a mask, each set of n with the same chance."""
    there = population.ranked[mask[population.ranked]]
    chosen = np.zeros_like(mask)
    chosen[random.permutation(there)[:n]] = True
    return chosen


def _top(population: _Population, stage: Stage, mask: _Mask, plan: SamplePlan) -> _Mask:
    """The n highest scores of each topic, ties by item id."""
    scores = population.checked_scores(plan)
    places = np.empty(len(scores), np.int64)
    places[population.ranked] = np.arange(len(scores))
    kept = np.zeros(len(scores), np.bool_)
    counts: dict[str, int] = {}
    for position in np.lexsort((places, -scores)):
        topic = population.topics[position]
        if not mask[position] or (stage.above is not None and scores[position] <= stage.above):
            continue
        counts[topic] = counts.get(topic, 0) + 1
        kept[position] = counts[topic] <= stage.n
    return kept


def _groups(
    population: _Population, stage: Stage, mask: _Mask, plan: SamplePlan
) -> tuple[npt.NDArray[np.object_], tuple[str, ...]]:
    """The name of every item's group ("" for none), and the groups in order."""
    if stage.kind == "per":
        named = {"dataset": population.datasets, "stratum": population.strata, "topic": population.topics}[stage.field]
        return named, tuple(sorted(set(named[mask])))
    scores = population.checked_scores(plan)
    edges = np.array(stage.edges) if stage.edges else _quantiles(scores[mask], stage.quantiles, plan)
    names = tuple(f"({low:g}, {high:g}]" for low, high in itertools.pairwise(edges))
    bins = np.searchsorted(edges, scores, side="left") - 1
    inside = (bins >= 0) & (bins < len(names))
    named = np.array([names[k] if good else "" for k, good in zip(bins, inside, strict=True)], dtype=object)
    return named, names


def _quantiles(scores: Floats, count: int, plan: SamplePlan) -> Floats:
    if not len(scores):
        raise InputError("nothing to make strata of", "lower the scores", where=f"sample {plan.text}")
    edges = np.unique(np.quantile(scores, np.linspace(0, 1, count + 1)))
    # The lowest score belongs to the lowest stratum, whose lower border is open.
    edges[0] = np.nextafter(edges[0], -np.inf)
    return edges if len(edges) > 1 else np.array([edges[0], scores.max()])


def _quota_sizes(stage: Stage, order: Sequence[str], sizes: Sequence[int], plan: SamplePlan) -> list[int]:
    """How many items each group gives: n, or its own number; never more than it has."""
    wanted = dict(stage.quotas)
    unknown = next((name for name in wanted if name not in order), None)
    if unknown is not None:
        there = ", ".join(order) or "none"
        raise InputError(f"no {stage.field} '{unknown}'", f"there are {there}", where=f"sample {plan.text}")
    return [min(wanted.get(name, 0) if wanted else stage.n, size) for name, size in zip(order, sizes, strict=True)]


def _shared(n: int, sizes: Sequence[int]) -> list[int]:
    """n in equal parts; what a small stratum cannot give, the others do, the later (higher) ones first."""
    parts = [0] * len(sizes)
    left = min(n, sum(sizes))
    while left:
        open_ones = [k for k, size in enumerate(sizes) if parts[k] < size]
        each = left // len(open_ones)
        if not each:
            for k in open_ones[::-1][:left]:
                parts[k] += 1
            break
        for k in open_ones:
            more = min(each, sizes[k] - parts[k])
            parts[k] += more
            left -= more
    return parts


def _check_people(annotators: Sequence[str], checkers: Sequence[str], overlap: int, spot_check: int) -> None:
    everyone = [*annotators, *checkers]
    twice = next((name for name in everyone if everyone.count(name) > 1), None)
    if not annotators:
        raise InputError("no annotator", "name one with `annotators`", where="assign")
    if twice is not None:
        raise InputError(f"'{twice}' is named twice", "name everyone once", where="assign")
    if overlap < 0 or spot_check < 0:
        raise InputError("a negative number of items", "give 0 or more", where="assign")
    if overlap and len(annotators) < 2:
        raise InputError("an overlap needs two annotators", "name another one with `annotators`", where="assign")
    if spot_check and len(everyone) < 2:
        raise InputError("a spot check needs a second person", "name one with `checkers`", where="assign")


def _overlap(items: Sequence[Item], wanted: int, random: np.random.Generator) -> list[str]:
    """Whole topics, in random order, until there are enough items."""
    by_topic = _by_topic(items)
    topics, chosen = sorted(by_topic), list[str]()
    for position in random.permutation(len(topics)):
        if len(chosen) >= wanted:
            break
        chosen += by_topic[topics[position]]
    return chosen


def _by_topic(items: Iterable[Item]) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for item in items:
        found.setdefault((item.dataset, item.topic_id), []).append(item.item_id)
    return found


def _ordered(ids: list[str], by_id: Mapping[str, Item], order: Order, random: np.random.Generator) -> list[str]:
    if order == "given":
        return list(ids)
    if order == "shuffled":
        there = sorted(ids)
        return [there[position] for position in random.permutation(len(there))]
    by_topic = _by_topic(by_id[item_id] for item_id in ids)
    topics = sorted(by_topic)
    return [item_id for position in random.permutation(len(topics)) for item_id in by_topic[topics[position]]]


def _spot_checks(
    owner: Mapping[str, str], people: Sequence[str], wanted: int, random: np.random.Generator
) -> dict[str, list[str]]:
    """Items that a second person gets, in turn: never the one who has the item already."""
    there = sorted(owner)
    extra: dict[str, list[str]] = {name: [] for name in people}
    for position in random.permutation(len(there))[:wanted]:
        item_id = there[position]
        able = [name for name in people if name != owner[item_id]]
        extra[min(able, key=lambda name: (len(extra[name]), people.index(name)))].append(item_id)
    return extra


def _random(seed: int, purpose: str) -> np.random.Generator:
    """A stream of its own for each purpose, so that one option does not change what another one draws."""
    return np.random.default_rng([seed, zlib.crc32(purpose.encode())])


@dataclass(frozen=True)
class People(Options):
    """Who judges, and how the items are shared out.

    Attributes:
        annotators: who judges; each gets the overlap and an equal part of the rest.
        overlap: items that all of them judge first, at least so many; whole topics.
        checkers: people who only look at the spot check; without them the other annotators do.
        spot_check: further items that a second person looks at.
        adjudicators: people who settle disagreements.
        order: the order of work: shuffled, by topic, or as given.
    """

    annotators: Names = ("annotator",)
    overlap: Annotated[int, Range(at_least=0)] = 0
    checkers: Names = ()
    spot_check: Annotated[int, Range(at_least=0)] = 0
    adjudicators: Names = ()
    order: Order = "shuffled"


@dataclass(frozen=True, eq=False, repr=False)
class NewStore(Result, shown_in="truerank.judging.report"):
    """What a new store holds.

    Attributes:
        path: the file.
        scheme: what is asked.
        sample: what was drawn.
        assignment: who judges what.
        adjudicators: who settles disagreements.
    """

    path: Path
    scheme: str
    sample: ItemSample
    assignment: Assignment
    adjudicators: tuple[str, ...] = ()

    def json(self) -> dict[str, Any]:
        """The store as a JSON object."""
        known = picked(self, "store=path, scheme")
        return {**known, **self.sample.json(), **self.assignment.json(), "adjudicators": list(self.adjudicators)}


@command
def new(
    store: Annotated[str | Path, Flag(metavar="STORE", positional=True, reads=Path)],
    scheme: Annotated[str | Path | Scheme, Flag(metavar="NAME|FILE", reads=str)],
    items: Annotated[Any, Flag(metavar="SRC", reads=list[str])],
    sample: Annotated[str | Sequence[str], Flag(metavar="PLAN", reads=list[str])] = "all",
    people: People = People(),
    *,
    topics: Annotated[Sequence[str], Flag(metavar="[NAME=]SRC")] = (),
    docs: Annotated[Sequence[str], Flag(metavar="SRC")] = (),
    seed: Seed = 0,
) -> NewStore:
    """Makes a store of items that are to be judged, and says who judges which.

    Args:
        store: the file to make; it is never overwritten.
        scheme: what is asked: leakage, leak, transfer, transfer:N, survivorship, answerability, relevance-documents,
            relevance-passages, duplicates, or a TOML or JSON file. In Python also a scheme.
        items: what is judged: the folder of an audit, a table, or a run; several are read together. In Python also
            items.
        sample: all, random:N, strata:0.8-1:N, top:N@0.91 (per topic), per:dataset:N or per:dataset:A=N,B=N; steps are
            joined by "then"; a further plan adds another sample to the first.
        people: who judges.
        topics: test sets whose titles and descriptions complete the items.
        docs: tables of documents (doc_id, text), where the items are a run.
        seed: of the sample, of who judges what, and of the order of work.

    Returns:
        What the store holds; STORE.manifest.json says where it comes from.

    Raises:
        InputError: a source, scheme, plan or name is at fault; the store is there already or cannot be written.

    Examples:

        truerank judge new leakage.judged --scheme leakage --items audit/ --sample top:5@0.91 --annotators ann,bob
        --overlap 100

        truerank judge new threshold.judged --scheme leak --items audit/ --sample strata:0.8-1:100

        truerank judge new versions.judged --scheme transfer --items pairs.jsonl --sample per:dataset:100
        --checkers carl,dora --spot-check 60

        truerank judge new graded.judged --scheme relevance-passages --items bm25.run --topics topics.tsv
        --docs passages.jsonl --sample top:10
    """
    place = Path(store)
    if place.exists():
        raise InputError("is there already", "choose another name; a store is never overwritten", where=place)
    opened = scheme if isinstance(scheme, Scheme) else load_scheme(scheme)
    clash = set(people.adjudicators) & {*people.annotators, *people.checkers}
    if clash:
        fault = f"'{min(clash)}' is annotator and adjudicator"
        raise InputError(fault, "use another name for one of the two", where=place)
    several = [items] if isinstance(items, str | Path | SourceSpec) else list(items)
    sources = [str(one) if isinstance(one, Path) else one for one in several]
    given = [one for one in sources if isinstance(one, Item)]
    specs = [one for one in sources if isinstance(one, str | SourceSpec)]
    if given and specs:
        raise InputError("items and sources mixed in one list", "give the items or the sources")
    drawn = draw(given or read_items(specs, opened, topics=topics, docs=docs), sample, seed=seed)
    how = {name: value for name, value in vars(people).items() if name not in ("annotators", "adjudicators")}
    assignment = assign(drawn.items, people.annotators, **how, seed=seed)
    plan = {**drawn.json(), **assignment.json(), "order": people.order}
    judges = [Annotator(name, "adjudicator") for name in dict.fromkeys(people.adjudicators)]
    options = {"scheme": opened.name, "sample": sample, "people": people, "seed": seed}
    named = [input_of("topics", spec, name) for name, spec in map(named_source, topics)]
    inputs = (*inputs_of(items=[one for one in sources if not isinstance(one, Item)]), *named, *inputs_of(docs=docs))
    with started("judge new", inputs, options, place, file=True):
        # The bytes of a store change with every judgment: the manifest has no hash of it.
        Store.create(place, opened, drawn.items, assignment.work, seed=seed, plan=plan, annotators=judges).close()
    return NewStore(place, opened.name, drawn, assignment, tuple(judge.name for judge in judges))


@runtime_checkable
class Proposer(Protocol):
    """Chooses items by what the store holds; an active learner, or a pool that grows."""

    def propose(self, store: Store, annotator: str, n: int) -> Sequence[Item]:
        """At most n items that the annotator should judge next; none when there is nothing left worth a look."""
        ...


def next_item(store: Store, annotator: str, proposer: Proposer | None = None, *, batch: int = 1) -> Item | None:
    """The annotator's next item; asks the proposer where none is left."""
    found = store.next_item(annotator)
    if found is not None or proposer is None:
        return found
    store.extend(proposer.propose(store, annotator, batch), annotator)
    return store.next_item(annotator)
