"""Proofs of what training sets promise, alone and next to each other."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, NamedTuple

import polars as pl

from truerank.core.plain import picked, plain
from truerank.core.result import Result, Summary, summarises
from truerank.core.tables import Table
from truerank.core.verdict import Verdict
from truerank.core.views import heads
from truerank.errors import InputError
from truerank.judging.labels import Judgments, open_judgments
from truerank.options import Flag, Sources, Votes, command
from truerank.sources.grammar import parse
from truerank.sources.topics import read_topics
from truerank.text.normalising import normalise
from truerank.work.artifacts import hash_file
from truerank_lab.instances.built import TABLE, Built, open_built
from truerank_lab.instances.document_queries import DocumentQueries
from truerank_lab.instances.draws import Excluded
from truerank_lab.instances.options import TEST_KINDS
from truerank_lab.instances.sources import relevant_documents
from truerank_lab.instances.training_queries import excluded, judged_documents, leaks_above, read_candidates

_FAULTS: Final = ("leak", "test")
_LACKING: Final = "not checked: "
_VERDICTS: Final = {True: "holds", False: "BROKEN", None: "not checked"}


class Property(NamedTuple):
    """A promise, whether it holds (None where it could not be checked), and the numbers that say so."""

    name: str
    holds: bool | None
    numbers: str


class LoadedSet(NamedTuple):
    """A built set, or the beginning of one.

    `rows` has the columns of the table without the texts of documents, and `texts`: whether all three are there.
    `fill_about` is what is known of the set that gave the rows without a leak, where it is still there.
    """

    label: str
    built: Built
    sizes: tuple[int, ...]
    rows: pl.DataFrame
    fill_about: Mapping[str, Any] | None = None

    @property
    def abouts(self) -> tuple[Mapping[str, Any], ...]:
        """What was said of itself, and of the set that gave the rows without a leak."""
        return (self.built.about,) if self.fill_about is None else (self.built.about, self.fill_about)

    @property
    def options(self) -> Mapping[str, Any]:
        """The options that the set was built with and that are not as they are by default."""
        found: Mapping[str, Any] = self.built.about["options"]
        return found

    @property
    def fill(self) -> pl.DataFrame:
        return self.rows.filter(pl.col("role") == "none")


@dataclass(frozen=True)
class ProofEvidence:
    """What a set is checked against; each is None where it is not at hand, and `missing` says why.
     `barred` queries and `barred_documents` must not be in a row without a leak; `judgments` are what people said
    about leaks, and `above` has (topic, text) of the candidates above the threshold, for leaks that nobody verified.
    `relevant` has the documents judged relevant by source and id of the query, in rows of test topics those of the
    topic.
    """

    barred: Excluded | None = None
    judgments: Judgments | None = None
    above: Collection[tuple[str, str]] | None = None
    relevant: Mapping[tuple[str, str], Collection[str]] | None = None
    topics: Mapping[str, str] | None = None
    barred_documents: AbstractSet[str] | None = None
    missing: Mapping[str, str] = field(default_factory=dict)


def load_set(label: str, built: Built, size: int | None) -> LoadedSet:
    """Reads a set without the texts of its documents."""
    frame = built.lazy() if size is None else built.lazy().head(size // 2)
    texts = [pl.col(name).str.strip_chars().str.len_bytes() > 0 for name in ("query", "relevant", "nonrelevant")]
    rows = (
        frame.with_columns(texts=pl.all_horizontal(texts)).drop("relevant", "nonrelevant").collect(engine="streaming")
    )
    sizes = built.sizes if size is None else tuple(one for one in {*built.sizes, size} if one <= size)
    return LoadedSet(label, built, tuple(sorted(sizes)), rows, _fill_about(built))


def _fill_about(built: Built) -> Mapping[str, Any] | None:
    fill = built.about["inputs"].get("fill")
    table = None if fill is None else Path(fill["folder"]) / TABLE
    if table is None or not table.is_file() or hash_file(table) != fill["sha256"]:
        return None
    return open_built(fill["folder"]).about


def proofs(one: LoadedSet, evidence: ProofEvidence) -> Iterator[Property]:
    then = one.built.artifacts.get(TABLE)
    now = hash_file(one.built.folder / TABLE)
    yield Property("the table is the one that was built", then == now, f"SHA-256 {now[:12]}…")
    yield _sizes(one)
    without = len(one.rows) - int(one.rows["texts"].sum())
    yield Property("no row lacks a text", without == 0, f"{without:,} of {len(one.rows):,} rows lack one")
    yield _apart(one)
    yield _by_judgments(one, evidence)
    if one.built.kind in ("by-depth", "by-version"):
        yield _by_column(one)
        return
    yield _nested(one)
    yield _balanced(one)
    yield _no_repeats(one)
    yield _no_candidate(one, evidence)
    if one.options.get("exclude_qrels") or (one.fill_about or {}).get("options", {}).get("exclude_qrels"):
        yield _no_barred_document(one, evidence)
    yield _ranks(one)
    if one.built.kind == "leak":
        yield _leaks(one, evidence)
    if one.built.kind in TEST_KINDS:
        yield _topics(one)
        yield _what_leaks(one, evidence)


def _sizes(one: LoadedSet) -> Property:
    numbers = one.rows["number"]
    in_order = bool((numbers == pl.Series(range(len(numbers)), dtype=pl.Int64)).all())
    fits = len(numbers) == max(one.sizes) // 2
    text = ", ".join(f"{size:,} instances = {size // 2:,} rows" for size in one.sizes)
    return Property("every size has its rows, numbered in order", in_order and fits, text)


def _nested(one: LoadedSet) -> Property:
    leaking = one.rows["role"].is_in(_FAULTS)
    count, smallest = int(leaking.sum()), min(one.sizes) // 2
    first = bool(leaking.head(count).all()) and count <= smallest
    asked = int(one.options.get("leaks") or 0)
    whole = count == asked or (bool(one.options.get("allow_fewer")) and count <= asked)
    text = f"{count:,} rows leak, {asked:,} asked for; the smallest size has {smallest:,} rows"
    return Property("sizes are nested, and each holds all rows that leak", first and whole, text)


def _apart(one: LoadedSet) -> Property:
    rows = one.rows.select("query", "relevant_id", "nonrelevant_id").unique()
    relevant = rows.select("query", doc_id="relevant_id").unique()
    both = relevant.join(rows.select("query", doc_id="nonrelevant_id").unique(), on=("query", "doc_id"))
    both = both.filter(pl.col("doc_id") != "")
    return Property(
        "no relevant document is the non-relevant of its query", both.is_empty(), f"{len(both):,} pairs are both"
    )


def _by_judgments(one: LoadedSet, evidence: ProofEvidence) -> Property:
    name = "no non-relevant document was judged relevant to its query"
    if evidence.relevant is None:
        return Property(name, None, _LACKING + evidence.missing.get("qrels", "no judgments"))
    made = any(about["options"].get("queries_from_documents") for about in one.abouts)
    checked = wrong = 0
    of_topic = pl.when(pl.col("role") == "test").then(pl.col("topic_id")).otherwise(pl.col("query_id"))
    for source, query_id, doc_id in one.rows.select("source", of_topic, "nonrelevant_id").iter_rows():
        judged = evidence.relevant.get((source, query_id))
        if judged is None and made and DocumentQueries.document_of(query_id) != query_id:
            judged = (DocumentQueries.document_of(query_id),)
        checked += judged is not None
        wrong += judged is not None and doc_id in judged
    return Property(name, wrong == 0, f"{wrong:,} of {checked:,} rows whose judgments are at hand")


def _balanced(one: LoadedSet) -> Property:
    filled = one.built.about["inputs"].get("fill") is not None
    about = one.fill_about if filled else one.built.about
    queries = [] if about is None else about["inputs"]["queries"]
    names = [source["name"] for source in queries] or one.fill["source"].unique(maintain_order=True).to_list()
    text, holds = [], True
    for size in one.sizes:
        counts = dict(one.fill.filter(pl.col("number") < size // 2)["source"].value_counts().iter_rows())
        given = [int(counts.get(name, 0)) for name in names]
        total = sum(counts.values())
        share, more = divmod(total, max(1, len(names)))
        holds &= given == [share + (place < more) for place in range(len(names))]
        text.append(f"{size:,}: " + " + ".join(f"{number:,}" for number in given))
    return Property("sources have equal shares of the rows without a leak", holds, "; ".join(text))


def _no_repeats(one: LoadedSet) -> Property:
    queries = one.rows.filter(pl.col("role") != "test")["query"]
    repeated = len(queries) - queries.map_elements(normalise, return_dtype=pl.String).n_unique()
    return Property("no training query occurs twice", repeated == 0, f"{repeated:,} of {len(queries):,} do")


def _no_candidate(one: LoadedSet, evidence: ProofEvidence) -> Property:
    name = "no leaking query in a row without a leak"
    if evidence.barred is None:
        return Property(name, None, _LACKING + evidence.missing.get("audit", "no candidates"))
    barred, fill = evidence.barred, one.fill
    by_text = sum(normalise(query) in barred.texts for query in fill["query"])
    by_id = sum(query_id in barred.ids.get(source, ()) for source, query_id in fill.select("source", "query_id").rows())
    clause = f"{by_text:,} by text and {by_id:,} by id, of {len(fill):,} rows and {len(barred.texts):,} leaking queries"
    return Property(name, not by_text and not by_id, clause)


def _no_barred_document(one: LoadedSet, evidence: ProofEvidence) -> Property:
    name = "no document judged relevant to a test topic in a row without a leak"
    barred = evidence.barred_documents
    if barred is None:
        return Property(name, None, _LACKING + evidence.missing.get("exclude_qrels", "no judgments"))
    wrong = sum(not barred.isdisjoint(pair) for pair in one.fill.select("relevant_id", "nonrelevant_id").rows())
    return Property(name, wrong == 0, f"{wrong:,} of {len(one.fill):,} rows, of {len(barred):,} documents")


def _ranks(one: LoadedSet) -> Property:
    name, top = "non-relevant documents of the first stage are among its best", int(one.options.get("k", 100))
    found = one.rows["origin"].str.extract(r"first-stage rank (\d+)").cast(pl.Int64).drop_nulls()
    ranks: list[int] = found.to_list()
    judged = len(one.rows) - len(ranks)
    if not ranks:
        return Property(name, True, f"all {judged:,} were judged")
    mean = sum(ranks) / len(ranks)
    text = f"{len(ranks):,} of ranks {min(ranks)} to {max(ranks)} (mean {mean:.1f}), {judged:,} judged ones"
    return Property(name, min(ranks) >= 1 and max(ranks) <= top, text)


def _leaks(one: LoadedSet, evidence: ProofEvidence) -> Property:
    rows = one.rows.filter(pl.col("role") == "leak").select("topic_id", "query", "query_id").rows()
    per_topic = Counter(topic for topic, _, _ in rows).values()
    fewest, most = min(per_topic, default=0), max(per_topic, default=0)
    text = f"{len(rows):,} rows of {len(per_topic):,} topics, {fewest} to {most} each"
    if one.options.get("threshold") is not None:
        name = "every leak is a candidate above the threshold"
        if evidence.above is None:
            return Property(name, None, _LACKING + evidence.missing.get("audit", "no candidates"))
        above = sum((topic, query) in evidence.above for topic, query, _ in rows)
        return Property(name, above == len(rows), f"{above:,} of {text}; not verified by people")
    name = "every leak was judged one"
    if evidence.judgments is None:
        return Property(name, None, _LACKING + evidence.missing.get("labels", "no labels"))
    found = [evidence.judgments.find(topic, query, query_id) for topic, query, query_id in rows]
    verified = sum(pair is not None and pair.leak is True for pair in found)
    return Property(name, verified == len(rows), f"{verified:,} of {text}")


def _topics(one: LoadedSet) -> Property:
    rows = one.rows.filter(pl.col("role") == "test")
    most = int(one.options.get("rows_per_topic", 2))
    groups = rows.group_by("topic_id").agg(pl.len(), pl.col("relevant_id", "nonrelevant_id").n_unique())
    apart = groups.filter(pl.col("len") == pl.col("relevant_id"), pl.col("len") == pl.col("nonrelevant_id"))
    full = groups.filter(pl.col("len") == most)
    holds = len(apart) == len(groups) and not len(groups.filter(pl.col("len") > most))
    text = f"{len(rows):,} rows of {len(groups):,} topics; {len(full):,} topics have {most}, none more than that"
    return Property(f"each topic at most {most} times, with different documents", holds, text)


def _what_leaks(one: LoadedSet, evidence: ProofEvidence) -> Property:
    """Whether exactly that leaks which the kind says: the topic's text, a document judged relevant to it, or both."""
    with_text, with_document = one.built.kind in ("test", "test-queries"), one.built.kind != "test-queries"
    text = "the text of its topic" if with_text else "a text that no topic has"
    name = f"rows that leak have {text} and a document {'' if with_document else 'not '}judged relevant to it"
    if evidence.topics is None or evidence.relevant is None:
        lacking = "topics" if evidence.topics is None else "qrels"
        return Property(name, None, _LACKING + evidence.missing.get(lacking, f"no {lacking}"))
    known = {text.casefold() for text in evidence.topics.values()}
    rows = one.rows.filter(pl.col("role") == "test").select("topic_id", "source", "query", "relevant_id").rows()
    texts = documents = 0
    for topic, source, query, doc_id in rows:
        own = normalise(query).casefold()
        texts += own == evidence.topics.get(topic, "").casefold() if with_text else own not in known
        documents += (doc_id in evidence.relevant.get((source, topic), ())) is with_document
    clause = f"{texts:,} texts and {documents:,} documents of {len(rows):,} rows"
    return Property(name, texts == documents == len(rows), clause)


def _by_column(one: LoadedSet) -> Property:
    if one.built.kind == "by-depth":
        depths, most = one.rows["depth"], int(one.options["annotation_depth"])
        counts: Sequence[tuple[int, int]] = sorted(depths.value_counts().rows())
        text = ", ".join(f"{number:,} of depth {depth}" for depth, number in counts[:10])
        return Property(f"no row is deeper than {most}", bool((depths <= most).all()), text)
    versions = one.rows["version"].unique().to_list()
    return Property("all rows are of one version", len(versions) == 1, ", ".join(map(str, versions[:10])))


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


@dataclass(frozen=True, eq=False, repr=False)
class InstanceStats(Result, shown_in="truerank_lab.instances.proofs"):
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
        found[name] = specs if named or all(_at_hand(name, spec, missing) for spec in specs) else ()
    own = qrels or one.options.get("qrels")
    if own and not qrels and not _at_hand("qrels", own, missing):
        own = None
    if "train_qrels" in missing:
        missing["qrels"] = missing["train_qrels"]
    return _Sources(**found, qrels=own, missing=missing)


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
    found: list[dict[tuple[str, str], frozenset[str]] | None] = []
    for one, use in zip(loaded, uses, strict=True):
        relevant = {
            (name, query_id): frozenset(doc_id for doc_id, _ in read[key][query_id].relevant)
            for (name, tests), key in use.items()
            for query_id in _ids(one, name, tests)
            if query_id in read[key]
        }
        made = any(about["options"].get("queries_from_documents") for about in one.abouts)
        found.append(relevant if use or made else None)
    return found


def _ids(one: LoadedSet, name: str, tests: bool) -> list[str]:
    is_test = pl.col("role") == "test"
    own = one.rows.filter((pl.col("source") == name) & (is_test if tests else ~is_test))
    return own["topic_id" if tests else "query_id"].to_list()


def _evidence(
    one: LoadedSet, sources: _Sources, relevant: dict[tuple[str, str], frozenset[str]] | None, votes: Votes | None
) -> ProofEvidence:
    rule = votes or one.options.get("votes") or "majority"
    judgments = open_judgments(list(sources.labels), votes=rule) if sources.labels else None
    barred = above = topics = None
    if sources.audit:
        candidates = read_candidates(sources.audit)
        barred = excluded(candidates, judgments, sorted(set(one.rows["source"])))
        if (threshold := one.options.get("threshold")) is not None:
            leaks = leaks_above(candidates, float(threshold), judgments, None)
            above = {(leak.topic_id, leak.text) for leak in leaks}
    if (spec := one.options.get("topics")) is not None and _at_hand("topics", spec, sources.missing):
        field = one.options.get("field", "title")
        topics = {topic.topic_id: normalise(getattr(topic, field)) for topic in read_topics(spec).topics}
    documents = _barred_documents(one, sources.missing)
    return ProofEvidence(barred, judgments, above, relevant, topics, documents, sources.missing)


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
    mine, theirs = ({*own.rows["relevant_id"], *own.rows["nonrelevant_id"]} for own in (one, other))
    return SetPair(one.label, other.label, len(rows), len(queries), len(mine & theirs), _same_fill(one, other))


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


@summarises(InstanceStats)
def _stats(found: InstanceStats) -> Summary:
    counted = tuple((one.label, one.built.kind, *row) for one in found.sets for row in _counts(one))
    tables = [Table("Rows by role and source", heads("set, kind, role, source, rows:,d"), counted)]
    proved = tuple(
        (one.label, each.name, _VERDICTS[each.holds], each.numbers)
        for one, own in zip(found.sets, found.properties, strict=True)
        for each in own
    )
    every = [each.holds for own in found.properties for each in own]
    note = f"{len(every):,} properties: {every.count(False)} broken, {every.count(None)} not checked."
    tables.append(Table("What the sets promise", heads("set, property, verdict, numbers"), proved, notes=(note,)))
    if found.pairs:
        shared = tuple((*pair[:5], _VERDICTS[pair.same_fill.holds], pair.same_fill.numbers) for pair in found.pairs)
        text = "set, next_to, rows:,d, queries:,d, documents:,d, same_rows_without_a_leak, numbers"
        tables.append(Table("What two sets share", heads(text), shared))
    sets = [
        {
            **picked(one, "set=label, kind=built.kind, seed=built.seed, sizes"),
            "rows": len(one.rows),
            "counts": {f"{role}: {source}": number for role, source, number in _counts(one)},
            "properties": plain(own),
        }
        for one, own in zip(found.sets, found.properties, strict=True)
    ]
    verdicts = () if found.holds else (Verdict("broken", "A property of a set is broken."),)
    return Summary(tuple(tables), {"holds": found.holds, "sets": sets, "pairs": plain(found.pairs)}, verdicts)


def _counts(one: LoadedSet) -> list[tuple[str, str, int]]:
    return list(one.rows.group_by("role", "source", maintain_order=True).len().iter_rows())
