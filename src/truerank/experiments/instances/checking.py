"""Proving what training sets promise, alone and next to each other."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Annotated, ClassVar, Final, NamedTuple

import polars as pl

from truerank.errors import InputError
from truerank.experiments.instances.built import open_built
from truerank.experiments.instances.filling import judged_documents
from truerank.experiments.instances.leaks import excluded, leaks_above, read_candidates
from truerank.experiments.instances.opening import relevant_documents
from truerank.experiments.instances.proofs import LoadedSet, ProofEvidence, Property, load_set, proofs
from truerank.judging.labels import open_judgments
from truerank.judging.votes import Votes
from truerank.options import Flag, Sources, command
from truerank.reports.results import Result
from truerank.sources.grammar import parse
from truerank.sources.topics import read_topics
from truerank.text.normalising import normalise

_SIZED: Final = re.compile(r"(?P<folder>.+)\?size=(?P<size>[0-9]{1,18})")
_ROW: Final = ("query_id", "relevant_id", "nonrelevant_id")


class SetPair(NamedTuple):
    """Two sets next to each other: what they share, and whether their rows without a leak are the same ones."""

    first: str
    second: str
    rows: int
    queries: int
    documents: int
    same_fill: Property


@dataclass(frozen=True, repr=False)
class InstanceStats(Result, shown_in="truerank.experiments.instances.report"):
    """What was checked of several sets.

    Attributes:
        sets: the sets in the order given.
        properties: for each set what it promises.
        pairs: every two of them.
    """

    verdict_words: ClassVar[tuple[str, ...]] = ("broken",)

    sets: tuple[LoadedSet, ...]
    properties: tuple[tuple[Property, ...], ...]
    pairs: tuple[SetPair, ...]

    @property
    def holds(self) -> bool:
        """Whether no promise is broken."""
        checked = [one for own in self.properties for one in own] + [pair.same_fill for pair in self.pairs]
        return all(one.holds is not False for one in checked)


@command
def stats(
    folders: Annotated[Sequence[str | Path], Flag(metavar="DIR…", positional=True, reads=list[str])],
    *,
    audit: Annotated[tuple[str, ...], Flag(metavar="DIR", reads=list[str])] = (),
    labels: Sources = (),
    votes: Votes | None = None,
    train_qrels: Sources = (),
    qrels: Annotated[str | None, Flag(metavar="SRC")] = None,
) -> InstanceStats:
    """Proves what training sets promise: each property with holds, BROKEN or not checked, and its numbers.

    Counts, balance of the sources, nested sizes, texts, repeats, ranks of the non-relevant documents; that no leaking
    query is in a row without a leak; that no relevant document is the non-relevant one of its query; of several sets
    what they share, and that their rows without a leak are the same.

    Args:
        folders: what `instances build` wrote; DIR?size=N: the beginning of one.
        audit: folders of audits to check against; by default those that each set was built with.
        labels: judged pairs; by default those that each set was built with.
        votes: how several voices make one answer; by default as each set was built.
        train_qrels: training judgments; by default those that each set was built with.
        qrels: test judgments; by default those that each set was built with.

    Returns:
        The properties of each set and of every two of them.

    Raises:
        InputError: no set there, or a source that was named cannot be read.

    Examples:

        truerank instances stats none/ leak/ test/

        truerank instances stats 'leak/?size=1000' --audit audit/ --fail-on broken
    """
    loaded = tuple(_loaded(str(one)) for one in folders)
    if not loaded:
        raise InputError("no training set was named", "give the folders that 'instances build' wrote")
    given = {"audit": tuple(audit), "labels": tuple(labels), "train_qrels": tuple(train_qrels)}
    own = [_own_sources(one, given, qrels) for one in loaded]
    relevant = _relevant(loaded, own)
    evidence = [
        _evidence(one, sources, found, votes) for one, sources, found in zip(loaded, own, relevant, strict=True)
    ]
    found = tuple(tuple(proofs(one, known)) for one, known in zip(loaded, evidence, strict=True))
    return InstanceStats(loaded, found, tuple(_pair(one, other) for one, other in combinations(loaded, 2)))


class _Sources(NamedTuple):
    """Where the evidence about a set lies, and which of it is not there."""

    audit: tuple[str, ...]
    labels: tuple[str, ...]
    train_qrels: tuple[str, ...]
    qrels: str | None
    missing: dict[str, str]


def _loaded(spec: str) -> LoadedSet:
    match = None if Path(spec).exists() else _SIZED.fullmatch(spec)
    built = open_built(match["folder"] if match else spec)
    size = int(match["size"]) if match else None
    if size is not None and (size < 2 or size % 2 or size // 2 > built.rows):
        fault = f"the set has {2 * built.rows:,} instances, not {size:,}"
        raise InputError(fault, "give an even number up to that", where=spec)
    name = built.folder.resolve().name
    return load_set(name if size is None else f"{name}-{size}", built, size)


def _own_sources(one: LoadedSet, given: dict[str, tuple[str, ...]], qrels: str | None) -> _Sources:
    """What was named, else what the set was built with, as far as it is still there."""
    missing: dict[str, str] = {}
    found: dict[str, tuple[str, ...]] = {}
    for name, named in given.items():
        built_with = [tuple(about["options"].get(name) or ()) for about in one.abouts]
        specs = named or next(filter(None, built_with), ())
        gone = [spec for spec in specs if not named and not _is_there(spec)]
        found[name] = () if gone else specs
        if gone:
            missing[name] = f"{gone[0]} is not there"
    own = qrels or one.options.get("qrels")
    if own and not qrels and not _is_there(own):
        missing["qrels"], own = f"{own} is not there", None
    if "train_qrels" in missing:
        missing["qrels"] = missing["train_qrels"]
    return _Sources(found["audit"], found["labels"], found["train_qrels"], own, missing)


def _is_there(spec: str) -> bool:
    parsed = parse(spec)
    return parsed.scheme != "file" or parsed.path.exists()


def _judged_by(one: LoadedSet, sources: _Sources) -> dict[str, tuple[str, int]]:
    """For each source of queries the judgments, and the lowest grade that is relevant."""
    judged: dict[str, tuple[str, int]] = {}
    for about in one.abouts:
        bound = int(about["options"].get("rel", 1))
        queries = about["inputs"].get("queries") or []
        own = tuple(about["options"].get("train_qrels") or ())
        specs = sources.train_qrels if len(sources.train_qrels) in (1, len(queries)) else own
        for place, source in enumerate(queries):
            spec = specs[place if len(specs) > 1 else 0] if specs else source["source"]
            if (specs or spec.startswith("irds:")) and _is_there(spec):
                judged.setdefault(source["name"], (spec, bound))
    return judged


def _relevant(
    loaded: Sequence[LoadedSet], own: Sequence[_Sources]
) -> list[dict[tuple[str, str], frozenset[str]] | None]:
    """The documents judged relevant to the queries of each set; every source of judgments is read once for all."""
    asked: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
    uses: list[dict[tuple[str, bool], tuple[str, int]]] = []
    for one, sources in zip(loaded, own, strict=True):
        use = {(name, False): judged for name, judged in _judged_by(one, sources).items()}
        if sources.qrels is not None:
            judged = (sources.qrels, int(one.options.get("test_rel", 1)))
            use |= {(name, True): judged for name in one.rows.filter(pl.col("role") == "test")["source"].unique()}
        uses.append(use)
        for (name, tests), key in use.items():
            asked[key].update(_ids(one, name, tests))
    keys = list(asked)
    read = {key: judged_documents([key[0]], [asked[key]], key[1])[0] for key in keys}
    return [
        {
            (name, query_id): frozenset(doc_id for doc_id, _ in read[key][query_id].relevant)
            for (name, tests), key in use.items()
            for query_id in _ids(one, name, tests)
            if query_id in read[key]
        }
        if use or any(about["options"].get("queries_from_documents") for about in one.abouts)
        else None
        for one, use in zip(loaded, uses, strict=True)
    ]


def _ids(one: LoadedSet, name: str, tests: bool) -> list[str]:
    is_test = pl.col("role") == "test"
    own = one.rows.filter((pl.col("source") == name) & (is_test if tests else ~is_test))
    return own["topic_id" if tests else "query_id"].to_list()


def _evidence(
    one: LoadedSet, sources: _Sources, relevant: dict[tuple[str, str], frozenset[str]] | None, votes: Votes | None
) -> ProofEvidence:
    rule = votes or one.options.get("votes") or "majority"
    judgments = open_judgments(list(sources.labels), votes=rule) if sources.labels else None
    evidence = ProofEvidence(
        judgments=judgments,
        relevant=relevant,
        topics=_topic_texts(one, sources.missing),
        barred_documents=_barred_documents(one, sources.missing),
        missing=sources.missing,
    )
    if not sources.audit:
        return evidence
    candidates = read_candidates(sources.audit)
    names = sorted(set(one.rows["source"]))
    threshold = one.options.get("threshold")
    above = None if threshold is None else leaks_above(candidates, float(threshold), judgments, None)
    return replace(
        evidence,
        barred=excluded(candidates, judgments, names),
        above=None if above is None else {(leak.topic_id, leak.text) for leak in above},
    )


def _topic_texts(one: LoadedSet, missing: dict[str, str]) -> dict[str, str] | None:
    """The texts of the test topics; None where the set names none, or they are not there."""
    spec = one.options.get("topics")
    if spec is None or not _at_hand("topics", spec, missing):
        return None
    field = one.options.get("field", "title")
    return {topic.topic_id: normalise(getattr(topic, field)) for topic in read_topics(spec).topics}


def _barred_documents(one: LoadedSet, missing: dict[str, str]) -> frozenset[str] | None:
    """The documents that the judgments which the rows without a leak keep clear of call relevant."""
    for about in one.abouts:
        spec = about["options"].get("exclude_qrels")
        if spec is not None and _at_hand("exclude_qrels", spec, missing):
            return relevant_documents(spec, int(about["options"].get("test_rel", 1)))
    return None


def _at_hand(name: str, spec: str, missing: dict[str, str]) -> bool:
    there = _is_there(spec)
    if not there:
        missing[name] = f"{spec} is not there"
    return there


def _pair(one: LoadedSet, other: LoadedSet) -> SetPair:
    rows = one.rows.select(_ROW).unique().join(other.rows.select(_ROW).unique(), on=_ROW)
    queries = set(one.rows["query"]) & set(other.rows["query"])
    documents = _documents(one) & _documents(other)
    return SetPair(one.label, other.label, len(rows), len(queries), len(documents), _same_fill(one, other))


def _documents(one: LoadedSet) -> set[str]:
    return set(one.rows["relevant_id"]) | set(one.rows["nonrelevant_id"])


def _same_fill(one: LoadedSet, other: LoadedSet) -> Property:
    """Whether the rows without a leak are the same ones, as far as both sets go."""
    name = "same rows without a leak"
    if "none" not in one.rows["role"] or "none" not in other.rows["role"]:
        return Property(name, None, "a set without such rows")
    if one.built.seed != other.built.seed or _made_of(one) != _made_of(other):
        return Property(name, None, "another seed, or other sources or candidates")
    common = min(len(one.fill), len(other.fill))
    mine, theirs = (each.fill.head(common).select(*_ROW, "source") for each in (one, other))
    same = int((mine.hash_rows(seed=0) == theirs.hash_rows(seed=0)).sum()) if not mine.equals(theirs) else common
    return Property(name, same == common, f"{same:,} of the first {common:,}")


def _made_of(one: LoadedSet) -> object:
    """The sources and candidates that the rows without a leak come from; of another set, of that one."""
    about = one.abouts[-1]
    fill = about["inputs"].get("fill")
    if fill is not None:
        return fill["sha256"]
    queries = [(source["name"], source["fingerprint"]) for source in about["inputs"].get("queries") or []]
    return queries, [audit["sha256"] for audit in about["inputs"].get("audit") or []]
