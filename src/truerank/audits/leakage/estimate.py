"""Estimate: how many topics and queries leak, and the verdict with what it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from truerank.audits.leakage.options import FIELDS
from truerank.audits.leakage.proposals import ids_among, signs
from truerank.audits.leakage.results import (
    DoubtCount,
    FieldCount,
    KindClaim,
    KindFound,
    PrefilterRecall,
    Sensitivity,
    SourceCount,
    Standing,
    TestSummary,
    UnreadShare,
    VerdictWord,
)
from truerank.sources import TopicSet
from truerank.text.normalising import normalise
from truerank.text.printable import counted, listed
from truerank.text.rewordings import CLAIMS, REWORDED, SEEN_KINDS, UNPLANTED
from truerank.vectors.encoders.model_folder import INSTALL

#: The share of the plants of a kind that must be found before the kind counts as seen.
_ENOUGH: Final = 0.95
#: The share of a sample of a source that an encoder cannot read, from which on it is told.
_ODD: Final = 0.01
#: So many items that match make a set contaminated, whatever names them; and what names no more than a likeness.
_FEWEST_LEAKS: Final = 3
_LIKENESS: Final = ("encoder", "letters", "encoder+letters")
#: Plants of a kind that it takes to say that the audit sees it.
_FEWEST_TO_SAY: Final = 20


def count_fields(
    pairs: pl.DataFrame, sources: Sequence[str], fields: Sequence[str]
) -> dict[str, dict[str, FieldCount]]:
    """Topics with a candidate and distinct candidate queries, by field and cumulative source."""
    texts = pairs["query_text"].unique()
    normal = pl.DataFrame({"query_text": texts, "query": [normalise(text) for text in texts]})
    named = pairs.join(normal, on="query_text", how="left").select("field", "topic_id", "source", "query")
    names = [name for name in FIELDS if name in fields]
    return {
        name: {
            label: FieldCount(topics=some["topic_id"].n_unique(), queries=some["query"].n_unique())
            for place, label in enumerate(cumulative_labels(sources))
            for some in [part.filter(pl.col("source").is_in(sources[: place + 1]))]
        }
        for name, part in [*((name, named.filter(field=name)) for name in names), ("union", named)]
    }


def cumulative_labels(sources: Sequence[str]) -> list[str]:
    """Column labels of cumulative sources: the first by its name, then "+" and the name that is added."""
    return [name if place == 0 else f"+{name}" for place, name in enumerate(sources)]


@dataclass(frozen=True)
class TestEvidence:
    """What an audit knows of one test set.

    `pairs` are its candidates with their `standing` and, where labels were given (`labelled`), `judged`. `silent`
    topics have no text to compare, `unread` ones a text that the encoder cannot read. `short` topics are not looked for
    inside longer queries; of `long` ones, the first words were reworded. From the share `common` of training texts on,
    a word is a common one. `encoded` says whether there was an encoder at all.
    """

    __test__ = False

    pairs: pl.DataFrame
    sensitivity: Sensitivity
    threshold: float
    silent: int = 0
    unread: int = 0
    common: float = 1.0
    encoded: bool = True
    long: int = 0
    short: int = 0
    labelled: bool = False

    def of(self, standing: Standing) -> pl.DataFrame:
        """The pairs that are leaks, doubts or dismissed."""
        return self.pairs.filter(standing=standing)


def summarise_test(
    test: TopicSet,
    known: TestEvidence,
    counts: Mapping[str, SourceCount],
    *,
    prefilter: PrefilterRecall | None,
    fields: Sequence[str],
) -> TestSummary:
    leaks, in_doubt = known.of("leak"), known.of("doubt")
    leaked = set(leaks["topic_id"].unique())
    sources = list(counts)
    by_field = {
        field: list(by_source.values())[-1] for field, by_source in count_fields(in_doubt, sources, fields).items()
    }
    union = by_field["union"]
    weak = int((in_doubt["shared"] >= known.common).sum())
    doubts = DoubtCount(**union, pairs=in_doubt.height, common=weak, fields=by_field)
    reasons = _Reasons(test, known, doubts, counts)
    verdict, sentence, settle = reasons.contaminated(leaked) if leaked else reasons.without_leak()
    return TestSummary(
        topics=len(test.topics),
        looked_for=len(test.topics) - known.silent if any(count["read"] for count in counts.values()) else 0,
        noun=test.noun,
        verdict=verdict,
        sentence=sentence,
        settle=settle,
        notes=[*reasons.notes(prefilter)],
        unread=known.unread,
        confirmed_topics=leaks.filter("judged")["topic_id"].n_unique() if known.labelled else 0,
        leaked_topics=[topic.topic_id for topic in test.topics if topic.topic_id in leaked],
        doubts=doubts,
        dismissed=known.of("dismissed").height,
        fields=count_fields(leaks, sources, fields),
        kinds=_claims(known.sensitivity["kinds"]),
        sensitivity=known.sensitivity["kinds"],
        other_topics=known.sensitivity["other_topics"],
    )


@dataclass(frozen=True)
class _Reasons:
    test: TopicSet
    known: TestEvidence
    doubts: DoubtCount
    counts: Mapping[str, SourceCount]

    def contaminated(self, leaked: set[str]) -> tuple[VerdictWord, str, list[str]]:
        """What was found and what that rests on, and what settles it: UNKNOWN where all of a few only look alike."""
        of, left, leaks = len(self.test.topics) - self.known.silent, set(leaked), self.known.of("leak")
        items = counted(of, _one(self.test.noun), self.test.noun)
        judged = pl.col("judged").fill_null(value=False) if self.known.labelled else pl.lit(value=False)
        likeness = pl.col("evidence").is_in(_LIKENESS) & (signs("topic_text") != signs("query_text")) & ~judged
        if len(leaked) < _FEWEST_LEAKS and leaks.filter(likeness).height == leaks.height:
            nearest = leaks.sort("similarity", descending=True).unique("topic_id", keep="first", maintain_order=True)
            shown = listed(nearest.select(pl.format("{} – {}", "topic_id", "query_id")).to_series().to_list())
            sentence = f"{len(leaked)} of {items} {'looks' if len(leaked) == 1 else 'look'} like a training query; "
            settle = f"Read {counted(len(leaked), 'pair')} ({shown}) and judge ('truerank judge new', then --labels)."
            return "UNKNOWN", f"{sentence}nobody has confirmed it.", [settle]
        encoder = pl.col("evidence").str.contains("encoder")
        grounds = []
        for ground, pairs in (
            ("confirmed by people", judged),
            (f"by a similarity above {self.known.threshold:g}", encoder),
            ("by the same text", pl.col("similarity") > pl.lit(self.known.threshold, pl.Float32)),
            ("by the same words", pl.lit(value=True)),
        ):
            topics = left & set(leaks.filter(pairs)["topic_id"])
            left -= topics
            grounds += [f"{len(topics):,d} {ground}"] if topics else []
        verb = "matches" if len(leaked) == 1 else "match"
        sentence = (
            f"{len(leaked):,d} of {items} ({_share(len(leaked), of)}) {verb} a training query: {listed(grounds)}."
        )
        settle = "Remove these queries with 'truerank leakage clean'"
        if not grounds[0].endswith("people") or len(grounds) > 1:
            settle += ", or let people confirm the pairs first ('truerank judge new')"
        return "CONTAMINATED", sentence, [f"{settle}."]

    def without_leak(self) -> tuple[VerdictWord, str, list[str]]:
        """CLEAN or UNKNOWN: what was found and what that rests on, and what settles it."""
        of = len(self.test.topics) - self.known.silent
        read = sum(count["read"] - count["empty"] for count in self.counts.values())
        queries = counted(read, "training query", "training queries")
        none = f"None of {counted(of, _one(self.test.noun), self.test.noun)} matches one of {queries}"
        gaps = list(self._gaps())
        if gaps:
            settle = "; ".join(dict.fromkeys(remedy for _, remedy in gaps if remedy))
            why = "; ".join(gap for gap, _ in gaps)
            return "UNKNOWN", f"{none} for certain, but {why}.", [f"{settle}."] if settle else []
        judged = self.known.pairs.filter(judged=False).height if self.known.labelled else 0
        away = f"; people judged {counted(judged, 'pair')} to be none" if judged else ""
        seen, blind, few = kinds_seen(self.known.sensitivity["kinds"])
        rest = f"fewer of {len(blind)}" + (f", and too few could be planted of {len(few)}" if few else "")
        sight = (
            f"Of planted changes {_ENOUGH:.0%} or more were found of {counted(len(seen), 'kind')}, {rest}; "
            "translation and free paraphrase were not tried."
        )
        return "CLEAN", f"{none}{away}. {sight}", []

    def _gaps(self) -> Iterator[tuple[str, str]]:
        """Why nothing found is not the same as clean, and what settles it."""
        for gap in self._unread():
            yield gap, "Mend or replace what was not read, and audit again"
        if pairs := self.doubts["pairs"]:
            topics = counted(self.doubts["topics"], _one(self.test.noun), self.test.noun)
            yield (
                f"{counted(pairs, 'pair')} of {topics} {'is' if pairs == 1 else 'are'} in doubt",
                "Judge them ('truerank judge new', then audit with --labels), or remove them with 'truerank leakage "
                "clean'",
            )
        kinds = self.known.sensitivity["kinds"]
        if unseen := [row for row in kinds if row["kind"] in SEEN_KINDS and not _seen(row)]:
            shares = listed([f"{row['kind']} ({_rate(row)})" for row in unseen])
            yield (
                f"too few of these planted changes were found: {shares}",
                "Choose an encoder that reads such texts (--encoder)",
            )
        if not any(row["planted"] for row in kinds):
            yield "no changed copy of them could be planted, so what the audit sees is unknown", ""

    def notes(self, prefilter: PrefilterRecall | None) -> Iterator[str]:
        """What else there is to know: what was dismissed, left out of the comparison, or not asked of the encoder."""
        dismissed = self.known.of("dismissed")
        if (
            decided := dismissed.filter(pl.col("differs") != "")["differs"]
            .value_counts(sort=True)
            .sort("differs")
            .rows()
        ):
            named = listed([f"{what} {count:,d}" for what, count in decided])
            yield f"Dismissed, since the texts differ in what decides: {counted(dismissed.height, 'pair')} ({named})."
        if common := self.doubts.get("common", 0):
            yield f"Of the pairs in doubt, {common:,d} share only words that at least 1% of the training texts hold."
        carriers = [(f"Training queries of {name}", count.get("carrier")) for name, count in self.counts.items()]
        for texts, around in ((self.test.noun.capitalize(), self.test.carrier), *carriers):
            if around:
                quoted = ", ".join(f"“{text.strip()}”" for text in around)
                yield f"{texts} that begin or end with {quoted} were compared without it."
        unread = {name: count["unread"] for name, count in self.counts.items() if "unread" in count}
        # A few odd texts are no property of a source.
        shares = {name: one for name, one in unread.items() if sum(one["unread"].values()) >= _ODD * one["texts"] > 0}
        if not self.known.encoded:
            yield WITHOUT_ENCODER
        elif self.known.unread or shares:
            yield not_asked(self.known.unread, 0, (self.test.noun, ""), shares)
        if (count := self.known.long) and self.known.sensitivity["kinds"]:
            longer = f"1 {_one(self.test.noun)} is" if count == 1 else f"{count:,d} {self.test.noun} are"
            yield f"{longer} longer than {REWORDED} words: rewordings were planted among the first {REWORDED}."
        if short := self.known.short:
            topics = counted(short, _one(self.test.noun), self.test.noun)
            yield f"Of {topics} no text has the three content words to be looked for inside longer queries."
        for name, read in self.counts.items():
            if repaired := read["repaired"]:
                verb = "was" if repaired == 1 else "were"
                yield f"{counted(repaired, 'text')} of {name} {verb} not UTF-8 and {verb} read as Latin-1."
        if prefilter is not None:
            recall = "no pair shows how many were missed"
            if prefilter["true_pairs"]:
                recall = (
                    f"recall {prefilter['recall']:.3f}, 95% interval {prefilter['low']:.3f} to {prefilter['high']:.3f}"
                )
            yield f"Texts that share few trigrams with a topic were not encoded ({recall})."

    def _unread(self) -> Iterator[str]:
        for name, count in self.counts.items():
            if count["skipped"]:
                yield f"{count['skipped']} records of {name} could not be read"
            if count["read"] == count["empty"] and "query=" in count.get("roles", "query="):
                yield f"{name} holds no query"
            if like := count.get("ids"):
                yield (
                    f"most texts of {name} are one word with digits, such as “{like}”: these are ids, not queries (is "
                    "it another file, or another column?)"
                )
        if like := ids_among([topic.title for topic in self.test.topics], ()):
            yield f"most {self.test.noun} are one word with digits, such as “{like}”: these are ids, not queries"
        if blank := self.test.counts.empty + self.test.counts.skipped:
            whole = len(self.test.topics) + blank
            yield f"{blank:,d} of {counted(whole, _one(self.test.noun), self.test.noun)} have no text"
        if silent := self.known.silent:
            has = f"1 {_one(self.test.noun)} has" if silent == 1 else f"{silent} {self.test.noun} have"
            yield f"{has} no text in the fields compared"


def kinds_seen(
    kinds: Sequence[KindFound],
) -> tuple[list[str], dict[str, list[KindFound]], dict[str, list[KindFound]]]:
    """The kinds of rewording that the audit sees, those to which it is blind, and those with too few plants to say.

    A kind counts as seen where the share found is at least 0.95 in every field (the point estimate, whose interval the
    table shows) and at least 20 were planted in all fields together.
    """
    by_kind: dict[str, list[KindFound]] = {}
    for found in kinds:
        if found["planted"]:
            by_kind.setdefault(found["kind"], []).append(found)
    blind = {kind: rows for kind, rows in by_kind.items() if not all(map(_seen, rows))}
    few = {
        kind: rows
        for kind, rows in by_kind.items()
        if kind not in blind and sum(row["planted"] for row in rows) < _FEWEST_TO_SAY
    }
    return [kind for kind in by_kind if kind not in blind and kind not in few], blind, few


def _claims(found: Sequence[KindFound]) -> list[KindClaim]:
    """Over all fields, what was planted and found of each kind, and what is claimed of it."""
    _, blind, few = kinds_seen(found)
    claims = []
    for kind, claim in CLAIMS.items():
        rows = [row for row in found if row["kind"] == kind and row["planted"]]
        said = "no: found too seldom" if kind in blind else "no: too few to say" if kind in few else claim
        planted, hits = (sum(row[key] for row in rows) for key in ("planted", "found"))
        claims.append(KindClaim(kind=kind, planted=planted, found=hits, claimed=said if rows else "no: not planted"))
    return claims if found else []


#: What an audit without an encoder says of itself.
WITHOUT_ENCODER: Final = (
    "No encoder was used: texts were compared by their words and letters only, and rewordings in other words are not "
    f"seen ({INSTALL} brings one)."
)


def not_asked(
    test: int,
    training: int,
    nouns: tuple[str, str] = ("test texts", "training texts"),
    shares: Mapping[str, UnreadShare] = {},
) -> str:
    """That an encoder cannot read some texts, and which shares of sources."""
    sides = [counted(count, _one(noun), noun) for count, noun in zip((test, training), nouns, strict=True) if count]
    for name, share in shares.items():
        scripts = listed([script if script == "CJK" else script.title() for script in share["unread"] if script])
        part = sum(share["unread"].values()) / share["texts"]
        sample = f"a sample of {counted(share['texts'], 'text')} of {name}"
        sides.append(f"{max(part, 0.01):.0%} of {sample}{f' ({scripts})' if scripts else ''}")
    return f"The encoder cannot read {listed(sides)}: these were compared by their words and letters only."


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.{0 if part >= 0.01 * whole else 1}%}"


def _one(noun: str) -> str:
    return f"{noun[:-3]}y" if noun.endswith("ies") else noun.removesuffix("s")


#: What stands beside the kinds that were planted.
NOTHING_CLAIMED: Final = f"Nothing was planted of {UNPLANTED}, and nothing is claimed of them."


def claimed(kinds: Sequence[str], claims: Mapping[str, str] = CLAIMS) -> str:
    """Kinds that the audit sees, each with what was planted: more than that is not claimed."""
    return "; ".join(f"{kind} ({claim})" for kind, claim in claims.items() if kind in kinds) or "none"


def _seen(found: KindFound) -> bool:
    return found["share"] is None or found["share"] >= _ENOUGH


def _rate(found: KindFound) -> str:
    return f"{found['found']} of {found['planted']} by {found['field']}"
