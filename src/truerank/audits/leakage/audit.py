"""The leakage audit: which test queries are in the training data. The command, its steps and its result."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final

import numpy as np
import polars as pl

from truerank.audits.leakage.baseline import since_baseline
from truerank.audits.leakage.calibration import calibrate
from truerank.audits.leakage.documents.audit import with_documents
from truerank.audits.leakage.documents.texts import TestTexts, TrainingSource
from truerank.audits.leakage.encoders import Models, WordVectors, same_stems
from truerank.audits.leakage.estimate import TestEvidence, summarise_test
from truerank.audits.leakage.kinds import DocumentOptions, cells_of, spoken_verdicts
from truerank.audits.leakage.options import AuditOptions, Redaction, opened_labels
from truerank.audits.leakage.proposals import (
    DistinctQueries,
    Proposed,
    bare,
    first_texts,
    held_words,
    propose,
    topic_texts,
)
from truerank.audits.leakage.redaction import hash_text, key_mark, open_key, redact
from truerank.audits.leakage.results import (
    CANDIDATE_SCHEMA,
    NEIGHBOUR_SCHEMA,
    AuditResult,
    AuditSummary,
    FormRecall,
    PrefilterRecall,
    Sensitivity,
    TestSummary,
    load_audit,
    standing_of,
)
from truerank.audits.leakage.sensitivity import check
from truerank.core.plain import plain
from truerank.errors import InputError, OptionError
from truerank.judging.labels import Judgments, annotate, scope_notes
from truerank.judging.ratings import label_inputs
from truerank.options import Encoding, Flag, Labels, Out, command
from truerank.records import Input, TopicText
from truerank.sources import (
    ExampleSource,
    TopicSet,
    parse,
    read_topics,
    read_variants,
    unique_names,
    with_variants,
)
from truerank.sources.inputs import input_of, pinned, shown_source
from truerank.sources.runs import trained_on
from truerank.text.contrasts import changed_place, contrast
from truerank.text.normalising import normalise
from truerank.text.reformulation import propose_types
from truerank.text.rewordings import REWORDED
from truerank.text.wording import EVIDENCE, core, is_looked_for_inside, key
from truerank.text.words import content_words, words
from truerank.vectors.encoders import Encoder, WordsOnly
from truerank.vectors.encoders.speed import ChosenWay, processor_name
from truerank.vectors.neighbours import PairProbe
from truerank.vectors.prefilter import DEFAULT_CUTS, Filtered, estimate_recall, would_pass
from truerank.vectors.search import SearchPlan
from truerank.version import __version__
from truerank.work.artifacts import digest, hash_file, installed_versions
from truerank.work.blocks import sealed
from truerank.work.engines import open_engine
from truerank.work.jobs import Job
from truerank.work.kept import keep_json, kept_json
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import publish
from truerank.work.runs import Run
from truerank.work.runs import run as started


def summarise(
    proposed: Proposed,
    tests: Sequence[TopicSet],
    encoder: Encoder,
    *,
    judgments: Judgments | None,
    checked: Mapping[str, Sensitivity],
    unread: Collection[tuple[str, str]],
    options: AuditOptions,
    typed: bool = True,
) -> AuditResult:
    """The result of an audit; `encoder` is in full precision and proposes the reformulation types, where they are
    wanted (`typed`). `unread` are the topics (test set, id) with a text that it cannot read.
    """
    pairs = _with_evidence(proposed, options, encoder)
    judged = pairs.with_columns(judged=pl.lit(None, pl.Boolean)) if judgments is None else annotate(pairs, judgments)
    said = pl.when(pl.col("judged")).then(pl.lit("leak"))
    judged = judged.with_columns(
        standing=said.when(~pl.col("judged") & (pl.col("standing") != ""))
        .then(pl.lit("dismissed"))
        .otherwise("standing")
    )
    listed = (pl.col("similarity") > pl.lit(options.lowest, pl.Float32)) | (pl.col("standing") != "")
    candidates = judged.filter(listed)
    untyped = candidates.with_columns(type=None, title_type=None)
    candidates = with_types(candidates, tests, encoder) if typed else untyped
    prefilter = _recall(proposed, topic_texts(tests, options.fields), options)
    nothing = Sensitivity(kinds=[], other_topics={})
    spoken = {test.name: topic_texts([test], options.fields) for test in tests}
    known = {
        test.name: TestEvidence(
            candidates.filter(test=test.name),
            checked.get(test.name, nothing),
            options.threshold,
            len({topic.topic_id for topic in test.topics} - {text.topic_id for text in spoken[test.name]}),
            sum(name == test.name for name, _ in unread),
            proposed.common,
            encoder.name != WordsOnly.name,
            long=len({text.topic_id for text in spoken[test.name] if len(words(text.text)) > REWORDED}),
            short=len(
                {text.topic_id for text in spoken[test.name]}
                - {text.topic_id for text in spoken[test.name] if is_looked_for_inside(words(text.text))}
            ),
            labelled=judgments is not None,
        )
        for test in tests
    }

    def summarised(test: TopicSet, evidence: TestEvidence) -> TestSummary:
        fields = tuple(name for name in (*options.fields, "variant") if name in test.fields)
        return summarise_test(test, evidence, proposed.counts, prefilter=prefilter, fields=fields)

    found = {test.name: summarised(test, known[test.name]) for test in tests}
    without = {name: replace(one, pairs=one.pairs.clear()) for name, one in known.items()}
    alone = {test.name: summarised(test, without[test.name]) for test in tests}
    words_of = {name: (one["verdict"], alone[name]["verdict"]) for name, one in found.items()}
    looked_for = {name: one["looked_for"] for name, one in found.items()}
    cells = cells_of(candidates, list(proposed.counts), looked_for, words_of)
    shown = spoken_verdicts(found)
    summary = AuditSummary(
        verdict=shown["verdict"],
        sentence=shown["sentence"],
        verdicts=shown["verdicts"],
        threshold=options.threshold,
        floor=options.lowest,
        calibrated_for=options.calibrated_for,
        calibrated=encoder.name == options.calibrated_for,
        encoder=encoder.name,
        mode=options.mode,
        top_k=options.k,
        sources=proposed.counts,
        tests=found,
        cells=cells.to_dicts(),
        prefilter=prefilter,
    )
    if screens := {name: asdict(one.screen) for name, one in proposed.found.items() if one.screen is not None}:
        summary["first_pass"] = screens
    if judgments is not None:
        above = (pl.col("similarity") > pl.lit(options.threshold, pl.Float32)) & (pl.col("differs") == "")
        counts = (int(judged.filter(above)["judged"].eq_missing(answer).sum()) for answer in _ANSWERS)
        confirmed, others, unjudged = counts
        summary["labels"] = {
            "above": {"leaks": confirmed, "not_leaks": others, "unjudged": unjudged},
            "precision_above": round(confirmed / (confirmed + others), 6) if confirmed + others else None,
            "leaks_at_or_below": int(judged["judged"].sum()) - confirmed,
        }
        scope = scope_notes({test.name: [topic.topic_id for topic in test.topics] for test in tests}, judgments)
        summary["labels"] |= {"test_sets": " ".join(scope)} if scope else {}
    neighbours = proposed.pairs.filter(pl.col("rank") <= options.k).select(list(NEIGHBOUR_SCHEMA))
    return AuditResult(summary, candidates.select(list(CANDIDATE_SCHEMA)), neighbours)


_ANSWERS: Final = (True, False, None)


#: The cosine from which on the encoder takes two words for one, and how many further words make a place in the same
#: words a slot.
_ONE_WORD: Final = 0.8
_FEWEST_FILLERS: Final = 2


def _with_evidence(proposed: Proposed, options: AuditOptions, encoder: Encoder) -> pl.DataFrame:
    """Pairs with the columns `evidence`, `differs` and `standing` in the place of `probed`."""
    pairs = proposed.pairs
    above = pl.col("similarity") > pl.lit(options.threshold, pl.Float32)
    listed = (pl.col("similarity") > pl.lit(options.lowest, pl.Float32)) | (pl.col("probed") > 0)
    texts = pairs.filter(listed).select("topic_text", "compared").unique(maintain_order=True)
    decided = {pair: contrast(*pair) for pair in texts.iter_rows()}
    if encoder.name != WordsOnly.name:
        alone = (
            pairs.filter(above & (pl.col("probed") == 0)).select("topic_text", "compared").unique(maintain_order=True)
        )
        undecided = [pair for pair in alone.iter_rows() if not decided[pair]]
        decided |= dict.fromkeys(_of_templates(undecided, proposed, encoder), "template")
    columns = {
        "differs": pl.Series([decided[pair] for pair in texts.iter_rows()], dtype=pl.String),
        "content": pl.Series([len(set(core(text).keys)) for text in texts["topic_text"]], dtype=pl.Int32),
    }
    found = pairs.join(texts.with_columns(**columns), on=texts.columns, how="left", maintain_order="left")
    pairs = found.with_columns(pl.when(listed).then("differs").fill_null(""))
    names = [
        pl.when(by).then(pl.lit(name))
        for name, by in [(EVIDENCE[0], above & ~pl.col("unread"))]
        + [(name, pl.col("probed") == what) for what, name in enumerate(EVIDENCE) if what]
    ]
    pairs = pairs.with_columns(pl.concat_str(names, separator="+", ignore_nulls=True).alias("evidence"))
    return pairs.with_columns(standing=standing_of(options.threshold, pl.col("content"))).drop(
        "probed", "unread", "content"
    )


def _of_templates(pairs: Sequence[tuple[str, str]], proposed: Proposed, encoder: Encoder) -> Iterator[tuple[str, str]]:
    """Pairs that differ in one rare word, to the encoder another one, in whose place near texts have others again.

    "Colic in goats" is not "colic in sheep" where there is "colic in llamas", too.
    """
    places = {pair: place for pair in pairs if (place := changed_place(*pair)) and max(map(len, place)) == 1}
    changed = {pair: (one[0].form, other[0].form) for pair, (one, other) in places.items()}
    similar = WordVectors(encoder, {word for pair in changed.values() for word in pair})
    near = {topic: list[str]() for topic, _ in changed}
    for topic, text in proposed.pairs.select("topic_text", "compared").unique(maintain_order=True).iter_rows():
        near.get(topic, []).append(text)
    for (topic, text), (one, other) in changed.items():
        holders = max(proposed.held.get(word, 0) for word in (one, other))
        if holders > proposed.rare or similar([one], [other])[0, 0] >= _ONE_WORD:
            continue
        fillers = {
            key(place[1][0].form)
            for again in near[topic]
            if (place := changed_place(topic, again)) and max(map(len, place)) == 1 and place[0][0].form == one
        }
        if len(fillers - {key(other)}) >= _FEWEST_FILLERS:
            yield topic, text


def _recall(proposed: Proposed, texts: Sequence[TopicText], options: AuditOptions) -> PrefilterRecall | None:
    parts = [
        (found.filtered, found.pairs.filter(pl.col("similarity") > pl.lit(options.threshold, pl.Float32)))
        for found in proposed.found.values()
        if found.filtered is not None
    ]
    if not parts:
        return None
    recall = estimate_recall(parts)
    return PrefilterRecall(
        cuts={**DEFAULT_CUTS, **options.prefilter_cut},
        passed=sum(filtered.passed_count for filtered, _ in parts),
        sampled=recall.sampled,
        true_pairs=recall.true_pairs,
        missed_in_sample=recall.missed_in_sample,
        recall=recall.recall,
        low=recall.low,
        high=recall.high,
        unmodelled_low=recall.unmodelled_low,
        by=list(_recall_by_form(parts, [text.field for text in texts])),
    )


def _recall_by_form(parts: Sequence[tuple[Filtered, pl.DataFrame]], fields: Sequence[str]) -> Iterator[FormRecall]:
    """The recall by field, questions and keyword queries apart."""
    for field in dict.fromkeys(fields):
        own = pl.col("topic_no").is_in([number for number, name in enumerate(fields) if name == field])
        some = [
            (filtered.with_sample(filtered.sample_pairs.filter(own)), pairs.filter(own)) for filtered, pairs in parts
        ]
        for form, question in (("keywords", False), ("question", True)):
            found = estimate_recall(some, question=question)
            yield FormRecall(
                field=field,
                form=form,
                true_pairs=found.true_pairs,
                missed_in_sample=found.missed_in_sample,
                recall=found.recall if found.true_pairs else None,
                low=found.low,
                high=found.high,
            )


def with_types(pairs: pl.DataFrame, tests: Sequence[TopicSet], encoder: Encoder) -> pl.DataFrame:
    """Adds the columns `type` and `title_type` to the candidates, by the texts as they were compared."""
    titles = {(test.name, topic.topic_id): topic.title for test in tests for topic in test.topics}
    of_title = [titles[key] for key in pairs.select("test", "topic_id").iter_rows()]
    against_field = list(zip(pairs["topic_text"], pairs["compared"], strict=True))
    against_title = list(zip(of_title, pairs["compared"], strict=True))
    every = sorted({text for pair in (*against_field, *against_title) for text in pair})
    similarity = dict(zip(against_field, pairs["similarity"], strict=True))
    further = [pair for pair in dict.fromkeys(against_title) if pair not in similarity]
    differs = dict(zip(against_field, pairs["differs"], strict=True))
    if encoder.name == WordsOnly.name:
        distinct, values, words = [*similarity, *further], None, same_stems
    else:
        similarity |= _sentence_similarities(further, encoder)
        distinct, values = list(similarity), list(similarity.values())
        words = WordVectors(encoder, (word for text in every for word in content_words(text)))
    types = dict(zip(distinct, propose_types(distinct, words, values, differs), strict=True))
    return pairs.with_columns(
        pl.Series(name, [types[pair] for pair in wanted], dtype=pl.String)
        for name, wanted in (("type", against_field), ("title_type", against_title))
    )


def _sentence_similarities(pairs: Sequence[tuple[str, str]], encoder: Encoder) -> dict[tuple[str, str], float]:
    texts = sorted({text for pair in pairs for text in pair})
    row = {text: place for place, text in enumerate(texts)}
    vectors = encoder.encode(texts)
    left, right = ([row[pair[side]] for pair in pairs] for side in (0, 1))
    cosines = np.einsum("ij,ij->i", vectors[left], vectors[right])
    return dict(zip(pairs, np.round(cosines.astype(np.float64), 6).tolist(), strict=True))


PACKAGES: Final = (
    "scipy",
    "tokenizers",
    "onnx",
    "onnxruntime",
    "openvino",
    "nncf",
    "torch",
    "sentence-transformers",
    "ir-datasets",
    "PyStemmer",
)
#: What proposes a pair that only a judgment names.
_JUDGED: Final = len(EVIDENCE)
#: Fields of `AuditOptions` that change where pairs are found, or what is made of them, but not which are found.
_NOT_OF_THE_PAIRS: Final = ("engine", "workers", "topic", "baseline")


@command
def audit(
    train: Annotated[Sequence[str], Flag(metavar="SRC", reads=list[str])],
    test: Annotated[Sequence[str], Flag(metavar="SRC", reads=list[str])],
    *,
    options: AuditOptions = AuditOptions(),
    documents: DocumentOptions = DocumentOptions(),
    encoding: Encoding = Encoding(),
    judged: Labels = Labels(),
    redaction: Redaction = Redaction(),
    out: Out = None,
    progress: Progress | None = None,
) -> AuditResult:
    """Finds the queries, documents and answers of test sets in training data.

    Every training query is compared with every text of every topic; pairs whose cosine similarity is above the
    threshold are leaks, and so are pairs with the same content words; short and otherwise uncertain pairs are in doubt.
    Where training data hold documents, queries and documents of the test set are looked for in these, by kinds of leak.
    Each test set gets a verdict: CONTAMINATED (a leak), UNKNOWN (a doubt, or something unseen) or CLEAN. A run that was
    killed continues when it is started again.

    Args:
        train: a log of queries, or training examples (query, positives, negatives): a path, irds:ID or
            hf:ORG/NAME[@REVISION]; repeat for several. A run with an ir_metadata header stands for the training data of
            ir_datasets that it names.
        test: test topics, a path, irds:ID or hf:ORG/NAME; a BEIR folder brings its documents and judgments along.
            Repeat for several test sets, each with a verdict of its own.
        options: what is compared, and what counts as a candidate.
        documents: documents, where training data or test sets hold them.
        encoding: what turns texts into vectors.
        judged: judged pairs; the verdict then rests on confirmed leaks.
        redaction: whether texts are written.
        out: a folder for pairs, report, summary and manifest.
        progress: receives progress updates.

    Returns:
        The pairs and the verdicts.

    Raises:
        InputError: a source, topic file or option is at fault.

    Examples:

        truerank leakage audit --train queries.tsv.gz --test topics.trec --out audit/

        truerank leakage audit --train irds:msmarco-document/train --train irds:msmarco-document/orcas
        --test irds:disks45/nocr/trec-robust-2004 --out audit/

        truerank leakage audit --train log.parquet#query --test beir/scifact --mode prefilter --out audit/

        truerank leakage audit --train triples.jsonl --test scifact/ --out audit/

    Source: Fröbe et al., How Train–Test Leakage Affects Zero-shot Retrieval (SPIRE 2022), section 3; Brown et al.,
        Language Models are Few-Shot Learners (NeurIPS 2020), appendix C, for 13-grams.
    """
    prepared = PreparedAudit.of(train, test, (options, documents), encoding, judged=judged, redaction=redaction)
    if out is None:
        with TemporaryDirectory() as temporary:
            return prepared.result(Path(temporary), progress)
    with started("leakage audit", (), prepared.options(), out, packages=PACKAGES) as job:
        job.keeps_others = True
        folder = job.unfinished(prepared.identity())
        job.log("start", work=folder.name, engine=options.engine)
        result = replace(prepared.result(folder, progress, partial(_log_choice, job)), folder=job.folder)
        job.read(*prepared.inputs(result))
        if progress is not None:
            progress.start("report")
        if passes := result.summary.get("first_pass"):
            job.options |= {"first_pass": {name: check["way"] for name, check in passes.items()}}
        publish(result, job)
        job.log("end")
    return replace(result, left_over=tuple(_left_over(job)))


def verdicts(
    train: Sequence[str], test: Sequence[str], *, options: AuditOptions, encoding: Encoding, judged: Labels,
    progress: Progress, documents: DocumentOptions = DocumentOptions(),
) -> AuditResult:  # fmt: skip
    """The audit as far as its verdicts and the topics that leak."""
    with TemporaryDirectory() as temporary:
        prepared = PreparedAudit.of(train, test, (options, documents), encoding, judged=judged)
        return prepared.result(Path(temporary), progress, brief=True)


@dataclass(frozen=True)
class _JudgedProbe:
    """Also names the pairs that were judged leaks, which are among the nearest of an encoder."""

    inner: PairProbe | None
    leaks: Mapping[str, Sequence[int]]

    @classmethod
    def of(cls, inner: PairProbe | None, judgments: Judgments, texts: Sequence[TopicText]) -> _JudgedProbe:
        """The leaks of a topic stand beside its first text."""
        first: dict[str, dict[str, int]] = {}
        for number, text in enumerate(texts):
            first.setdefault(text.topic_id, {}).setdefault(text.test, number)
        leaks: dict[str, list[int]] = {}
        for pair in judgments.pairs:
            if pair.leak and pair.text:
                leaks.setdefault(normalise(pair.text), []).extend(first.get(pair.topic_id, {}).values())
        return cls(inner, leaks)

    def __call__(self, texts: Sequence[str]) -> list[tuple[int, int, int]]:
        """As the probe inside; what a judgment alone names comes with a number that is no evidence."""
        found = [] if self.inner is None else self.inner(texts)
        known = {(place, number) for place, number, _ in found}
        judged = ((place, number) for place, text in enumerate(texts) for number in self.leaks.get(text, ()))
        return found + [(*pair, _JUDGED) for pair in judged if pair not in known]


@dataclass(frozen=True)
class PreparedAudit:
    """An audit before it begins: everything is open, and no option is at fault; `tests` come with what the user named
    them by.
    """

    sources: Sequence[TrainingSource]
    tests: Sequence[tuple[str, TopicSet]]
    texts: Sequence[TopicText]
    models: Models
    judgments: Judgments | None
    given: tuple[AuditOptions, Encoding, Labels, Redaction]
    documents: tuple[DocumentOptions, Sequence[TestTexts]]

    @classmethod
    def of(
        cls,
        train: Sequence[str],
        test: Sequence[str],
        asked: tuple[AuditOptions, DocumentOptions],
        encoding: Encoding,
        *,
        judged: Labels = Labels(),
        redaction: Redaction = Redaction(),
    ) -> PreparedAudit:
        """Opens everything, also what is needed at the end only: a fault in it should not cost a scan."""
        train, test = ([one] if isinstance(one, str) else list(one) for one in (train, test))
        options, documents = asked
        sources = _sources(train, options, documents)
        some = cache(lambda: list(first_texts(sources)))
        tests = [bare(one, some) for one in read_tests(test, options)]
        texts = topic_texts(tests, options.fields)
        if not texts:
            raise InputError(
                "no topic has a text in these fields", "choose others with --fields", where=", ".join(test)
            )
        if redaction.redact:
            sealed(b"", open_key(redaction.redact_key))
            if mixed := [source.name for source in sources if source.roles != {"query"}]:
                fault = f"{mixed[0]} holds documents, and only queries are redacted"
                raise OptionError("redact", fault, "leave it out, or name the column of the queries (file#column)")
        if options.baseline is not None:
            load_audit(options.baseline)
        judgments = opened_labels(judged)
        named = list(zip(test, tests, strict=True))
        if len(tests) > 1 and (documents.docs or documents.qrels):
            option, fault = "docs" if documents.docs else "qrels", f"for {len(tests)} test sets"
            raise OptionError(option, fault, "give BEIR folders, or audit one test set after the other")
        whole = [TestTexts.of(spec, one, texts, documents, strict=options.strict) for spec, one in named]
        given = (options, encoding, judged, redaction)
        return cls(sources, named, texts, Models.of(encoding), judgments, given, (documents, whole))

    @property
    def _holds_documents(self) -> bool:
        return any(source.roles != {"query"} for source in self.sources)

    def options(self) -> dict[str, Any]:
        """What the manifest says of the options: all that the result depends on."""
        options, encoding, judged, redaction = self.given
        chosen = {name: value for name, value in asdict(options).items() if name not in _NOT_OF_THE_PAIRS}
        encoder = {name: value for name, value in asdict(encoding).items() if name != "cache"}
        voices = {"annotators": judged.annotators, "votes": judged.votes, **plain(self.documents[0])}
        return {**chosen, **encoder, **(voices if self.judgments else {}), "redact": redaction.redact}

    def identity(self) -> str:
        """A hash of all that the unfinished work depends on; labels and baseline come after it, redaction has its key
        in it.
        """
        options, encoding, _, redaction = self.given
        chosen = {name: value for name, value in asdict(options).items() if name not in _NOT_OF_THE_PAIRS}
        return digest(
            {
                "version": __version__,
                "options": {**chosen, "device": encoding.device, "backend": encoding.backend},
                "train": [(source.name, source.fingerprint) for source in self.sources],
                "documents": [plain(self.documents[0]), [one.fingerprint() for one in self.documents[1]]],
                "topic_texts": [list(text) for text in self.texts],
                "encoder": (self.models.encoder.name, self.models.encoder.fingerprint, encoding.precision),
                "packages": installed_versions(*PACKAGES),
                **({"redacted": key_mark(hash_text("", open_key(redaction.redact_key)))} if redaction.redact else {}),
            }
        )

    def inputs(self, result: AuditResult) -> tuple[Input, ...]:
        """What was read, with the numbers of queries and topics."""
        options, encoding, judged, _ = self.given
        counts, encoder = result.summary["sources"], self.models.encoder
        train = []
        for source in self.sources:
            name = source.name
            # Its bytes were hashed for the fingerprint already.
            kind, _, rest = source.fingerprint.partition(":")
            shown = pinned(source.spec, source.fingerprint) if kind == "hf" else shown_source(source.spec)
            hashed = rest.partition(";")[0] if kind == "sha256" else None
            train.append(Input(name, shown, "train", counts[name]["read"], hashed))
        tests = [input_of("test", spec, test.name, len(test.topics)) for spec, test in self.tests]
        variants = [input_of("variants", spec, name) for name, spec in options.variants.items()]
        used = Input(encoder.name, encoding.encoder, "encoder", None, encoder.fingerprint)
        labels = () if self.judgments is None else label_inputs(judged)
        asked, whole = self.documents
        roles = [(one.topics.name, role, spec) for one in whole for role, spec in one.given.items() if role != "test"]
        texts = {"train_queries": asked.train_queries, "train_docs": asked.train_docs}
        documents = [input_of(role, spec, name) for name, role, spec in roles if self._holds_documents]
        documents += [input_of(role, str(spec)) for role, spec in texts.items() if spec]
        read = (*train, *tests, *variants, used, *documents, *labels)
        if options.baseline is None:
            return read
        folder = Path(options.baseline)
        pairs = hash_file(folder / "candidates.parquet")
        return (*read, Input(folder.name, options.baseline, "baseline", None, pairs))

    def result(
        self,
        folder: Path,
        progress: Progress | None,
        chosen: Callable[[ChosenWay], None] = lambda choice: None,
        *,
        brief: bool = False,
    ) -> AuditResult:
        """The audit; a `brief` one is without types and, where every test set leaks, without planted rewordings."""
        options, _, _, redaction = self.given
        progress = progress or Quiet()
        held = held_words(self.sources)
        plan = self.models.plan(self.texts, options, len(self.sources), folder, chosen, held=held)
        scanned = plan
        if self.judgments is not None and self.models.encoder.name == WordsOnly.name:
            scanned = replace(plan, probe=_JudgedProbe.of(plan.probe, self.judgments, self.texts))
        key = open_key(redaction.redact_key) if redaction.redact else b""
        proposed = propose(
            self.sources, self.texts, scanned, Job(folder, open_engine(options.engine), progress, key), held
        )
        read: list[bool] = np.any(plan.topic_vectors(), axis=1).tolist()
        summarised = partial(
            summarise,
            _with_columns(proposed, self.sources),
            [test for _, test in self.tests],
            self.models.encoder,
            judgments=self.judgments,
            unread={(text.test, text.topic_id) for text, seen in zip(self.texts, read, strict=True) if not seen},
            options=options,
            typed=not brief,
        )
        documents, tests = self.documents
        # Killed work continues with the same texts.
        work = Job(folder, open_engine(options.engine, options.workers), progress)
        whole = partial(with_documents, tests=tests, training=self.sources, options=documents, job=work)
        if brief:
            result = summarised(checked={})
            if all(test["leaked_topics"] for test in result.summary["tests"].values()):
                return whole(result)
        progress.start("sensitivity check")
        checked = self._checked(folder, plan.after(proposed.found.values()))
        progress.start("reformulation types")
        result = whole(summarised(checked=checked))
        if redaction.redact:
            result = redact(result, key)
        if options.baseline is not None:
            result = since_baseline(result, options.baseline).apply(result)
        calibration = None
        if self.judgments is not None and any(pair.similarity is not None for pair in self.judgments.pairs):
            calibration = calibrate(self.judgments, encoder=options.calibrated_for)
        return replace(result, calibration=calibration, topics=options.topic)

    def _checked(self, folder: Path, plan: SearchPlan) -> dict[str, Sensitivity]:
        """The sensitivity check, or what an interrupted run has of it."""
        path = folder / "sensitivity.json"
        known: dict[str, Sensitivity] | None = kept_json(path)
        if known is not None:
            return known
        passes = None
        if plan.prefilter is not None:
            passes = partial(would_pass, DistinctQueries(self.sources[0]), plan.prefilter)
        options = self.given[0]
        # What other machines encode with may not be here, and the figures do not depend on it.
        screens = None if options.engine.startswith("ray:") else plan.choose_screen
        exact = self.models.encoder
        plan = replace(plan, open_exact=lambda: exact, choose_screen=screens, floor=options.threshold)
        found = check(self.texts, plan, passes)
        keep_json(path, found)
        return found


def _sources(specs: Sequence[str], options: AuditOptions, documents: DocumentOptions) -> list[TrainingSource]:
    if not specs:
        raise OptionError("train", "no training source", "name at least one")
    parsed = [parse(part) for spec in specs for part in trained_on(spec)]
    named = zip(unique_names(parsed), parsed, strict=True)
    return [TrainingSource.of(name, spec, documents, strict=options.strict) for name, spec in named]


def read_tests(specs: Sequence[str], options: AuditOptions) -> list[TopicSet]:
    """The test sets, under names by which they can be told apart, with their variants."""
    if not specs:
        raise OptionError("test", "no test set", "name at least one")
    names = unique_names([parse(spec) for spec in specs])
    unknown = [name for name in options.variants if name not in names]
    if unknown:
        fault = f"variants for '{unknown[0]}', which is not a test set"
        raise OptionError("variants", fault, f"use one of {', '.join(names)}")
    tests = []
    for name, spec in zip(names, specs, strict=True):
        topics = replace(read_topics(spec, strict=options.strict), name=name)
        if name in options.variants:
            topics = with_variants(topics, read_variants(options.variants[name]))
        tests.append(topics)
    return tests


def _with_columns(proposed: Proposed, sources: Sequence[TrainingSource]) -> Proposed:
    """Adds to the counts of each source its fingerprint, which of its text columns was read and which were not."""
    read: dict[str, set[str]] = {}
    for source in sources:
        read.setdefault(source.spec.location, set()).update(filter(None, [source.columns.query]))
    counts = dict(proposed.counts)
    for source in sources:
        counts[source.name] = {**counts[source.name], "fingerprint": source.fingerprint}
        if isinstance(source.source, ExampleSource):
            counts[source.name] = {**counts[source.name], "roles": str(source.source.roles)}
        column, others = source.columns
        if others:
            left_out = [other for other in others if other not in read[source.spec.location]]
            counts[source.name] = {**counts[source.name], "column": column, "not_compared": left_out}
    return replace(proposed, counts=counts)


def _log_choice(job: Run, choice: ChosenWay) -> None:
    """Figures of this machine go to the log, the only file that differs from run to run."""
    measured = {"ways": choice.json()["ways"]} if choice.measured else {}
    job.log("first pass", processor=processor_name(), taken=asdict(choice.way), **measured)


def _left_over(job: Run) -> list[str]:
    """Unfinished work of audits with other inputs or options in the same folder, in sentences."""
    found = []
    for folder, size in job.work_folders():
        job.log("unfinished work of another audit", work=folder.name, bytes=size)
        remedy = "run that audit again to continue it, or remove the folder"
        found.append(f"{folder}: unfinished work of another audit ({size / 1e6:.1f} MB); {remedy}")
    return found
