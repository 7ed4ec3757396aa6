"""The gallery: what is known of benchmarks that everybody quotes, from the files themselves.

    python studies/gallery.py [--only NAME …] [--overlaps FOLDER] [--docs FOLDER]

Reads `gallery.toml` and the data folder, and writes docs/gallery: gallery.json, gallery.csv and a picture; and
src/truerank/audits/benchmarks.json, by which commands recognise the benchmarks. `scripts/gallery_pages.py` makes the
pages. With `--only` it prints the figures of these as JSON, and writes nothing. `--overlaps` keeps what the comparison
of topics needs: a further run reads only what is new.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from common import ROOT, SHARED, require_shared
from explain import data as made_run
from truerank import collection
from truerank.audits.benchmarks import fingerprint
from truerank.audits.collection.judgments import read_judgments, usable
from truerank.audits.leaderboard import leaderboard
from truerank.audits.leaderboard.audit import Leaderboard
from truerank.audits.leaderboard.board import ScoreBoard, chosen, read_board
from truerank.audits.leaderboard.comparability import trained_tasks
from truerank.measures import detectable_difference, evaluate
from truerank.measures.conventions import ConventionScorer, convention_range, scored_measure
from truerank.overlaps import OverlapRules, compare, keep
from truerank.overlaps.results import without_parts
from truerank.sources import open_queries, read_run_frame, read_topics
from truerank.text.normalising import normalise
from truerank.work.jobs import Job

SPEC = Path(__file__).with_suffix(".toml")
MEASURE = "nDCG@10"
#: Standard deviations of differences that are assumed where there are no runs.
ASSUMED = (0.15, 0.20, 0.25)
#: Runs that are made where the documents are here, as studies/explain.py makes them.
MADE = {"BM25": "bm25-0.9-0.4", "query likelihood": "ql-50"}
#: What never reads the query, as the audit names it.
_NULL_RANKERS = {"floor": ("the best fixed list", "collection"), "random_order": ("random order", "judged")}
#: Systems of a leaderboard whose neighbours are compared.
FIRST = 50


@dataclass(frozen=True)
class Version:
    """One state of a benchmark: topics and judgments as paths below the data folder, empty where there are none."""

    name: str
    topics: str
    qrels: str


@dataclass(frozen=True)
class Benchmark:
    """A benchmark as `gallery.toml` declares it."""

    page: str
    name: str
    family: str
    source: str
    versions: tuple[Version, ...]
    train: tuple[str, ...] = ()
    docs: str = ""
    runs: Mapping[str, str] = field(default_factory=dict)
    task: str = ""
    other_topics: bool = False
    board: str = ""
    alone: bool = False
    made: bool = False

    @property
    def parts(self) -> str:
        """What was there to look at."""
        first = self.versions[0]
        there = {
            "topics": first.topics,
            "judgments": first.qrels,
            "documents": self.docs,
            "runs": self.runs or self.made,
        }
        return ", ".join(name for name, value in there.items() if value)


def read_spec(path: Path = SPEC) -> tuple[tuple[Benchmark, ...], dict[str, str]]:
    """The benchmarks, and the query logs that their topics are compared with."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    found = []
    for page, own in content["benchmarks"].items():
        about = {**content["families"][own["family"]], "file": page, **own}

        def filled(text: str, names: Mapping[str, Any] = about, page: str = page) -> str:
            return text.format(file=names["file"], page=page)

        topics = about.get("topics", "")
        versions = tuple(
            Version(name, filled(topics[name] if isinstance(topics, dict) else topics), filled(qrels))
            for name, qrels in about["versions"].items()
        )
        found.append(
            Benchmark(
                page, about["name"], about["family"], about["from"], versions,
                tuple(map(filled, about.get("train", ()))), about.get("docs", ""), about.get("runs", {}),
                about.get("task", ""), about.get("other_topics", False),
                about.get("board", ""), about.get("alone", False),
                about.get("made", False),
            )
        )  # fmt: skip
    return tuple(found), content["logs"]


def given(one: Benchmark, version: Version, data: Path) -> dict[str, Any]:
    """What the audit of the collection is given."""
    named = {"topics": version.topics, "qrels": version.qrels, "docs": one.docs}
    parts: dict[str, Any] = {name: str(data / path) for name, path in named.items() if path}
    if one.train:
        parts["train"] = [str(data / path) for path in one.train]
    first = one.versions[0].qrels
    if version.qrels and version.qrels != first and set_of(version.qrels, data) & set_of(first, data):
        parts["previous_qrels"] = str(data / first)
    return parts


def judgments_of(path: Path) -> pl.DataFrame:
    """Judgments as all commands read them: of several for a pair the highest."""
    return usable(read_judgments(str(path)))[0]


def set_of(qrels: str, data: Path) -> set[str]:
    """The topics of judgments."""
    return set(judgments_of(data / qrels)["topic_id"])


def command_of(parts: Mapping[str, Any], data: Path) -> str:
    """The command line that gives the figures of the audit, with paths below the data folder."""
    flags = [
        f"--{name.replace('_', '-')} {Path(path).relative_to(data)}"
        for name, value in parts.items()
        for path in (value if isinstance(value, list) else [value])
    ]
    return f"truerank collection audit {' '.join(flags)}"


def version_facts(one: Benchmark, version: Version, data: Path) -> dict[str, Any]:
    """The figures of one version."""
    parts = given(one, version, data)
    found = collection.audit(**parts)
    facts: dict[str, Any] = {"version": version.name, "command": command_of(parts, data)}
    facts["verdict"] = found.verdicts[0].word
    facts["topics"] = found.read["topics"]["topics"] if "topics" in found.read else None
    facts["documents"] = found.read["docs"]["documents"] if "docs" in found.read else None
    facts |= _judged(judgments_of(data / version.qrels) if version.qrels else None)
    facts["ceilings"] = {row["measure"]: row["mean"] for row in found.facts.get("ceilings", ())}
    floors = {(row["name"], row["of"]): row for row in found.facts.get("floors", ()) if row["measure"] == MEASURE}
    for name, ranker in _NULL_RANKERS.items():
        facts[name] = floors[ranker]["floor"] if ranker in floors else None
    facts["findings"] = [
        {"code": row.kind.code, "kind": row.kind.name, "title": row.kind.title, "severity": row.kind.severity,
         "part": row.kind.part, "count": row.count, "of": row.of}
        for row in found.findings
    ]  # fmt: skip
    counts = facts["judged_topics"] or facts["topics"]
    facts["smallest"] = {f"{sd:.2f}": detectable_difference(counts, sd) for sd in ASSUMED}
    return facts


def _judged(qrels: pl.DataFrame | None) -> dict[str, Any]:
    """Size and grades."""
    if qrels is None:
        names = ("judged_topics", "judgments", "relevant", "grades", "per_topic", "relevant_per_topic")
        return dict.fromkeys(names)
    by_topic = qrels.group_by("topic_id").agg(pl.len().alias("all"), (pl.col("relevance") >= 1).sum().alias("relevant"))
    return {
        "judged_topics": len(by_topic), "judgments": len(qrels), "relevant": int((qrels["relevance"] >= 1).sum()),
        "grades": {str(grade): count for grade, count in sorted(qrels["relevance"].value_counts().iter_rows())},
        "per_topic": _spread(by_topic["all"]), "relevant_per_topic": _spread(by_topic["relevant"]),
    }  # fmt: skip


def _spread(counts: pl.Series) -> dict[str, float]:
    return {"median": float(np.median(counts.to_numpy())), "least": int(counts.to_numpy().min()),
            "most": int(counts.to_numpy().max())}  # fmt: skip


def runs_facts(one: Benchmark, data: Path) -> dict[str, Any] | None:
    """What runs show: how differences vary over topics, and what conventions do to a score."""
    runs = {name: read_run_frame(str(data / path)) for name, path in one.runs.items()}
    qrels = judgments_of(data / one.versions[0].qrels) if runs else pl.DataFrame()
    if one.made:
        with tempfile.TemporaryDirectory() as folder:
            for name, kept in MADE.items():
                qrels, runs[name] = made_run(one.page, Path(folder), kept)
    if not runs:
        return None
    names = [*runs]
    scores = evaluate(qrels, runs, MEASURE)
    values = {name: scores.of(name, MEASURE) for name in names}
    pairs = []
    for at, first in enumerate(names):
        for second in names[at + 1 :]:
            gap = values[first] - values[second]
            sd = float(gap.std(ddof=1))
            pairs.append({"first": first, "second": second, "difference": float(gap.mean()), "sd": sd,
                          "smallest": detectable_difference(len(gap), sd)})  # fmt: skip
    return {
        "measure": MEASURE,
        "made": one.made,
        "scores": {name: float(values[name].mean()) for name in names},
        "pairs": pairs,
        "conventions": _conventions(qrels, names[0], runs[names[0]]),
    }


def _conventions(qrels: pl.DataFrame, name: str, run: pl.DataFrame) -> dict[str, Any]:
    """What each convention that is in use does to the score of a run, and the range over all of them together."""
    measure, scorer = scored_measure(MEASURE), ConventionScorer(qrels, run)
    plain = scorer.scores(measure).score
    changes = []
    for choice in scorer.choices:
        if not choice.sensible or (choice.serves and measure.family not in choice.serves):
            continue
        if choice.dimension == "unjudged" and qrels["relevance"].to_numpy().min() > 0:
            # Where only relevant documents are judged, a list without the others is relevant as a whole.
            continue
        change = scorer.scores(measure, (choice,)).score - plain
        if not math.isnan(change) and abs(change) >= 5e-5:
            changes.append({"code": choice.code, "says": choice.says, "change": change})
    spread = convention_range(qrels, run, run, MEASURE)
    return {
        "run": name, "score": plain,
        "changes": sorted(changes, key=lambda row: (-abs(row["change"]), row["code"])),
        "range": None if spread is None else [*spread.system],
    }  # fmt: skip


class _Sets(NamedTuple):
    """Query logs and topics by name, each a file; the topics are test sets, too."""

    logs: dict[str, Path]
    topics: dict[str, Path]


def sets_of(
    benchmarks: Sequence[Benchmark], logs: Mapping[str, str], data: Path
) -> tuple[dict[str, _Sets], dict[str, str]]:
    """What is compared with each other, and the name of each benchmark's topics in it; equal files are there once.

    Where the topics are in another language than the others, they have their own training queries alone.
    """
    names: dict[str, str] = {}
    files: dict[bytes, str] = {}
    main = _Sets({name: data / path for name, path in logs.items()}, {})
    every = {"all": main}
    for one in benchmarks:
        topics = one.versions[0].topics
        own = every.setdefault(one.page, _Sets({}, {})) if one.alone else main
        for path in one.train:
            own.logs[f"{one.name.removesuffix(' dev')} train"] = data / path
        if topics:
            name = files.setdefault((data / topics).read_bytes(), one.name)
            own.topics[name] = data / topics
            names[one.page] = name
    return every, names


def _texts(sets: _Sets) -> Iterator[tuple[str, str]]:
    """The texts of all sets; ids begin with the name of the set."""
    for name, path in sets.logs.items():
        yield from ((f"{name}\t{query.query_id}", normalise(query.text)) for query in open_queries(str(path)))
    for name, path in sets.topics.items():
        for topic in read_topics(str(path)).topics:
            texts = filter(str.strip, (topic.title, topic.description))
            yield from ((f"{name}\t{topic.topic_id}", normalise(text)) for text in texts)


def overlaps(
    benchmarks: Sequence[Benchmark], logs: Mapping[str, str], data: Path, kept: Path
) -> tuple[pl.DataFrame, dict[str, str]]:
    """Topics that are in another set: columns test, training, topics, exact, near (which counts those), words."""
    every, names = sets_of(benchmarks, logs, data)
    evidence = pl.col("evidence").str.split("+")
    near = evidence.list.set_intersection(["exact", "ngram", "near", "contains"]).list.len() > 0
    cells = []
    for place, sets in every.items():
        training = keep(_texts(sets), OverlapRules(), Job(kept / place))
        for name, path in sets.topics.items():
            own = list(_texts(_Sets({}, {name: path})))
            pairs = without_parts(compare(own, training).frame).filter(pl.col("test_id") != pl.col("training_id"))
            found = pairs.with_columns(training=pl.col("training_id").str.split("\t").list.first()).group_by("training")
            counted = found.agg(
                exact=pl.col("test_id").filter("exact").n_unique(),
                near=pl.col("test_id").filter(near).n_unique(),
                words=pl.col("test_id").filter(pl.col("wording").is_not_null()).n_unique(),
            ).sort("training")
            topics = len({text_id for text_id, _ in own})
            cells.append(counted.select(pl.lit(name).alias("test"), "training", pl.lit(topics).alias("topics"),
                                        "exact", "near", "words"))  # fmt: skip
    return pl.concat(cells).filter((pl.col("near") > 0) | (pl.col("words") > 0)), names


def board_facts(one: Benchmark, board: ScoreBoard | None, topics: int, data: Path) -> dict[str, Any] | None:
    """How far neighbours on a list of published scores are apart, beside what so many topics can show."""
    if one.board:
        rows = list(csv.DictReader((data / one.board).open(encoding="utf-8")))
        scores = {row["run"]: float(row["NDCG@10"]) for row in rows}
        facts: dict[str, Any] = {"board": "the track paper's runs", "trained": None, "revisions": None}
    elif one.task and board is not None:
        own = chosen(board.cells).means.filter(pl.col("task") == one.task)
        scores = dict(own.select("system", "score").iter_rows())
        named = trained_tasks(board)
        cells = board.main.filter(pl.col("task") == one.task)
        facts = {
            "board": f"MTEB's results of {one.task}",
            "trained": sum(one.task in named.get(system, ()) for system in scores),
            "revisions": cells["data_revision"].drop_nulls().n_unique(),
        }
    else:
        return None
    best = sorted(scores.values(), reverse=True)[:FIRST]
    gaps = -np.diff(best)
    facts |= {"other_topics": one.other_topics, "systems": len(scores), "first": len(best), "best": best[0]}
    facts |= {"median_gap": float(np.median(gaps)), "largest_gap": float(gaps.max()), "span": best[0] - best[-1]}
    least = {f"{sd:.2f}": detectable_difference(topics, sd) for sd in ASSUMED}
    facts["neighbours"] = len(gaps)
    facts["apart"] = {sd: int((gaps >= size).sum()) for sd, size in least.items() if size is not None}
    facts["near_best"] = {
        sd: sum(best[0] - score < size for score in scores.values()) - 1
        for sd, size in least.items()
        if size is not None
    }
    return facts


def read_results(data: Path, folder: Path) -> tuple[ScoreBoard, Leaderboard]:
    """MTEB's results, and the audit of all tasks together."""
    with tarfile.open(data / "mteb-results/results.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    place = next(folder.rglob("results"))
    return read_board(place), leaderboard(place)


def facts_of(
    one: Benchmark, board: ScoreBoard | None, cells: pl.DataFrame | None, names: Mapping[str, str], data: Path
) -> dict[str, Any]:
    """Everything that a page shows."""
    versions = [version_facts(one, version, data) for version in one.versions]
    topics = versions[0]["judged_topics"] or versions[0]["topics"]
    facts: dict[str, Any] = {
        "page": one.page, "name": one.name, "family": one.family, "from": one.source, "looked_at": one.parts,
        "versions": versions, "overlaps": None, "board": board_facts(one, board, topics, data),
        "runs": runs_facts(one, data),
    }  # fmt: skip
    if cells is not None and one.page in names:
        facts["overlaps"] = cells.filter(pl.col("test") == names[one.page]).drop("test").to_dicts()
        facts["overlap_name"] = names[one.page]
    return facts


def fingerprints(benchmarks: Sequence[Benchmark], data: Path) -> Iterator[dict[str, Any]]:
    """What `truerank.audits.benchmarks` recognises them by."""
    for one in benchmarks:
        found: dict[str, tuple[list[str], dict[str, Any]]] = {}
        for version in one.versions:
            qrels = judgments_of(data / version.qrels) if version.qrels else None
            topics = read_topics(str(data / version.topics)).topics if version.topics else None
            own = fingerprint(None if topics is None else [topic.topic_id for topic in topics], qrels)
            # Versions with the same ids and grades are one.
            found.setdefault(json.dumps(own), ([], own))[0].append(version.name)
        for names, own in found.values():
            tasks = [one.task] if one.task and not one.other_topics else []
            yield {"page": one.page, "name": one.name, "version": " and ".join(names), "tasks": tasks, **own}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], help="benchmarks, by their names in gallery.toml")
    parser.add_argument("--overlaps", type=Path, help="a folder that keeps the comparison of topics")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs/gallery", help="where the files go")
    parser.add_argument("--known", type=Path, default=ROOT / "src/truerank/audits/benchmarks.json")
    options = parser.parse_args()
    require_shared()
    import gallery_files

    every, logs = read_spec()
    wanted = [one for one in every if not options.only or one.page in options.only]
    with tempfile.TemporaryDirectory() as temporary:
        kept = options.overlaps or Path(temporary) / "overlaps"
        kept.mkdir(parents=True, exist_ok=True)
        cells, names = overlaps(every, logs, SHARED, kept)
        board, audited = read_results(SHARED, Path(temporary) / "mteb")
    facts = []
    for one in wanted:
        facts.append(facts_of(one, board, cells, names, SHARED))
        print(one.page, file=sys.stderr, flush=True)
    if options.only:
        print(json.dumps(facts, indent=1, ensure_ascii=False))
        return
    options.docs.mkdir(parents=True, exist_ok=True)
    gallery_files.write(facts, audited, options.docs)
    lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in fingerprints(every, SHARED))
    options.known.write_text(f'{{"benchmarks": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
