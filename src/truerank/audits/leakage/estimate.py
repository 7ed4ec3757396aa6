"""Estimate: how many topics and queries leak, and the verdict with what it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from truerank.audits.leakage.options import FIELDS
from truerank.audits.leakage.results import (
    BelowCount,
    FieldCount,
    KindFound,
    PrefilterRecall,
    Sensitivity,
    SourceCount,
    TestSummary,
    VerdictWord,
)
from truerank.measures.magnitudes import proportion
from truerank.overlaps.meaning import UnreadShare
from truerank.sources import TopicSet
from truerank.text.normalising import normalise
from truerank.text.printable import counted, listed
from truerank.text.rewordings import CLAIMS, KINDS, REWORDED, SEEN_KINDS, UNPLANTED
from truerank.vectors.encoders.model_folder import INSTALL

#: The share of the plants of a kind that must be found before the kind counts as seen.
_ENOUGH: Final = 0.95
#: Plants of a kind that it takes to say that the audit sees it.
_FEWEST_TO_SAY: Final = 20
#: What pairs have in common that words or letters propose.
_WORDED: Final = "the same content words, the whole topic inside a longer query, or nearly the same letters"


def count_fields(
    above: pl.DataFrame, sources: Sequence[str], fields: Sequence[str]
) -> dict[str, dict[str, FieldCount]]:
    """Topics with a candidate and distinct candidate queries, by field and cumulative source."""
    texts = above["query_text"].unique()
    normal = pl.DataFrame({"query_text": texts, "query": [normalise(text) for text in texts]})
    pairs = above.join(normal, on="query_text", how="left").select("field", "topic_id", "source", "query")
    names = [name for name in FIELDS if name in fields]
    return {
        name: {
            label: FieldCount(topics=some["topic_id"].n_unique(), queries=some["query"].n_unique())
            for place, label in enumerate(cumulative_labels(sources))
            for some in [part.filter(pl.col("source").is_in(sources[: place + 1]))]
        }
        for name, part in [*((name, pairs.filter(field=name)) for name in names), ("union", pairs)]
    }


def cumulative_labels(sources: Sequence[str]) -> list[str]:
    """Column labels of cumulative sources: the first by its name, then "+" and the name that is added."""
    return [name if place == 0 else f"+{name}" for place, name in enumerate(sources)]


@dataclass(frozen=True)
class TestEvidence:
    """What an audit knows of one test set.

    `below` are pairs that words or letters propose and nobody judged away, `judged` counts the leaks and the others
    among those that were judged. `confirmed` are topics with a confirmed leak and topics with an unjudged candidate,
    where labels were given; `silent` topics have no text to compare, `unread` ones a text that the encoder cannot read.
    Of `long` topics, the first words were reworded. From the share `common` of training texts on, a word is a common
    one. `related` counts the pairs above the threshold whose texts differ in what decides. `encoded` says whether there
    was an encoder at all.
    """

    __test__ = False

    above: pl.DataFrame
    below: pl.DataFrame
    sensitivity: Sensitivity
    confirmed: tuple[set[str], set[str]] | None = None
    silent: int = 0
    calibrated: bool = True
    unread: int = 0
    common: float = 1.0
    judged: tuple[int, int] = (0, 0)
    related: int = 0
    encoded: bool = True
    long: int = 0


def summarise_test(
    test: TopicSet,
    known: TestEvidence,
    counts: Mapping[str, SourceCount],
    *,
    prefilter: PrefilterRecall | None,
    fields: Sequence[str],
) -> TestSummary:
    leaked = set(known.above["topic_id"].unique())
    if known.confirmed is not None:
        leaked = known.confirmed[0] | (leaked & known.confirmed[1])
    sources = list(counts)
    by_field = {
        field: list(by_source.values())[-1] for field, by_source in count_fields(known.below, sources, fields).items()
    }
    weak = int((known.below["shared"] >= known.common).sum())
    topics, queries = by_field["union"]["topics"], by_field["union"]["queries"]
    below = BelowCount(topics=topics, queries=queries, pairs=known.below.height, common=weak, fields=by_field)
    if any(known.judged):
        below["judged"] = list(known.judged)
    reasons = _Reasons(test, known, below, counts)
    if leaked:
        verdict, why, settle = reasons.contaminated(leaked)
    else:
        verdict, why, settle = reasons.without_leak(prefilter)
    return TestSummary(
        topics=len(test.topics),
        looked_for=len(test.topics) - known.silent if any(count["read"] for count in counts.values()) else 0,
        noun=test.noun,
        verdict=verdict,
        why=" ".join([why, *_wrong(below), *reasons.silence()]),
        evidence=list(_evidence(below, known.sensitivity["kinds"])),
        settle=settle,
        unread=known.unread,
        leaked_topics=[topic.topic_id for topic in test.topics if topic.topic_id in leaked],
        below=below,
        fields=count_fields(known.above, list(counts), fields),
        sensitivity=known.sensitivity["kinds"],
        other_topics=known.sensitivity["other_topics"],
    )


@dataclass(frozen=True)
class _Reasons:
    test: TopicSet
    known: TestEvidence
    below: BelowCount
    counts: Mapping[str, SourceCount]

    def contaminated(self, leaked: set[str]) -> tuple[VerdictWord, str, list[str]]:
        """CONTAMINATED: the reason, and what settles or mends it."""
        topics, basis = len(self.test.topics), "a training query above the threshold"
        settle = ["Judge the pairs ('truerank judge new') and give the labels with --labels."]
        read = self.known.above.filter(pl.col("evidence").str.contains("encoder"))["topic_id"].n_unique()
        if same := self.known.above["topic_id"].n_unique() - read:
            text = "the same text as a training query"
            basis = f"{basis}, or {text} where the encoder cannot read it ({same})" if read else text
        if self.known.confirmed is not None:
            sure = len(self.known.confirmed[0])
            basis = f"a leak ({sure} confirmed by labels, {len(leaked) - sure} with candidates that nobody has judged)"
            settle = settle if len(leaked) > sure else []
        settle.append("Remove the leaks with 'truerank leakage clean' and audit what is left.")
        return (
            "CONTAMINATED",
            f"{len(leaked)} of {topics} {self.test.noun} ({len(leaked) / topics:.0%}) have {basis}.",
            settle,
        )

    def without_leak(self, prefilter: PrefilterRecall | None) -> tuple[VerdictWord, str, list[str]]:
        """CLEAN or UNKNOWN: the reason, and what would settle it."""
        gaps, settle = list(self._unread()), []
        if gaps:
            settle.append("Mend or replace what was not read or compared, and run the audit again.")
        if self.below["pairs"]:
            pairs, topics = self.below["pairs"], self.below["topics"]
            gaps.append(
                f"{pairs} {'pair' if pairs == 1 else 'pairs'} of {topics} {'topic' if topics == 1 else 'topics'} at or "
                f"below it {'has' if pairs == 1 else 'have'} {_WORDED}, and "
                f"nobody has judged {'it' if pairs == 1 else 'them'}{_of_common_words(self.below)}"
            )
            settle.append(
                "Judge these pairs ('truerank judge new' with this audit's folder as --items), and audit again with "
                "the labels ('--labels')."
            )
        unseen = [
            found for found in self.known.sensitivity["kinds"] if found["kind"] in SEEN_KINDS and not _seen(found)
        ]
        if unseen:
            named = "; ".join(f"{found['kind']} ({_rate(found)})" for found in unseen)
            gaps.append(f"the audit would not find enough of these planted rewordings of the topics: {named}")
            settle.append("Calibrate a lower threshold ('truerank leakage calibrate') or choose another encoder.")
        if not any(found["planted"] for found in self.known.sensitivity["kinds"]):
            gaps.append("no rewording of the topics could be planted, so what the audit can see is unknown")
        nothing = "Nothing above the threshold"
        if self.known.confirmed is not None:
            nothing = "No candidate above the threshold that was not judged away"
        if gaps:
            return "UNKNOWN", f"{nothing}, but {'; '.join(gaps)}.", settle
        return "CLEAN", " ".join(self._clean(prefilter)), []

    def silence(self) -> Iterator[str]:
        """What was left out of the comparison, what decided otherwise, and what the encoder was not asked about."""
        if count := self.known.related:
            pairs = "pair above the threshold is" if count == 1 else "pairs above the threshold are"
            what = "the texts differ in a number, an opposite, a negation, a direction or a name"
            yield f"{count:,d} {pairs} listed as related and not as leaks: {what}."
        carriers = [(f"Training queries of {name}", count.get("carrier")) for name, count in self.counts.items()]
        for texts, around in ((self.test.noun.capitalize(), self.test.carrier), *carriers):
            if around:
                quoted = ", ".join(f"“{text.strip()}”" for text in around)
                yield f"{texts} that begin or end with {quoted} were compared without it."
        shares = {name: count["unread"] for name, count in self.counts.items() if count.get("unread", {}).get("unread")}
        if not self.known.encoded:
            yield WITHOUT_ENCODER
        elif self.known.unread or shares:
            yield not_asked(self.known.unread, 0, (self.test.noun, ""), shares)
        if (count := self.known.long) and self.known.sensitivity["kinds"]:
            longer = f"1 {_one(self.test.noun)} is" if count == 1 else f"{count:,d} {self.test.noun} are"
            yield f"{longer} longer than {REWORDED} words: rewordings were planted among the first {REWORDED}."

    def _unread(self) -> Iterator[str]:
        for name, count in self.counts.items():
            if count["skipped"]:
                yield f"{count['skipped']} records of {name} could not be read"
        for name, count in self.counts.items():
            if count["read"] == count["empty"] and "query=" in count.get("roles", "query="):
                yield f"{name} holds no query"
        for name, count in self.counts.items():
            if like := count.get("ids"):
                yield (
                    f"most texts of {name} are one word with digits, such as “{like}”: these are ids, not queries (is "
                    "it another file, or another column?)"
                )
        if self.known.silent:
            silent = (
                f"1 {_one(self.test.noun)} has"
                if self.known.silent == 1
                else f"{self.known.silent} {self.test.noun} have"
            )
            yield f"{silent} no text in the fields compared"

    def _clean(self, prefilter: PrefilterRecall | None) -> Iterator[str]:
        judged = " that was not judged away" if self.known.confirmed is not None else ""
        yield (
            "Every training query was read, and no evidence (the encoder, the same content words, a whole topic inside "
            f"a longer query, nearly the same letters) found a pair{judged}."
        )
        seen, blind, few = kinds_seen(self.known.sensitivity["kinds"])
        yield (
            f"Of planted rewordings of these topics, the audit found at least {_ENOUGH:.0%} of these kinds: "
            f"{claimed(seen)}. {NOTHING_CLAIMED}"
        )
        if few:
            yield f"Too few of these kinds could be planted to say more than what was found: {_shares(few)}."
        if blind:
            yield f"It is partly or wholly blind to these: {_shares(blind)}."
        none = [
            kind
            for kind in KINDS
            if not any(row["planted"] for row in self.known.sensitivity["kinds"] if row["kind"] == kind)
        ]
        if none:
            yield f"These topics allow no rewording of these kinds: {', '.join(none)}."
        if not self.known.calibrated:
            yield "The threshold is not calibrated for this encoder; what is claimed rests on these rewordings."
        if prefilter is not None:
            recall = "no pair shows how many were missed"
            if prefilter["true_pairs"]:
                recall = (
                    f"recall {prefilter['recall']:.3f}, 95% interval {prefilter['low']:.3f} to {prefilter['high']:.3f}"
                )
            yield f"Texts that share few trigrams with a topic were not encoded ({recall})."


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
        shown = f"{part:.0%}" if part >= 0.005 else "less than 1%"
        sample = f"a sample of {counted(share['texts'], 'text')} of {name}"
        sides.append(f"{shown} of {sample}{f' ({scripts})' if scripts else ''}")
    return f"The encoder cannot read {listed(sides)}: these were compared by their words and letters only."


def _one(noun: str) -> str:
    return f"{noun[:-3]}y" if noun.endswith("ies") else noun.removesuffix("s")


def _of_common_words(below: BelowCount) -> str:
    """How many of the pairs are weak evidence."""
    common = below.get("common", 0)
    share = "shares" if common == 1 else "share"
    return f" ({common:,d} of them {share} only words that at least 1% of the training texts hold)" if common else ""


def _wrong(below: BelowCount) -> Iterator[str]:
    """How many of such pairs are not leaks, by those that people judged."""
    leaks, others = below.get("judged", [0, 0])
    if below["pairs"] and leaks + others:
        wrong, verb = proportion(others, leaks + others), "is" if others == 1 else "are"
        yield (
            f"Of the {leaks + others:,d} such pairs that were judged, {others:,d} {verb} no leak: expect a share of "
            f"{wrong.low:.0%} to {wrong.high:.0%} among the rest if they were drawn at random."
        )


#: What stands beside the kinds that were planted.
NOTHING_CLAIMED: Final = f"Nothing was planted of {UNPLANTED}, and nothing is claimed of them."


def claimed(kinds: Sequence[str], claims: Mapping[str, str] = CLAIMS) -> str:
    """Kinds that the audit sees, each with what was planted: more than that is not claimed."""
    return "; ".join(f"{kind} ({claim})" for kind, claim in claims.items() if kind in kinds) or "none"


def _shares(kinds: Mapping[str, Sequence[KindFound]]) -> str:
    return "; ".join(f"{kind} ({', '.join(map(_rate, rows))})" for kind, rows in kinds.items())


def _seen(found: KindFound) -> bool:
    return found["share"] is None or found["share"] >= _ENOUGH


def _rate(found: KindFound) -> str:
    return f"{found['found']} of {found['planted']} by {found['field']}"


def _evidence(below: BelowCount, kinds: Sequence[KindFound]) -> Iterator[str]:
    if below["pairs"]:
        yield (
            f"Other pairs not judged away with {_WORDED}: "
            f"{below['pairs']}, of {below['topics']} topic{'' if below['topics'] == 1 else 's'}"
            f"{_of_common_words(below)}."
        )
        yield from _wrong(below)
    seen, blind, few = kinds_seen(kinds)
    planted = sum(found["planted"] for found in kinds)
    if planted:
        yield (
            f"Of {planted:,d} planted rewordings, at least {_ENOUGH:.0%} were found in every field for: "
            f"{', '.join(seen) or 'no kind'}; not for: {', '.join(blind) or 'none'}"
            + (f"; too few to say: {', '.join(few)}." if few else ".")
        )
