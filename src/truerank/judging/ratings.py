"""Reading what was said: from a judging store, from label files of any kind, or from judgments in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from truerank.errors import InputError
from truerank.judging.events import Annotator, Role
from truerank.judging.items import Item
from truerank.judging.rating_table import Coded, Rating, Ratings, Unit, contradiction_error
from truerank.judging.schemes import BUILT_IN, Scheme, load_scheme
from truerank.judging.store import Store, is_store
from truerank.judging.votes import Votes, checked_votes
from truerank.options import Labels
from truerank.records import Input, Judgment
from truerank.sources import SourceSpec, parse, read_labels, unique_names
from truerank.sources.inputs import input_of
from truerank.text.normalising import normalise

__all__ = [
    "Coded",
    "Rating",
    "RatingSource",
    "Ratings",
    "Unit",
    "label_inputs",
    "label_rules",
    "label_source",
    "named_source",
    "one_of",
    "read_ratings",
]

_SAME_PROBABILITY: Final = 1e-9


RatingSource: TypeAlias = str | Path | Store | Ratings | Sequence[str | Path] | Sequence[Judgment]


def read_ratings(
    source: RatingSource | Labels,
    *,
    scheme: Scheme | str | Sequence[str] | None = None,
    votes: Votes = "majority",
    annotators: Sequence[str] = (),
) -> Ratings:
    """Reads what was said, from wherever it was written.

    Label files are those that `read_labels` opens. A record is told by `item_id`, or else by what it has of dataset,
    topic, query id, document, text and variant. Where one file lacks the query ids or variants that another has, the
    rest decides, if it fits one unit only. `NAME=FILE` names the annotator of a file without a column for it;
    otherwise it is called like the file.

    Args:
        source: a judging store (open, or its path), one label file or several, judgments, ratings, or the options
            `Labels`, which bring their own votes and annotators.
        scheme: the scheme of the labels, where the source does not carry it; a name, a file, a scheme, or the names of
            those that come into question.
        votes: how one answer is made of several voices. With "majority" an annotator who labelled a unit twice and
            differently is an error; the other rules decide it.
        annotators: whose ratings count; by default everybody's.

    Returns:
        Units, annotators and ratings.

    Raises:
        InputError: not readable; a store among several sources; a record that nothing tells from others; an annotator
            who contradicts himself, with all such places; a label that the scheme lacks; nothing labelled at all.
    """
    checked_votes(votes)
    if isinstance(source, Labels):
        return read_ratings(label_source(source), scheme=scheme, votes=source.votes, annotators=source.annotators)
    if annotators:
        ratings = read_ratings(source, scheme=scheme, votes=votes)
        return ratings.by(ratings.named(annotators))
    names = BUILT_IN if scheme is None else () if isinstance(scheme, str | Scheme) else tuple(scheme)
    wanted = load_scheme(scheme) if isinstance(scheme, str) else scheme if isinstance(scheme, Scheme) else None
    if isinstance(source, Ratings):
        return source if wanted is None else source.with_scheme(wanted)
    if isinstance(source, Store):
        return replace(_from_store(source, wanted), votes=votes)
    given = [source] if isinstance(source, str | Path) else list(source)
    rows = [row for row in given if isinstance(row, Judgment)]
    specs = [str(spec) for spec in given if not isinstance(spec, Judgment)]
    if rows and specs:
        raise InputError("label files and judgments mixed in one list", "give the files or the judgments")
    stores = [spec for spec in specs if is_store(Path(spec))]
    if stores and len(specs) > 1:
        raise InputError(
            "a store beside other sources", "give it alone; bring label files in with 'judge import'", where=stores[0]
        )
    if stores:
        with Store.open(stores[0]) as store:
            return replace(_from_store(store, wanted), votes=votes)
    files = [named_source(text) for text in specs]
    rows = rows or _read(files)
    if scheme is not None and wanted is None and load_scheme(names[0]).view == "pair":
        _check_topics(rows)
    ratings = replace(_collected(rows), sources=tuple(spec.spec for _, spec in files))
    return _settled(_spelt(ratings, wanted, names, scheme is not None), votes)


def label_source(labels: Labels) -> Any:
    """The sources of a group of options: one that cannot stand in a list, such as an open store, or all of them."""
    alone = len(labels.labels) == 1 and not isinstance(labels.labels[0], str | Path | Judgment)
    return labels.labels[0] if alone else labels.labels


def label_inputs(labels: Labels, role: str = "labels") -> tuple[Input, ...]:
    """The sources of labels as a manifest names them."""
    named = [named_source(str(one)) if isinstance(one, str | Path) else ("", one) for one in labels.labels]
    return tuple(input_of(role, source, name) for name, source in named)


def label_rules(labels: Labels) -> dict[str, Any]:
    """Whose labels count, and the rule for several voices, as options of a manifest."""
    return {name: getattr(labels, name) for name in ("annotators", "votes", "include_models")}


def one_of(store: RatingSource | None, judgments: Labels) -> Labels:
    """The store, or label files in its place, with the rule for votes."""
    if (store is None) == (not judgments):
        fault = "neither a store nor label files" if store is None else "a store and label files"
        raise InputError(fault, "give STORE, or `labels`")
    return judgments if store is None else replace(judgments, labels=store)


def _check_topics(rows: Sequence[Judgment]) -> None:
    lacking = next((row for row in rows if row.labels and not row.topic_id), None)
    if lacking is not None:
        there = ", ".join(map(repr, list(lacking.values)[:12])) or "none"
        raise InputError(
            "no column or key 'topic_id'", f"there are {there}", where=lacking.where or None, line=lacking.line
        )


def _spelt(ratings: Ratings, scheme: Scheme | None, names: Sequence[str], needed: bool) -> Ratings:
    """The ratings in a scheme's spelling: the given one, or the first of several that has all labels."""
    if scheme is not None:
        return ratings.with_scheme(scheme)
    for name in names:
        try:
            return replace(ratings.with_scheme(load_scheme(name)), guessed=True)
        except InputError:
            if needed and name == names[-1]:
                raise
    return ratings


def _settled(ratings: Ratings, votes: Votes) -> Ratings:
    """Each annotator with one rating of a unit, or, where they contradict themselves and the rule allows it, all."""
    groups: defaultdict[tuple[int, int, bool], list[Rating]] = defaultdict(list)
    for rating in ratings.ratings:
        groups[rating.unit, rating.annotator, rating.adjudicated].append(rating)
    faulty = [group for group in groups.values() if len({frozenset(rating.labels) for rating in group}) > 1]
    named = tuple(
        f"'{ratings.annotators[group[0].annotator].name}' on {ratings.units[group[0].unit].unit_id}: "
        + ", ".join(f"{' + '.join(rating.labels)}{_shown(rating.place)}" for rating in group)
        for group in faulty
    )
    if faulty and votes == "majority":
        raise contradiction_error(named, faulty[0][-1].place)
    open_ones = {id(group) for group in faulty}
    dropped = {id(rating) for group in groups.values() if id(group) not in open_ones for rating in group[1:]}
    kept = tuple(rating for rating in ratings.ratings if id(rating) not in dropped)
    return replace(ratings, ratings=kept, repeated=len(dropped), votes=votes, contradictions=named)


def _shown(place: tuple[str, int | None]) -> str:
    return f" ({place[0]}:{place[1]})" if place[0] else ""


def _from_store(store: Store, scheme: Scheme | None) -> Ratings:
    if scheme is not None and scheme.name != store.scheme.name:
        raise InputError(
            f"the store was made with the scheme '{store.scheme.name}', not '{scheme.name}'",
            f"ask for {store.scheme.name}",
            where=store.path,
        )
    units: list[Unit] = []
    places: dict[str, int] = {}
    for item in store.items():
        places[item.item_id] = len(units)
        units.append(_unit_of(item))
    annotators = store.annotators()
    columns_of = {annotator.name: at for at, annotator in enumerate(annotators)}
    standing = store.standing()
    said = [entry for entry in standing if entry.kind == "label"]
    # Of several adjudications of an item the last one holds; times are ISO 8601 in UTC, so they sort as texts.
    last: dict[str, Any] = {}
    for entry in standing:
        if entry.kind == "adjudicate" and (entry.item_id not in last or entry.at >= last[entry.item_id].at):
            last[entry.item_id] = entry
    ratings = [Rating(places[entry.item_id], columns_of[entry.annotator], entry.labels) for entry in said]
    ratings += [Rating(places[e.item_id], columns_of[e.annotator], e.labels, True) for e in last.values()]
    return Ratings(
        tuple(units),
        annotators,
        tuple(ratings),
        store.scheme,
        skipped=sum(entry.kind == "skip" for entry in standing),
        sources=(str(store.path),),
    )


def _unit_of(item: Item) -> Unit:
    query = next((text for text in item.texts if text.name == "query"), None)
    others = [text for text in item.texts if text is not query]
    return Unit(
        unit_id=item.item_id,
        topic_id=item.topic_id,
        query_id="" if query is None else query.id,
        text="" if query is None else query.text,
        doc_id=next((text.id for text in others if text.id), ""),
        title=item.title,
        description=item.description,
        variant=item.variant,
        dataset=item.dataset,
        stratum=item.stratum,
        similarity=item.score,
        probability=item.probability,
        data=item.data,
    )


def _read(files: Sequence[tuple[str, SourceSpec]]) -> list[Judgment]:
    """The judgments of files, each with the name of its annotator."""
    if not files:
        raise InputError("nothing to read", "give a judging store, or label files")
    default = unique_names([spec for _, spec in files])
    said: list[Judgment] = []
    for (name, spec), fallback in zip(files, default, strict=True):
        read = [row._replace(annotator=name or row.annotator or fallback) for row in read_labels(spec)]
        if not any(row.labels or row.kind == "undo" for row in read):
            raise InputError("no labelled record in it", "export the annotations again", where=spec.location)
        said += read
    return said


def named_source(text: str, form: str | None = None) -> tuple[str, SourceSpec]:
    """The annotator's name and the source of `NAME=FILE`; a file that exists as it is written is taken as it is."""
    name, equals, rest = text.partition("=")
    ending = f"?format={form}" if form else ""
    if equals and rest and name.strip() and not set(name) & set("/?#") and not Path(text).exists():
        return name.strip(), parse(rest + ending)
    return "", parse(text + ending)


def _unit(row: Judgment) -> Unit:
    return Unit(
        unit_id=row.item_id,
        # Where queries were judged, they are the topics.
        topic_id=row.topic_id or row.query_id,
        query_id=row.query_id,
        text=row.query_text.strip(),
        doc_id=row.doc_id,
        title=row.title.strip(),
        description=row.description.strip(),
        variant=row.variant.strip(),
        dataset=row.dataset,
        stratum=row.stratum,
        similarity=row.similarity,
        probability=1.0 if row.probability is None else row.probability,
        data=row.values,
    )


def _key(row: Judgment) -> tuple[tuple[str, ...], tuple[str, str]]:
    """What a unit is told by, and the parts of that which other files may lack."""
    if row.item_id:
        return ("id", row.item_id), ("", "")
    text = normalise(row.query_text)
    if not (text or row.query_id or row.doc_id):
        raise InputError(
            "nothing tells this record from others",
            "give it item_id, or topic_id and query_text, query_id or doc_id",
            where=row.where or None,
            line=row.line,
        )
    key = ("", row.dataset, row.topic_id or row.query_id, row.doc_id, text)
    return key, (row.query_id, normalise(row.variant))


def _collected(rows: Sequence[Judgment]) -> Ratings:
    """The judgments with their units and annotators numbered; every row is a rating."""
    undo = next((row for row in rows if row.kind == "undo"), None)
    if undo is not None:
        raise InputError(
            "a history of events, of which some were taken back",
            "export what stands, or give the store itself",
            where=undo.where or None,
            line=undo.line,
        )
    said = [(row, *_key(row)) for row in rows if row.labels and row.kind not in ("skip", "open")]
    variants: defaultdict[tuple[str, ...], dict[tuple[str, str], None]] = defaultdict(dict)
    for _, key, loose in said:
        variants[key][loose] = None
    members: defaultdict[tuple[tuple[str, ...], tuple[str, str]], list[Judgment]] = defaultdict(list)
    annotators: dict[str, Annotator] = {}
    ratings: list[Rating] = []
    places: dict[tuple[tuple[str, ...], tuple[str, str]], int] = {}
    columns: dict[str, int] = {}
    for row, key, loose in said:
        whole = (key, _resolved(loose, variants[key]))
        unit = places.setdefault(whole, len(places))
        members[whole].append(row)
        _note_annotator(annotators, row)
        column = columns.setdefault(row.annotator, len(columns))
        settles = row.kind == "adjudicate" or (row.role == "adjudicator" and row.kind != "label")
        ratings.append(Rating(unit, column, row.labels, settles, (row.where, row.line)))
    units = tuple(_merged(own) for own in members.values())
    return Ratings(units, tuple(annotators.values()), tuple(ratings), skipped=len(rows) - len(said))


def _merged(rows: Sequence[Judgment]) -> Unit:
    """One unit of all that the rows say about it."""
    unit = _unit(rows[0])
    known = [row for row in rows if row.probability is not None]
    chances = [row.probability or 0.0 for row in known]
    if known and max(chances) - min(chances) > _SAME_PROBABILITY:
        shown = f"topic {unit.topic_id}, query '{unit.text or unit.query_id}'"
        last = known[-1]
        raise InputError(
            f"{shown} has two sampling probabilities",
            "give the same probability in every row of an item",
            where=last.where or None,
            line=last.line,
        )
    similarities = [row.similarity for row in rows if row.similarity is not None]
    return unit._replace(
        unit_id=unit.unit_id or _readable(unit),
        query_id=next((row.query_id for row in rows if row.query_id), ""),
        similarity=max(similarities, default=None),
        probability=known[0].probability if known and known[0].probability is not None else 1.0,
    )


def _resolved(loose: tuple[str, str], there: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """The fullest key that the given one may mean; itself where several fit."""
    fits = [
        other
        for other in there
        if other != loose
        and all(not mine or mine == theirs for mine, theirs in zip(loose, other, strict=True))
        and sum(map(bool, other)) > sum(map(bool, loose))
    ]
    return fits[0] if len(fits) == 1 else loose


def _note_annotator(annotators: dict[str, Annotator], row: Judgment) -> None:
    role = cast(Role, row.role if row.role in ("model", "adjudicator") else "person")
    earlier = annotators.get(row.annotator)
    if earlier is not None and "model" in (earlier.role, role) and earlier.role != role:
        raise InputError(
            f"'{row.annotator}' is a {earlier.role} in one row and a {role} in another",
            "give the model a name of its own",
            where=row.where or None,
            line=row.line,
        )
    if earlier is None or earlier.role == "adjudicator":
        annotators[row.annotator] = Annotator(row.annotator, role, row.about)


def _readable(unit: Unit) -> str:
    parts = [unit.dataset, f"topic {unit.topic_id}" if unit.topic_id else "", unit.doc_id]
    parts.append(f"'{normalise(unit.text)}'" if unit.text else f"query {unit.query_id}" if unit.query_id else "")
    return ", ".join(part for part in parts if part)
