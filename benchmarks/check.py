"""What `truerank check` says of claims whose truth is known: neighbours, planted faults, claims without a fault, cost.

    python benchmarks/check.py plants --runs FOLDER [--collection cacm] [--count 20] [--kinds leakage,versions]
    python benchmarks/check.py clean --runs FOLDER [--collection cacm] [--count 20]
    python benchmarks/check.py pairs --runs FOLDER [--collection vaswani]
    python benchmarks/check.py table --runs FOLDER [--collection cacm]
    python benchmarks/check.py cost --runs FOLDER [--collection vaswani]

Eight runs of `scripts/make_runs.py` are kept in FOLDER. The judgments of both collections name relevant documents
only; for the truth they are taken as complete: what the runs return among their first twenty and nobody named is not
relevant.
A plant changes the data until a claim that is true is no longer shown (hidden), or one that is not true is (made). The
page sees it where the question of that kind says so: falls, could turn or not shown for a made claim, appears or could
turn for a hidden one. Each check is a line of FOLDER/COLLECTION.jsonl; called again, the benchmark goes on where it was
stopped. While it runs it says only that a check was made; `table` shows what the checks say.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import itertools
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
import make_runs
import truerank
from shared_data import log_path, require_shared, table
from truerank.claims.claim import Claim, chosen_claim
from truerank.claims.planning import planned as plan_of
from truerank.measures.intervals import proportion
from truerank.options import Scoring
from truerank.sources import open_queries, read_run_frame

NAMES = (
    "fused-sum", "expand-rm3", "okapi-bm25", "likely-500", "dense-whole", "latent-200", "words-knrm", "odd-overlap",
)  # fmt: skip
POOL, DEEPEST = 20, 100
KEYS = ["topic_id", "doc_id"]
STEPS = (0.2, 0.35, 0.5, 0.65, 0.8, 1.0)
SEED = 21


@dataclass(frozen=True)
class Data:
    """What a check reads: judgments and runs as frames, texts by id."""

    qrels: pl.DataFrame
    runs: Mapping[str, pl.DataFrame]
    topics: Mapping[str, str]
    docs: Mapping[str, str]
    train: tuple[str, ...] = ()
    previous: Mapping[str, str] | None = None
    models: Mapping[str, pl.DataFrame] = field(default_factory=dict)


def made_runs(folder: Path, name: str) -> Data:
    """The collection with its eight runs, which are made at the first call."""
    collection, judged = make_runs.read(name, make_runs.SHARED)
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    if not all((place / f"{run}.run").is_file() for run in NAMES):
        with tempfile.TemporaryDirectory() as work:
            ranker = make_runs.Ranker(collection, Path(work))
            ranker.lexical(make_runs.BM25())
            for run in make_runs.runs(ranker):
                if run.name in NAMES:
                    lines = (
                        f"{topic} Q0 {key} {rank} {score:.6f} {run.name}\n"
                        for topic, scored in run.rank().items()
                        for rank, (key, score) in enumerate(scored.items(), start=1)
                    )
                    (place / f"{run.name}.run").write_text("".join(lines))
    # No measure of the check looks further.
    runs = {run: read_run_frame(place / f"{run}.run").drop("tag").filter(pl.col("rank") <= DEEPEST) for run in NAMES}
    topics = set(judged["topic_id"])
    pool = pl.concat([run.filter(pl.col("rank") <= POOL).select(KEYS) for run in runs.values()]).unique(
        maintain_order=True
    )
    zeros = pool.filter(pl.col("topic_id").is_in(list(topics))).join(judged, on=KEYS, how="anti")
    qrels = pl.concat([judged, zeros.with_columns(pl.lit(0, pl.Int32).alias("relevance"))])
    return Data(qrels, runs, collection.topics, collection.documents, background())


def background() -> tuple[str, ...]:
    """Training queries that have nothing to do with the topics."""
    found: list[str] = []
    for block in open_queries(str(log_path("nq-dev"))).batches():
        found += block.texts
        if len(found) >= 400:
            break
    return tuple(found[:400])


def claim_of(data: Data, system: str, baseline: str) -> Claim:
    """The claim, corrected for one comparison as the checks here are."""
    pair = {name: data.runs[name] for name in (system, baseline)}
    return chosen_claim(
        pair, data.qrels, "nDCG@10", Scoring(), (system, baseline), comparisons=1, confidence=0.95
    )  # fmt: skip


#: Questions that need an audit; the others are always asked.
AUDITED = frozenset(("leakage", "collection", "versions", "models"))


class Checks:
    """Checks of one collection, whose answers are lines of a file; what many of them share is made once.

    Args:
        folder: of the runs; vectors and an index are kept below it.
        name: of the collection.
        data: without a fault.
    """

    def __init__(self, folder: Path, name: str, data: Data) -> None:
        self.file = folder / f"{name}.jsonl"
        self.rows = read_rows(self.file)
        self._place = folder / name
        self._before = documents(self._place / "docs.trec", data.docs)
        self._docs = data.docs
        _share_work(self._before, self._place / "index")

    def made(self, key: str, data: Data, claim: tuple[str, str], parts: set[str], **facts: Any) -> None:
        """Checks one claim and keeps what was said, unless it was checked before."""
        if key in self.rows:
            return
        started = time.process_time()
        result = self._checked(data, claim, parts)
        row = {
            "key": key, "system": claim[0], "baseline": claim[1], **facts, "word": result.conclusion.word,
            "effects": {one.question: one.effect for one in result.answers},
            "exceptions": result.conclusion.exceptions, "difference": result.base.figures(),
            "seconds": round(time.process_time() - started, 2),
        }  # fmt: skip
        with self.file.open("a") as stream:
            stream.write(json.dumps(row) + "\n")
        self.rows[key] = row
        print(f"{key}: {row['seconds']} s", flush=True)

    def _checked(self, data: Data, claim: tuple[str, str], parts: set[str]) -> Any:
        """A check of one claim, given what these questions need, and asked them alone of those that need an audit."""
        with tempfile.TemporaryDirectory() as work, asking(parts):
            place = Path(work)
            (place / "topics.tsv").write_text(lines_of(data.topics))
            given: dict[str, Any] = {"test": str(place / "topics.tsv")}
            if "leakage" in parts:
                (place / "train.tsv").write_text(lines_of({f"q{n}": text for n, text in enumerate(data.train)}))
                given["train"] = (str(place / "train.tsv"),)
            if parts & {"collection", "versions"}:
                same = data.docs is self._docs
                given["docs"] = self._before if same else documents(place / "docs.trec", data.docs)
            if "versions" in parts:
                given["previous"] = self._before
            if "models" in parts:
                given["model_judgments"] = dict(data.models)
            # The audit of the collection draws random changes for its own page, which no answer rests on.
            resamples = 1000 if "leakage" in parts else 100
            return truerank.check(
                qrels=data.qrels, run=dict(data.runs), system=claim[0], baseline=claim[1], comparisons=1,
                encoder="packaged", backend="onnx", cache=str(self._place / "vectors"), resamples=resamples, **given,
            )  # fmt: skip


@contextlib.contextmanager
def asking(parts: set[str]) -> Iterator[None]:
    """Within it a check asks, of the questions that need an audit, these alone."""

    def plan(*given: Any) -> tuple[Any, ...]:
        asked = AUDITED - parts
        return tuple(replace(one, answerable=False) if one.name in asked else one for one in plan_of(*given))

    with mock.patch("truerank.claims.checking.planned", plan):
        yield


def _share_work(before: str, place: Path) -> None:
    """The index of the documents without a fault is built once, and a text is looked at once for signs of a notice."""
    texts = importlib.import_module("truerank.audits.collection.texts")
    texts.notice_of = functools.cache(texts.notice_of)  # type: ignore[attr-defined]
    scanning = sys.modules.get("truerank.audits.transfer.scanning.scan") or importlib.import_module(
        "truerank.audits.transfer.scanning.scan"
    )
    build = scanning.build_index

    def once(source: str, folder: Path, **options: Any) -> None:
        if source != before:
            raise ValueError(source)
        if not place.is_dir():
            build(source, place, **options)
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.symlink_to(place.resolve())

    scanning.build_index = once


def read_rows(file: Path) -> dict[str, dict[str, Any]]:
    """What was checked, by key."""
    lines = file.read_text().splitlines() if file.is_file() else []
    return {row["key"]: row for row in map(json.loads, lines)}


def lines_of(texts: Mapping[str, str]) -> str:
    """Texts by id as lines of TSV."""
    return "".join(f"{key}\t{flat(text)}\n" for key, text in texts.items())


def flat(text: str) -> str:
    """A text on one line."""
    return " ".join(text.split())


def documents(path: Path, docs: Mapping[str, str]) -> str:
    """Writes documents in the format of TREC."""
    lines = (f"<DOC>\n<DOCNO>{key}</DOCNO>\n{flat(text).replace('<', ' ')}\n</DOC>\n" for key, text in docs.items())
    path.write_text("".join(lines))
    return str(path)


# -- plants: each takes the data, the run that gains by it, the other one, a strength and a generator ------------------


def lifted(data: Data, run: str, pairs: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The runs, one of which has these documents first."""
    frame = data.runs[run]
    top = frame.group_by("topic_id").agg(pl.col("score").max().alias("top"))
    ahead = pairs.select(KEYS).unique(maintain_order=True).join(top, on="topic_id", how="inner", maintain_order="left")
    places = pl.int_range(pl.len()).over("topic_id")
    ahead = ahead.with_columns((pl.col("top") + 100 - places).alias("score"), pl.lit(0, pl.Int64).alias("rank"))
    kept = frame.join(ahead, on=KEYS, how="anti")
    both = pl.concat([ahead.select(frame.columns), kept])
    ranks = pl.col("score").rank("ordinal", descending=True).over("topic_id").cast(pl.Int64)
    return {**data.runs, run: both.with_columns(ranks.alias("rank"))}


def relevant(data: Data, topics: list[str], each: int) -> pl.DataFrame:
    """Some relevant documents of topics."""
    found = data.qrels.filter((pl.col("relevance") > 0) & pl.col("topic_id").is_in(topics))
    return found.group_by("topic_id", maintain_order=True).head(each)


def some_topics(data: Data, share: float, draw: random.Random) -> list[str]:
    """A share of the judged topics."""
    topics = sorted(set(data.qrels["topic_id"]))
    return sorted(draw.sample(topics, max(1, round(share * len(topics)))))


def leak(data: Data, gains: str, other: str, share: float, draw: random.Random) -> Data:
    """Topics stand in the training data, and a run has learnt their documents."""
    topics = some_topics(data, 0.6 * share, draw)
    train = [*data.train, *(data.topics[key] for key in topics)]
    draw.shuffle(train)
    return replace(data, runs=lifted(data, gains, relevant(data, topics, 5)), train=tuple(train))


def ghosts(data: Data, gains: str, other: str, share: float, draw: random.Random) -> Data:
    """A run returns documents that do not exist, and they are judged relevant."""
    topics = some_topics(data, share, draw)
    pairs = [(topic, f"ghost-{topic}-{n}") for topic in topics for n in range(4)]
    frame = pl.DataFrame(pairs, schema=KEYS, orient="row")
    judged = frame.with_columns(pl.lit(1, pl.Int32).alias("relevance"))
    return replace(data, runs=lifted(data, gains, frame), qrels=pl.concat([data.qrels, judged]))


def copies(data: Data, gains: str, other: str, share: float, draw: random.Random) -> Data:
    """Relevant documents stand there several times, judged relevant each time, and a run returns all of them."""
    topics = some_topics(data, share, draw)
    docs, rows = dict(data.docs), []
    for topic, key, _ in relevant(data, topics, 1).iter_rows():
        if key in docs:
            for number in range(4):
                docs[f"{key}-copy{number}"] = docs[key]
                rows.append((topic, f"{key}-copy{number}"))
    frame = pl.DataFrame(rows, schema=KEYS, orient="row")
    judged = frame.with_columns(pl.lit(1, pl.Int32).alias("relevance"))
    return replace(data, runs=lifted(data, gains, frame), qrels=pl.concat([data.qrels, judged]), docs=docs)


def unjudged(data: Data, gains: str, other: str, share: float, draw: random.Random) -> Data:
    """Judgments of the other run's documents are lost."""
    own = data.runs[other].filter(pl.col("rank") <= POOL).select(KEYS)
    theirs = data.runs[gains].filter(pl.col("rank") <= POOL).select(KEYS)
    alone = own.join(theirs, on=KEYS, how="anti").join(data.qrels, on=KEYS, how="semi").sort(KEYS)
    gone = alone.sample(fraction=share, seed=draw.randrange(1 << 30), shuffle=True)
    return replace(data, qrels=data.qrels.join(gone, on=KEYS, how="anti"))


def unpooled(data: Data, gains: str, other: str, share: float, draw: random.Random) -> Data:
    """The other run was not pooled, nor were runs that found the same documents."""
    kept = [name for name in data.runs if name not in (other, gains)]
    draw.shuffle(kept)
    pooled = [gains, *kept[: max(1, round((1 - share) * len(kept)))]]
    pool = pl.concat([data.runs[name].filter(pl.col("rank") <= POOL).select(KEYS) for name in pooled]).unique()
    return replace(data, qrels=data.qrels.join(pool, on=KEYS, how="semi"))


def changed(data: Data, gains: str, other: str, share: float, draw: random.Random) -> Data:
    """The other run's relevant documents are gone or emptied in the new version; the judgments are of the old one."""
    first = data.runs[other].filter(pl.col("rank") <= 10).select(KEYS)
    theirs = data.runs[gains].filter(pl.col("rank") <= 10).select(KEYS)
    alone = first.join(theirs, on=KEYS, how="anti").join(
        data.qrels.filter(pl.col("relevance") > 0), on=KEYS, how="semi"
    )
    keys = sorted(set(alone["doc_id"]) & set(data.docs))
    chosen = draw.sample(keys, round(share * len(keys)))
    docs = dict(data.docs)
    for place, key in enumerate(chosen):
        if place % 2:
            del docs[key]
        else:
            docs[key] = "Page not found. The page was moved or does not exist."
    return replace(data, docs=docs, previous=data.docs)


def biased(data: Data, gains: str, other: str, share: float, draw: random.Random) -> Data:
    """A model calls relevant what one run ranks first."""
    first = data.runs[gains].filter(pl.col("rank") <= 5).select(*KEYS, pl.lit(True).alias("first"))
    both = data.qrels.join(first, on=KEYS, how="left", maintain_order="left")
    raised = pl.Series([draw.random() < share for _ in range(len(both))])
    grade = pl.when(pl.col("first").fill_null(False) & raised).then(1).otherwise(pl.col("relevance"))
    return replace(data, models={"model": both.with_columns(grade.cast(pl.Int32).alias("relevance")).drop("first")})


def missing(data: Data, gains: str, other: str, share: float, draw: random.Random) -> Data:
    """The other run lacks topics on which it does well."""
    claim = claim_of(data, other, gains)
    better = claim.differences(claim.evaluation)
    order = sorted(range(len(better)), key=lambda at: -better[at])
    gone = [claim.evaluation.topics[at] for at in order[: round(0.4 * share * len(order))]]
    return replace(data, runs={**data.runs, other: data.runs[other].filter(~pl.col("topic_id").is_in(gone))})


Plant = Callable[[Data, str, str, float, random.Random], Data]
#: By kind: the plants, the inputs that the check is given, and the questions that see it.
KINDS: dict[str, tuple[tuple[Plant, ...], set[str], tuple[str, ...]]] = {
    "leakage": ((leak,), {"leakage"}, ("leakage",)),
    "collection": ((ghosts, copies), {"collection"}, ("collection",)),
    "unjudged": ((unjudged,), set(), ("unjudged", "pools")),
    "pools": ((unpooled,), set(), ("pools", "unjudged")),
    "models": ((biased,), {"models"}, ("models",)),
    "versions": ((changed,), {"versions"}, ("versions",)),
    "missing topics": ((missing,), set(), ("policies",)),
}
SEEN = {"made": ("falls", "could turn", "not shown"), "hidden": ("appears", "could turn")}


def stands(data: Data, system: str, baseline: str) -> bool:
    """Whether the claim is shown on these data, taken for themselves."""
    return claim_of(data, system, baseline).base.effect == "stands"


def planted(data: Data, kind: str, count: int, way: str, draw: random.Random) -> Iterator[tuple[Data, str, str]]:
    """Data with a fault that makes or hides a claim, the system and the baseline of the claim."""
    pairs = [(one, other) for one in NAMES for other in NAMES if one != other]
    pairs = [pair for pair in pairs if stands(data, *pair) == (way == "hidden")]
    draw.shuffle(pairs)
    yielded = 0
    for system, baseline in pairs * 3:
        if yielded == count:
            return
        gains, other = (system, baseline) if way == "made" else (baseline, system)
        plants = KINDS[kind][0]
        seed = draw.randrange(1 << 30)
        for share in STEPS:
            faulty = plants[yielded % len(plants)](data, gains, other, share, random.Random(seed))
            after = faulty
            if kind == "models":
                after = replace(data, qrels=faulty.models["model"])
            if kind == "versions":
                # The judgments still say the old order: what a claim on the new documents would be is what differs.
                kept = {key for key, text in faulty.docs.items() if text == data.docs[key]}
                after = replace(data, qrels=data.qrels.filter(pl.col("doc_id").is_in(list(kept))))
            if stands(after, system, baseline) == (way == "made"):
                yielded += 1
                yield faulty, system, baseline
                break


def plants(checks: Checks, data: Data, count: int, kinds: list[str]) -> None:
    """Checks claims that a planted fault makes or hides."""
    for kind in kinds:
        for way in ("made", "hidden"):
            draw = random.Random(f"{SEED}{kind}{way}")
            # A change of the documents, or a model, cannot make a claim that people's judgments show: the claim is true
            # as judged, and is not true any longer there.
            turned = kind in ("versions", "models")
            asked = ("hidden" if way == "made" else "made") if turned else way
            keys = [f"{kind}/{way}/{number}" for number in range(count)]
            if all(key in checks.rows for key in keys):
                continue
            # Plants are drawn in their order, those that were checked before too.
            for key, (faulty, *claim) in zip(keys, planted(data, kind, count, asked, draw), strict=False):
                checks.made(key, faulty, tuple(claim), KINDS[kind][1])


def clean(checks: Checks, data: Data, count: int) -> None:
    """Checks claims on data without a plant: true ones, and ones that the data do not show."""
    draw = random.Random(SEED)
    both = {
        name: [(one, other) for one in NAMES for other in NAMES if one != other and stands(data, one, other) == shown]
        for name, shown in (("true", True), ("even", False))
    }
    for pairs in both.values():
        draw.shuffle(pairs)
    noisy = data.qrels.with_columns(
        pl.Series([draw.random() < 0.05 for _ in range(len(data.qrels))]).alias("wrong")
    ).select(*KEYS, pl.when("wrong").then(1 - pl.col("relevance").clip(0, 1)).otherwise("relevance").cast(pl.Int32))
    noisy = noisy.rename({noisy.columns[-1]: "relevance"})
    whole = replace(data, previous=data.docs, models={"model": noisy})
    for name, pairs in both.items():
        for number, pair in enumerate(pairs[:count]):
            checks.made(f"{name}/{number}", whole, pair, set(AUDITED))


def neighbours(checks: Checks, data: Data) -> None:
    """Checks each pair of neighbours in the order of the runs."""
    claim = chosen_claim(data.runs, data.qrels, "nDCG@10", Scoring(), (None, None), comparisons=None, confidence=0.95)
    order = claim.evaluation.sorted(claim.measure).runs
    for number, pair in enumerate(itertools.pairwise(order)):
        checks.made(f"pair/{number}", data, pair, {"leakage", "collection"})


def shown(rows: Mapping[str, dict[str, Any]]) -> None:
    """Prints what the checks say."""
    found = []
    for kind, (_, _, questions) in KINDS.items():
        for way in ("made", "hidden"):
            own = [row for key, row in rows.items() if key.startswith(f"{kind}/{way}/")]
            if own:
                seen = sum(any(row["effects"][one] in SEEN[way] for one in questions) for row in own)
                first = told(_strongest(row, questions, way) for row in own)
                found.append((kind, way, share(seen, len(own)), first, told(row["word"] for row in own)))
    if found:
        print(table(("fault", "claim", "seen (95%)", "what the question says", "conclusions"), found))
    found = []
    for name, way in (("true", "made"), ("even", "hidden")):
        own = [row for key, row in rows.items() if key.startswith(f"{name}/")]
        if own:
            alarms = [[one for one, effect in row["effects"].items() if effect in SEEN[way]] for row in own]
            odd = told(f"{name} {row['effects'][name]}" for row, some in zip(own, alarms, strict=True) for name in some)
            found.append((name, share(sum(map(bool, alarms)), len(own)), odd, told(row["word"] for row in own)))
    if found:
        print(table(("claims without a fault", "false alarms (95%)", "questions that object", "conclusions"), found))
    own = [row for key, row in rows.items() if key.startswith("pair/")]
    if own:
        cells = [
            (f"{row['system']} > {row['baseline']}", row["difference"], row["word"], "; ".join(row["exceptions"]))
            for row in own
        ]
        print(table(("claim", "difference", "conclusion", "except"), cells))
    print(f"{len(rows)} checks, {sum(row['seconds'] for row in rows.values()):.0f} s of processor time")


def _strongest(row: Mapping[str, Any], questions: tuple[str, ...], way: str) -> str:
    """What the first question of a kind says, or the next one where that says nothing of the fault."""
    said = [row["effects"][one] for one in questions]
    return str(next((one for one in said if one in SEEN[way]), said[0]))


def share(part: int, whole: int) -> str:
    """A share with its interval of Clopper and Pearson."""
    ends = proportion(part, whole, method="exact")
    return f"{part} of {whole} ({ends.low:.2f} to {ends.high:.2f})"


def told(words: Any) -> str:
    """Words with how often they came."""
    return ", ".join(f"{word} {number}" for word, number in sorted(Counter(words).items()))


def cost(folder: Path, name: str) -> None:
    """Time and memory of a whole check, beside the sum of the single commands."""
    data = made_runs(folder, name)
    with tempfile.TemporaryDirectory() as work:
        place = Path(work)
        (place / "topics.tsv").write_text("".join(f"{key}\t{flat(text)}\n" for key, text in data.topics.items()))
        (place / "train.tsv").write_text("".join(f"q{n}\t{flat(text)}\n" for n, text in enumerate(data.train)))
        (place / "qrels.txt").write_text("".join(f"{t} 0 {d} {g}\n" for t, d, g in data.qrels.iter_rows()))
        docs = documents(place / "docs.trec", data.docs)
        before = documents(place / "before.trec", data.docs)
        runs = [word for run in NAMES for word in ("--run", str(folder / name / f"{run}.run"))]
        pair = [word for run in NAMES[:2] for word in ("--run", str(folder / name / f"{run}.run"))]
        encoder = ["--encoder", "packaged", "--backend", "onnx"]
        topics, qrels, train = (str(place / file) for file in ("topics.tsv", "qrels.txt", "train.tsv"))
        singles = {
            "compare": ["compare", "--qrels", qrels, *runs, "--baseline", NAMES[2]],
            "leakage audit": ["leakage", "audit", "--train", train, "--test", topics, *encoder],
            "collection audit": ["collection", "audit", "--qrels", qrels, "--docs", docs, "--topics", topics, *pair],
            "judge audit": ["judge", "audit", "--people", qrels, "--model", f"model={qrels}", *runs],
            "transfer scan": ["transfer", "scan", "--version", f"judged={before}", "--version", f"now={docs}",
                              "--qrels", qrels, "--topics", topics, "--model", "bm25", "--match-by", "id"],
        }  # fmt: skip
        whole = ["check", "--test", topics, "--qrels", qrels, *runs, "--baseline", NAMES[2], "--docs", docs,
                 "--previous", before, "--train", train, "--model-judgments", f"model={qrels}", *encoder]  # fmt: skip
        rows = [(title, *measured([*words, "--out", str(place / title)])) for title, words in singles.items()]
        total = sum(row[1] for row in rows), max(row[2] for row in rows)
        rows += [("all of them", *total), ("check", *measured([*whole, "--out", str(place / "check")]))]
        rows.append(("check, again", *measured([*whole, "--out", str(place / "check")])))
        shown = [(title, f"{seconds:.1f}", f"{memory:.0f}") for title, seconds, memory in rows]
        print(table(("command", "processor seconds", "MB"), shown))


def measured(words: list[str]) -> tuple[float, float]:
    """Processor seconds and peak memory in MB of a command."""
    code = (
        "import sys; from truerank.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: sys.stderr.write([line for line in open('/proc/self/status') if 'VmHWM' in line][0])\n"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stderr}")
    memory = next(line for line in reversed(done.stderr.splitlines()) if "VmHWM" in line)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, int(memory.split()[1]) / 1000


def main() -> None:
    """Runs one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("plants", "clean", "pairs", "table", "cost"))
    parser.add_argument("--runs", type=Path, required=True, help="where the runs are kept, and what was checked")
    parser.add_argument("--collection", default="cacm", choices=("vaswani", "cacm"))
    parser.add_argument("--count", type=int, default=20, help="plants of each kind and direction, or true claims")
    parser.add_argument("--kinds", default=",".join(KINDS))
    given = parser.parse_args()
    require_shared()
    if given.part == "cost":
        cost(given.runs, given.collection)
    elif given.part == "table":
        shown(read_rows(given.runs / f"{given.collection}.jsonl"))
    else:
        data = made_runs(given.runs, given.collection)
        checks = Checks(given.runs, given.collection, data)
        if given.part == "pairs":
            neighbours(checks, data)
        elif given.part == "plants":
            plants(checks, data, given.count, given.kinds.split(","))
        else:
            clean(checks, data, given.count)


if __name__ == "__main__":
    main()
