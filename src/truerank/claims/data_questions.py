"""Questions that audits of the data answer (leakage, collection, versions), and what repairs do to the claim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from truerank.audits import transfer
from truerank.audits.collection.audit import audit as collection_audit
from truerank.audits.collection.options import CollectionOptions, Parts
from truerank.audits.collection.repairs import clean as collection_clean
from truerank.audits.collection.results import CollectionAudit
from truerank.audits.collection.results import load_audit as load_collection_audit
from truerank.audits.collection.run_faults import HARDLY, cut_short
from truerank.claims.claim import Claim, ClaimEstimate, Effect, Repair, became, change_by
from truerank.claims.file_questions import LARGE
from truerank.claims.inquiry import ClaimMaterial, Inquiry
from truerank.claims.register import spoken
from truerank.claims.results import ClaimAnswer, MatchedPair
from truerank.claims.steps import AuditSteps
from truerank.errors import OptionError
from truerank.measures.placebo import edits_between
from truerank.options import Resampling
from truerank.records import Document
from truerank.sources import open_documents, read_qrels_frame
from truerank.text.printable import capital, counted, listed
from truerank.work.progress import Progress

#: The kinds of leak that concern a document that is relevant to a topic.
_DOCUMENTS: Final = ("positive-relevant", "negative-relevant")


#: Kinds that `collection clean` repairs, or that the question about files names.
_REPAIRED: Final = frozenset((
    "missing-document", "replaced-text", "respelt-document", "unknown-topic", "respelt-topic", "repeated-pair",
    "contradicted-pair", "exact-duplicate", "contradicted-group", "unjudged-twin", "redundant-relevant",
    "duplicate-topic", "run-of-other-documents", "broken-row", "swapped-ids", "misplaced-run", "shifted-judgments",
    "shuffled-judgments", "unrelated-judgments", "inverted-grades",
))  # fmt: skip
_DISPLACED: Final = "displaced-text"
#: Notes that are tried on the claim.
_HEARD: Final = ("short-document", "echo")
#: Kinds of judgments that can be read in another way, which is then tried.
_READ: Final = ("contradicted-pair", "off-scale-grade")
#: A fault of a larger share of the topics has no remainder to compare with.
_MOST: Final = 0.8
_PAIR: Final = ["topic_id", "doc_id"]


def leakage_answer(given: Inquiry, material: ClaimMaterial, claim: Claim | None, steps: AuditSteps) -> ClaimAnswer:
    """(b) The leakage audit, and the claim on the topics that do not leak, beside random removals of as many."""
    from truerank.audits.leakage.audit import audit as leakage_audit
    from truerank.audits.leakage.audit import verdicts
    from truerank.audits.leakage.estimate import WITHOUT_ENCODER
    from truerank.audits.leakage.kinds import DocumentOptions
    from truerank.audits.leakage.options import AuditOptions
    from truerank.vectors.encoders.opening import WORDS, chosen

    test, encoding = str(given.sources.test), given.encoding
    encoding = replace(encoding, encoder=chosen(encoding.encoder, encoding.backend))
    depends = {
        "train": steps.inputs("train", given.sources.train), "test": steps.inputs("test", [test]),
        "labels": steps.inputs("labels", given.judged.labels), "judged": given.judged,
        "encoding": replace(encoding, cache=None),
        "variants": steps.inputs("variants", [given.options.variants]),
        "docs": steps.inputs("docs", [given.sources.docs]), "qrels": steps.inputs("qrels", [given.sources.qrels]),
        "rel": given.scoring.rel,
    }  # fmt: skip

    def run(folder: Path, progress: Progress) -> dict[str, Any]:
        """The leakage audit, as far as the claim needs it."""
        named = {} if given.options.variants is None else {material.test: given.options.variants}
        sources = given.sources
        texts = {"docs": sources.docs, "qrels": sources.qrels} if sources.has("docs") and sources.has("qrels") else {}
        asked: Any = {
            "options": AuditOptions(variants=named), "documents": DocumentOptions(rel=given.scoring.rel, **texts),
            "encoding": encoding, "judged": given.judged, "progress": progress,
        }  # fmt: skip
        audited = (partial(leakage_audit, out=folder) if steps.kept else verdicts)(sources.train, [test], **asked)
        one: Any = next(iter(audited.summary["tests"].values()))
        names = ("verdict", "sentence", "notes", "settle", "leaked_topics")
        leaks = audited.leaks.filter(pl.col("kind").is_in(_DOCUMENTS))["doc_id"]
        compared = any(kind["of"] for kind in one.get("document_kinds", ()))
        found = {name: one[name] for name in names} | {"documents": sorted(set(leaks)), "compared": compared}
        counts = one["confirmed_topics"], len(one["leaked_topics"])
        return found | {"example": _example(audited, *counts, golden=given.unit == "questions")}

    found = steps.once("leakage", depends, run)
    topics, documents = frozenset(found["leaked_topics"]), frozenset(found["documents"])
    why = " ".join([found["sentence"], *found["notes"]])
    if not found["compared"]:
        why = f"{why} Only queries were compared, no documents."
    facts = {"leaked_topics": sorted(topics), "leaked_documents": sorted(documents), "verdict": found["verdict"]}
    if encoding.encoder == WORDS:
        facts["without_encoder"] = True
    example = None
    if found["example"] is not None:
        test, train, said = found["example"]
        example = MatchedPair(tuple(test), tuple(train), said)
    answer = ClaimAnswer(
        "leakage", found["verdict"], why, "unknown", "", (), " ".join(found["settle"][:1]), "leakage", (), facts,
        remark=WITHOUT_ENCODER if encoding.encoder == WORDS else "", example=example,
    )  # fmt: skip
    if claim is None:
        match = f"{counted(len(topics), 'test topic')} {_matches(len(topics))} a training query."
        return replace(answer, found=match if topics else "")
    return without_leaked(claim, answer, topics, documents, given.resampling)


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _matches(count: int) -> str:
    return "matches" if count == 1 else "match"


def _example(audited: Any, confirmed: int, leaked: int, *, golden: bool) -> MatchedPair | None:
    """The match whose texts are most alike without being the same, and who confirmed the matches."""
    pairs = audited.leaking().filter(pl.col("topic_text").str.to_lowercase() != pl.col("query_text").str.to_lowercase())
    if not len(pairs):
        return None
    order = [pl.col("similarity").fill_null(0), pl.col("query_text").str.len_chars(), "topic_id", "query_id"]
    row = pairs.sort(order, descending=[True, False, False, False]).row(0, named=True)
    said = f"People confirmed the match for {confirmed:,d} of the {leaked:,d}."
    return MatchedPair(
        (spoken(f"Topic {row['topic_id']}", golden=golden), row["topic_text"]),
        (spoken(f"Training query {row['query_id']}", golden=golden), row["query_text"]),
        said if confirmed else "No person has confirmed the matches yet.",
    )  # fmt: skip


def without_leaked(
    claim: Claim, answer: ClaimAnswer, topics: frozenset[str], documents: frozenset[str], resampling: Resampling
) -> ClaimAnswer:
    """The answer on leakage with what the removal of leaked topics and documents does to the claim."""
    judged = frozenset(claim.evaluation.topics)
    relevant = claim.qrels.filter(pl.col("relevance") >= claim.scoring.rel)
    relevant = relevant.filter(~pl.col("topic_id").is_in(list(topics)))
    gone = frozenset(relevant["doc_id"]) & documents
    if not topics & judged and not gone:
        if answer.word == "CLEAN":
            text = "No test topic matches the training data that you gave."
            return replace(answer, effect=claim.base.effect, consequence=text)
        return replace(answer, consequence="No judged topic is known to match, so there is none to leave out.")
    number = len(topics & judged)
    parts = [f"the {counted(number, 'topic')} that {_matches(number)} a training query"] if number else []
    parts += [f"the {counted(len(gone), 'relevant document')} in the training data"] if gone else []
    match = f"{number:,d} of {len(judged):,d} test topics match a training query." if number else ""
    there = f"{counted(len(gone), 'relevant document')} {_are(len(gone))} in the training data."
    answer = replace(answer, found=" ".join(filter(None, (match, there if gone else ""))))
    which = ("that match", "a training query") if number else ("with such documents", "in the training data")
    repair = Repair(f"without {listed(parts)}", topics=topics & judged, documents=gone, which=which)
    settles = "Add topics that match no training query." if number else answer.settles
    answer = replace(answer, settles=settles)
    nothing = "every topic matches" if topics >= judged else "no topic is left that both answer"
    return repaired_answer(claim, answer, repair, resampling, nothing)


def repaired_answer(
    claim: Claim, answer: ClaimAnswer, repair: Repair, resampling: Resampling, nothing: str
) -> ClaimAnswer:
    change = change_by(claim, (repair,), repair.what, resampling)
    if change is None:
        return replace(answer, effect="not shown", consequence=f"{nothing.capitalize()}.", repair=repair)
    says = became(claim, claim.base, change.after, moved=change.moved)
    facts = {**answer.facts, "change": change.size, "moved": change.moved, "beside": change.beside}
    return replace(
        answer, effect=change.effect, consequence=f"{capital(repair.what)}, {says}. {change.beside}".strip(),
        estimates=(*answer.estimates, change.after), repair=repair, facts=facts,
    )  # fmt: skip


def collection_answer(
    given: Inquiry, claim: Claim | None, steps: AuditSteps, gone: frozenset[str] = frozenset()
) -> ClaimAnswer:
    """(c) The collection audit, and the claim on judgments and rankings that are repaired.

    Documents that are `gone` since an earlier version are named by the question of the versions, where it has them.
    """
    sources = given.sources
    measure = given.options.measure
    depends = {
        "qrels": steps.inputs("qrels", [sources.qrels]), "docs": steps.inputs("docs", [sources.docs]),
        "topics": steps.inputs("topics", [sources.test]), "rel": given.scoring.rel,
        "measure": measure, "resampling": given.resampling,
    }  # fmt: skip

    def audited(folder: Path | None) -> CollectionAudit:
        # What runs show is the question about the files, and what repairs do to them is looked at below.
        parts = Parts(qrels=sources.qrels, docs=sources.docs, topics=sources.test)
        options = CollectionOptions(
            measures=measure, resamples=given.resampling.resamples, confidence=given.resampling.confidence,
            seed=given.resampling.seed,
        )  # fmt: skip
        return collection_audit(parts, options=options, scoring=given.scoring, out=folder, progress=steps.progress)

    def run(folder: Path, _: Progress) -> dict[str, Any]:
        """The collection audit and its repair."""
        whole = audited(folder)
        if sources.has("qrels"):
            collection_clean(sources.qrels, whole, out=folder / "clean")
        return _verdict_of(whole)

    if steps.kept:
        found = steps.once("collection", depends, run)
        audit = load_collection_audit(steps.place("collection"))
    else:
        # Nobody will see its page.
        audit = audited(None)
        found = _verdict_of(audit)
    facts = {"verdict": found["verdict"]}
    answer = ClaimAnswer(
        "collection", found["verdict"], found["why"], "unknown", "", (), found["settle"], "collection", (), facts
    )  # fmt: skip
    if not sources.has("docs"):
        none = "" if answer.word.startswith("FAULTY") else "No certain fault was found in the judgments; "
        text = capital(f"{none}the documents were not given.")
        answer = replace(answer, consequence=text, facts={**answer.facts, "without_documents": True})
        answer = replace(answer, settles=answer.settles or "Give `docs`.")
    if claim is None:
        return answer
    answer = _repaired(claim, answer, audit, given.resampling, gone)
    return without_touched(claim, answer, audit, given.resampling)


def _verdict_of(audit: CollectionAudit) -> dict[str, Any]:
    whole = audit.verdicts[0]
    settle = "Correct the test set; `collection audit` lists every fault." if whole.word.startswith("FAULTY") else ""
    return {"verdict": whole.word, "why": whole.sentence, "settle": settle}


#: What taking documents out of a run does not show.
_MOVED_UP: Final = "Later results move up; a run made without these documents could have another order."


def _repaired(
    claim: Claim, answer: ClaimAnswer, audit: CollectionAudit, resampling: Resampling, gone: frozenset[str]
) -> ClaimAnswer:
    """The answer with the claim on the judgments that `collection clean` would write."""
    cleaned = collection_clean(claim.qrels, audit)
    groups = dict(cleaned.duplicates.iter_rows())
    edits = edits_between(claim.qrels, cleaned.qrels)
    if not len(edits) and not groups:
        left = [one for one in audit.findings if one.kind.severity == "fault" and one.kind.name not in _REPAIRED]
        if left:
            said = " ".join(f"{one.kind.title}: {one.counted}." for one in left)
            return replace(answer, effect=claim.base.effect, consequence="Nothing of it can be repaired.", found=said)
        text = "No certain fault; the page of the audit lists what a person should look at."
        text = "The other checks tell its faults." if answer.word.startswith("FAULTY") else text
        unclear = answer.consequence and not answer.word.startswith("FAULTY")
        return answer if unclear else replace(answer, effect=claim.base.effect, consequence=text)
    lost = {
        "that the collection lacks": frozenset(audit.rows("missing-document")["doc_id"]),
        "of which only a notice is left": frozenset(audit.rows("replaced-text")["doc_id"]),
    }
    missing = frozenset[str]().union(*lost.values())
    corrected = int((~edits["doc_id"].is_in([*missing])).sum())
    parts = [f"{counted(corrected, 'judgment')} corrected"] if corrected else []
    parts += [f"{counted(len(groups), 'copy', 'copies')} counted once"] if groups else []
    what = [f"with {listed(parts)}"] if parts else []
    without = [f"the {counted(len(ids - gone), 'document')} {which}" for which, ids in lost.items() if ids - gone]
    what += [f"without {listed(without)}"] if without else []
    both = missing and (corrected or groups)
    which = ("with such a fault" if both else f"with a {'missing document' if missing else 'wrong judgment'}", "")
    repair = Repair(", ".join(what), documents=missing, edits=edits, equivalent=groups, which=which)
    changed = {"changed": len(edits), "copies": len(groups)}
    lacking = len(missing - gone)
    counts = ((corrected, "wrong judgment"), (len(groups), "duplicate"), (lacking, "missing document"))
    found = f"{listed([counted(*one) for one in counts if one[0]])}.".lstrip(".")
    if not corrected and not groups and lacking:
        judged = claim.qrels.filter(pl.col("relevance") >= claim.scoring.rel)["doc_id"].n_unique()
        expected = len(frozenset(claim.qrels.filter(pl.col("relevance") >= claim.scoring.rel)["doc_id"]) & missing)
        found = f"{expected:,d} of {judged:,d} relevant documents do not exist." if expected else found
    answer = replace(answer, facts={**answer.facts, **changed}, found=found)
    answer = repaired_answer(claim, answer, repair, resampling, "no judgment is left")
    return replace(answer, consequence=f"{answer.consequence} {_MOVED_UP}") if missing else answer


def without_touched(claim: Claim, answer: ClaimAnswer, audit: CollectionAudit, resampling: Resampling) -> ClaimAnswer:
    """The answer with the faults that nothing repairs, where the claim is another one without what they touch."""
    claim = replace(claim, runs=claim.pair)
    judged = frozenset(claim.evaluation.topics)
    rows, exceptions, named = list(answer.estimates), [], []
    for repair in _readings(claim, audit):
        read = claim.repaired((repair,))
        if claim.base.effect == "stands" and (read is None or read.base.effect != "stands"):
            left = None if read is None else replace(read.base, label=repair.what)
            rows += [] if left is None else [left]
            exceptions.append((f"{capital(repair.which[1])}.", _without(claim, f"{repair.what},", left)))
    for finding in audit.findings:
        kind = finding.kind
        if kind.name == _DISPLACED:
            # Nobody knows which runs were made from these documents.
            exceptions.append((finding.here, "If a run was made from these documents, its results are of others."))
            continue
        if (kind.severity == "note" and kind.name not in _HEARD) or kind.name in (*_REPAIRED, *_READ):
            continue
        instances = audit.rows(kind.name)
        topics = frozenset(instances.filter(pl.col("doc_id") == "")["topic_id"]) & judged
        documents = frozenset() if topics else frozenset(instances["doc_id"]) - {""}
        if not topics and not documents:
            continue
        share = len(topics) / max(1, len(judged))
        what = f"without the {counted(len(topics), 'topic') if topics else counted(len(documents), 'document')}"
        repair = Repair(f"{what} of '{kind.title}'", topics=topics, documents=documents)
        says = f"{kind.title}: {finding.counted}."
        named.append(f"{kind.title} ({finding.counted})")
        if claim.base.effect != "stands" or share > _MOST:
            continue
        if kind.name == "random-judgments" and share >= LARGE:
            exceptions.append((says, "Their judgments say nothing of either system."))
            continue
        rest = claim.repaired((repair,))
        if rest is not None and rest.base.effect == "stands" and not _excluded(claim, rest):
            continue
        change = change_by(claim, (repair,), repair.what, resampling)
        if change is not None and change.moved:
            rows.append(change.after)
            exceptions.append((says, _without(claim, "without them", change.after)))
    text = [f"{capital(row.label)} it is {row.figures()}." for row in rows[len(answer.estimates) :]]
    return replace(
        answer, estimates=tuple(rows), exception=tuple(part for one in exceptions for part in one),
        plausible=bool(exceptions), consequence=" ".join((answer.consequence, *text)),
        facts={**answer.facts, "not_repaired": named},
    )  # fmt: skip


def _without(claim: Claim, what: str, row: ClaimEstimate | None) -> str:
    """What becomes of the lead under a condition."""
    if row is None:
        return f"{capital(what)} nothing is left to compare."
    return f"{capital(what)} {became(claim, claim.base, row, moved=True)}."


def _excluded(claim: Claim, left: Claim) -> bool:
    """Whether the difference that is left lies below the interval of the claimed one."""
    return left.base.value is not None and claim.base.low is not None and left.base.value < claim.base.low


def _readings(claim: Claim, audit: CollectionAudit) -> Iterable[Repair]:
    """The judgments with other grades for pairs that have several, or one outside the scale."""
    found = {kind: audit.rows(kind) for kind in _READ if any(one.kind.name == kind for one in audit.findings)}
    judged = claim.qrels.select("topic_id", "doc_id", "relevance")
    if "contradicted-pair" in found:
        pairs = found["contradicted-pair"]
        # "grades 1, 0; judgments 5, 9"
        were = pl.col("detail").str.split("; ").list.first().str.extract_all(r"-?\d+")
        grades = were.list.eval(pl.element().cast(pl.Int32))
        for name, grade in (("lower", grades.list.min()), ("higher", grades.list.max())):
            new = pairs.select("topic_id", "doc_id", grade.alias("relevance"))
            what = f"with the {name} grade of each"
            says = f"{counted(len(pairs), 'document')} {'has' if len(pairs) == 1 else 'have'} two grades for a topic"
            yield Repair(what, edits=edits_between(judged.join(new, on=_PAIR, how="semi"), new), which=("", says))
    if "off-scale-grade" in found:
        odd = found["off-scale-grade"].select(_PAIR)
        usual = int(np.max(judged.join(odd, on=_PAIR, how="anti")["relevance"].to_numpy()))
        new = judged.join(odd, on=_PAIR, how="semi").with_columns(relevance=pl.lit(usual, pl.Int32))
        says = f"{counted(len(odd), 'judgment')} {'has a grade' if len(odd) == 1 else 'have grades'} outside the scale"
        what = f"with grade {usual} for these"
        yield Repair(what, edits=edits_between(judged.join(odd, on=_PAIR, how="semi"), new), which=("", says))


_BEFORE, _NOW = "judged", "now"
#: The judgments of documents that are there, and those of them that the scan does not doubt.
_QRELS: Final = ("carried.qrels", "clean.qrels")
#: Documents that are looked at to see whether versions are matched by URL.
_LOOKED_AT: Final = 100


def versions_answer(given: Inquiry, material: ClaimMaterial, claim: Claim, steps: AuditSteps) -> ClaimAnswer:
    """(g) The judgments carried to the new documents: without lost ones, and without those that the scan doubts."""
    sources = given.sources
    depends = {
        "previous": steps.inputs("previous", [sources.previous]), "docs": steps.inputs("docs", [sources.docs]),
        "qrels": steps.inputs("qrels", [sources.qrels]), "topics": steps.inputs("topics", [sources.test]),
        "rel": given.scoring.rel,
    }  # fmt: skip

    # What is not among the documents that were judged cannot have gone since.
    unknown = ~pl.col("doc_id").is_in(pl.Series(material.before, dtype=pl.String).implode())

    def run(folder: Path, progress: Progress) -> dict[str, Any]:
        """Scans, carries and cleans."""
        versions = {_BEFORE: str(sources.previous), _NOW: str(sources.docs)}
        by = "url" if _has_urls(str(sources.previous)) else "id"
        rel, matching = given.scoring.rel, transfer.MatchOptions(match_by="url" if by == "url" else "id")
        # The scan matches the versions by itself, while it reads them.
        found = transfer.scan(
            versions, sources.qrels, str(sources.test), model="bm25", rel=rel, matching=matching,
            out=folder if steps.kept else None, progress=progress,
        )  # fmt: skip
        files = [folder / name for name in _QRELS]
        route = transfer.Route(matched=found.links, to=_NOW)
        carried = transfer.carry(sources.qrels, route=route, rel=rel, out=files[0])
        nowhere = len(carried.parts["lost"].filter(unknown))
        cleaned = transfer.clean(
            str(files[0]), scan=found, version_name=_NOW, removal=transfer.Removal(ids="version"), rel=rel, out=files[1]
        )  # fmt: skip
        return {
            "compared": found.summary["compared"], "lost": carried.lost - nowhere, "nowhere": nowhere,
            "ambiguous": carried.ambiguous, "flagged": sum(cleaned.removed.values()),
            "reasons": dict(cleaned.removed), "by": by,
        }  # fmt: skip

    try:
        found = steps.once("versions", depends, run)
    except OptionError as error:
        # The other questions have an answer even where BM25 cannot tell the judged documents from others.
        if error.option != "model":
            raise
        why = f"BM25 cannot compare the versions: {error.fault}."
        text = "Run `transfer scan` with another `model`, and give its judgments as `qrels`."
        return ClaimAnswer("versions", "UNKNOWN", why, "unknown", "", settles=text)
    carried, clean = (read_qrels_frame(str(steps.place("versions") / name)) for name in _QRELS)
    kept = claim.qrels.filter(unknown).join(carried, on=_PAIR, how="anti")
    found = {**found, "newer": len(claim.qrels.filter(unknown)) - len(kept)}
    carried, clean = pl.concat([carried, kept]), pl.concat([clean, kept])
    # By URL, runs may name documents as the new version does.
    gone = frozenset(material.gone if found["by"] == "id" else ())
    word = "CHANGED" if found["lost"] + found["ambiguous"] + found["flagged"] + len(gone) else "UNCHANGED"
    evidence, possible = _compared(found, material)
    settles = "Let people judge the doubtful documents (items.jsonl of the scan)." if found["flagged"] else ""
    text = "The judgments that were compared still fit the documents."
    if found["flagged"]:
        text = "Nothing changes if the doubtful documents still answer their topics."
    effect: Effect = claim.base.effect
    if many := found["newer"] > HARDLY * len(claim.qrels):
        settles = f"Give the whole version that was judged. {settles}".strip()
        word, effect = ("CANNOT TELL", "unknown") if word == "UNCHANGED" else (word, effect)
    answer = ClaimAnswer(
        "versions", word, evidence, effect, text, (), settles, "versions", facts=found, possible=possible,
        remark=possible if many else "", found=_changed(found, len(gone)),
    )  # fmt: skip
    edits = edits_between(claim.qrels, carried)
    if len(edits) or gone:
        judgments, documents = counted(len(edits), "judgment"), counted(len(gone), "document")
        what = f"{documents} ({judgments}) of the previous version" if gone else f"{judgments} of documents"
        which = ("with such documents", "gone since labelling" if claim.golden else "gone since judging")
        repair = Repair(f"without the {what} that are gone", documents=gone, edits=edits, which=which)
        answer = repaired_answer(claim, answer, repair, given.resampling, "no judged document is left")
        answer = replace(answer, consequence=f"{answer.consequence} {_MOVED_UP}") if gone else answer
    return _with_doubtful(claim, answer, clean)


def _compared(found: Mapping[str, Any], material: ClaimMaterial) -> tuple[str, str]:
    """What was found of the judged documents, and what speaks against the versions themselves."""
    held, before = (pl.Series(ids, dtype=pl.String) for ids in (material.held, material.before))
    evidence = (
        f"Of {found['compared']:,d} judgments of documents in both versions, {found['flagged']:,d} are of texts that "
        f"may have lost their answer (BM25 and texts); {found['lost']:,d} are of documents that are gone."
    )
    if found["lost"] and (last := cut_short(held, before)):
        evidence += f" These are the end of the previous version, behind {last}: are the documents cut short?"
    if found["nowhere"]:
        evidence += f" {counted(found['nowhere'], 'judgment')} of documents of neither version were not compared."
    if not found["newer"]:
        return evidence, ""
    possible = f"`previous` lacks {counted(found['newer'], 'judged document')}. Is it the version that was judged?"
    if last := cut_short(before, held):
        possible += f" Most of them are behind {last}: it may be cut short."
    elif not len(material.gone):
        possible += " It has none that the new one lacks: are they swapped?"
    return evidence, possible


def _changed(found: Mapping[str, Any], gone: int) -> str:
    """What happened to the judged documents, in one sentence."""
    lost = gone or found["lost"]
    parts = [f"{counted(lost, 'document')} {'was' if lost == 1 else 'were'} removed"] if lost else []
    if few := found["flagged"]:
        parts.append(f"{few:,d} of {found['compared']:,d} judgments are of documents that changed")
    return f"Since judging, {listed(parts)}." if parts else ""


def _with_doubtful(claim: Claim, answer: ClaimAnswer, clean: pl.DataFrame) -> ClaimAnswer:
    """The answer with the claim without doubtful documents: they are not errors yet, and can only leave it open."""
    if not answer.facts["flagged"]:
        return answer
    row = claim.of(claim.scored(clean), "without doubtful documents")
    possible = f"Without the {answer.facts['flagged']:,d} changed documents the lead would be {row.figures()}"
    turns = (row.effect == "stands") != (claim.base.effect == "stands") and row.effect != "unknown"
    possible += "." if turns or row.effect != "stands" else ": still above 0."
    return replace(
        answer, estimates=(*answer.estimates, row), possible=f"{answer.possible} {possible}".strip(), plausible=turns,
        exception=(answer.found, possible) if turns else (),
        unless="the changed documents still have their answers",
    )  # fmt: skip


def _has_urls(source: str) -> bool:
    """Whether the first documents have URLs."""
    documents: Iterable[Document] = (
        one for block in open_documents(source, keep_empty=True).batches() for one in block
    )
    return all(one.url for one in islice(documents, _LOOKED_AT))
