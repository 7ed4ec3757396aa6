"""What the audit and `check` make of rulers that another hand planted (`hand_rulers.py`): found, and false alarms.

    python studies/rulers.py floors   [--sets cacm] [--seeds 1] [--folder DIR]
    python studies/rulers.py claims   …
    python studies/rulers.py ceilings …
    python studies/rulers.py wrong    …
    python studies/rulers.py suspects …
    python studies/rulers.py echo     …
    python studies/rulers.py panels   …
    python studies/rulers.py corpus   …
    python studies/rulers.py chunks   …

The planter does not know the rules, and writes what is true beside each folder. CACM is what rules may be mended on;
the other sets are reported. Folders that are not there yet are planted first. Intervals are Clopper and Pearson's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import kendalltau

import truerank
from common import require_shared, table
from truerank.arrays import Floats
from truerank.audits.collection.documents import read_document_table
from truerank.audits.collection.echo import MEASURED, WordOverlap, shared_words
from truerank.audits.collection.floors import candidate_instances, shared_candidates
from truerank.audits.collection.floors import floors as null_floors
from truerank.audits.collection.suspects import Suspects, suspects
from truerank.audits.collection.topics import read_topic_table
from truerank.audits.transfer import Route, carry
from truerank.measures.document_placebo import RankedDocuments, Unseen, document_placebos
from truerank.measures.magnitudes import proportion
from truerank.options import Resampling, Scoring
from truerank.sources import read_qrels_frame, read_run_frame
from truerank.sources.documents import open_documents

Row = Sequence[object]
PLANTERS = {
    "floors": "null", "claims": "null", "ceilings": "labels", "wrong": "labels", "suspects": "suspects", "echo": "echo",
    "panels": "panels", "corpus": "corpus", "chunks": "chunks",
}  # fmt: skip
PLACES = {"floors": "rulers", "claims": "claims", "ceilings": "ceilings", "wrong": "wrong-labels"}
LEAST = 0.05
RULES = {"COLL16": "high-floor", "COLL17": "telling-order", "COLL18": "few-candidates"}


def counted(found: Sequence[bool]) -> str:
    """A count with the interval of its share."""
    if not found:
        return "–"
    share = proportion(sum(found), len(found), method="exact")
    return f"{sum(found)} of {len(found)} ({share.low:.0%} to {share.high:.0%})"


def folders(given: argparse.Namespace, name: str, seed: int) -> Iterator[tuple[Path, dict[str, Any]]]:
    """What was planted, and what is true of it; planted first where it is not there."""
    place = given.folder / PLANTERS[given.question] / name / str(seed)
    if not (place / "done").exists():
        script = Path(__file__).with_name("hand_rulers.py")
        words = [PLANTERS[given.question], name, str(given.folder), "--seed", str(seed)]
        subprocess.run([sys.executable, str(script), *words], check=True, stdout=subprocess.DEVNULL)
        (place / "done").touch()
    for one in sorted((place / PLACES.get(given.question, ".")).iterdir()):
        if (one / "truth.json").exists() and (not given.only or one.name in given.only):
            yield one, json.loads((one / "truth.json").read_text())


def runs_of(folder: Path) -> dict[str, str]:
    return {one.stem: str(one) for one in sorted((folder / "runs").glob("*.run"))}


def parts_of(folder: Path) -> dict[str, Any]:
    """What a user would give."""
    names = {"docs": "docs.jsonl", "topics": "topics.tsv", "qrels": "judgments.qrels"}
    return {one: str(folder / name) for one, name in names.items() if (folder / name).exists()}


def floors(given: argparse.Namespace) -> None:
    """Lists that never read the query."""
    rows: list[Row] = []
    found: dict[tuple[str, str], list[bool]] = {}
    for name in given.sets:
        for seed in given.seeds:
            for folder, truth in folders(given, name, seed):
                measure = truth.get("measure", "nDCG@10")
                parts, runs = parts_of(folder), runs_of(folder)
                qrels = read_qrels_frame(parts["qrels"])
                docs = read_document_table(parts["docs"], set(qrels["doc_id"])) if "docs" in parts else None
                ranked = shared_candidates({one: read_run_frame(path) for one, path in runs.items()})
                facts, kinds = null_floors(
                    qrels, measure, Scoring(), Resampling(1000, 0.95, 0), docs, candidates=ranked
                )  # fmt: skip
                few = candidate_instances(qrels, measure, ranked, None if docs is None else docs.count)
                called = {one.kind for one in (*kinds, few) if one.count}
                codes = [code for code, kind in RULES.items() if kind in called]
                by_name = {(one["of"], one["name"]): one["floor"]["mean"] for one in facts}
                held_out = truth["null_scores"]["popular_held_out"][measure]
                best = truth["by_measure"][measure]
                shuffled = truth["null_scores"].get("candidates_shuffled", {}).get(measure, 0.0)
                above = best["score"] - shuffled if str(truth["plant"]).startswith("candidates") else held_out
                strong = truth["plant"] == "haystack" or above >= LEAST
                of = "clean" if truth["plant"] is None else "strong" if strong else "weak"
                found.setdefault((name, of), []).append(bool(codes))
                own = {key: mean for key, mean in by_name.items() if mean is not None and "relevant ones" not in key[1]}
                highest = max(own, key=lambda key: own[key], default=("", ""))
                rows.append((
                    name, seed, folder.name, measure, f"{best['best_null']} {best['score']:.3f}", f"{held_out:.3f}",
                    f"{by_name.get(('collection', 'the best fixed list'), 0.0) or 0.0:.3f}",
                    f"{highest[1]} ({highest[0]}) {own.get(highest, 0.0):.3f}", " ".join(codes),
                ))  # fmt: skip
    heads = (
        "set,seed,folder,measure,best list of the truth,held-out popular list,the best fixed list,"
        "highest null ranker of the audit,rules"
    )
    print(table(heads.split(","), rows))
    print()
    names = {
        "clean": "clean", "weak": "less than that",
        "strong": "a list has .05 on other topics, or an order above random order, or k exceeds the candidates",
    }  # fmt: skip
    print(table(("set", "planted", "called"), [(s, names[of], counted(own)) for (s, of), own in found.items()]))


def claims(given: argparse.Namespace) -> None:
    """Claims that rest on a list, and honest ones."""
    rows: list[Row] = []
    found: dict[tuple[str, str], list[bool]] = {}
    for name in given.sets:
        for seed in given.seeds:
            for folder, truth in folders(given, name, seed):
                judged, without = truth["as_judged"], truth["without_the_list"]
                if judged["low"] <= 0:
                    continue
                kind = "shown without the list" if truth["shown_without_the_list"] else "shown by the list only"
                runs = runs_of(folder)
                seen = truerank.check(qrels=parts_of(folder)["qrels"], run=runs, system="A", baseline="B")
                word = seen.conclusion.word
                exception = "scores as much" in seen.answer("files").exception
                returns = "A returns it" if truth["a_returns_the_list"] else "A does not"
                found.setdefault((name, f"{kind}, {returns}"), []).append(word == "HOLDS")
                rows.append((
                    name, seed, folder.name, kind, f"{judged['difference']:+.3f}", f"{without['difference']:+.3f}",
                    word, "floor" if exception else "",
                ))  # fmt: skip
    heads = "set,seed,claim,kind,as judged,without the list,word,says"
    print(table(heads.split(","), rows))
    print()
    print(table(("set", "claims", "HOLDS"), [(*key, counted(own)) for key, own in sorted(found.items())]))


def ceilings(given: argparse.Namespace) -> None:
    """What the best ranking scores."""
    rows: list[Row] = []
    for name in given.sets:
        for seed in given.seeds:
            for folder, truth in folders(given, name, seed):
                names = ["nDCG@10", "R@10", "P@10"]
                seen = truerank.collection.audit(**parts_of(folder), measures=" ".join(names), resamples=100)
                own = {one["measure"]: one for one in seen.facts["ceilings"]}
                # The audit's mean is over the topics of the judgments.
                over = truth["ceiling_over_all_topics"]
                once = truth.get("ceiling_if_a_text_is_returned_once")
                rows.append((
                    name, seed, folder.name, *(f"{own[one]['mean']:.3f} ({over[one]:.3f})" for one in names),
                    "" if not once else f"{own['nDCG@10']['once'] or 0:.3f} ({once['nDCG@10']:.3f})",
                    " ".join(f"{one.kind.code} {one.counted}" for one in seen.findings
                             if one.kind.code in ("COLL07", "QREL20", "QREL22", "QREL01", "DOCS17", "QREL02")),
                ))  # fmt: skip
    heads = "set,seed,folder,nDCG@10 (true),R@10 (true),P@10 (true),each text once (true),findings"
    print(table(heads.split(","), rows))


def wrong(given: argparse.Namespace) -> None:
    """Wrong labels, with a sample that was judged again."""
    rows: list[Row] = []
    for name in given.sets:
        for sample in (50, 100, 200):
            share, scores, apart, turned = list[bool](), list[bool](), list[bool](), list[bool]()
            told, alarms = list[bool](), list[bool]()
            for seed in given.seeds:
                for folder, truth in folders(given, name, seed):
                    seen = truerank.collection.audit(
                        qrels=parts_of(folder)["qrels"], run=runs_of(folder), measures="nDCG@10 P@10", resamples=100,
                        judged_again=str(folder / f"rejudged-{sample}.qrels"),
                    )  # fmt: skip
                    noise = seen.facts["noise"]
                    same = sum(round(one["share"] * one["n"]) for one in noise["grades"])
                    ends = proportion(noise["again"] - same, noise["again"], method="exact")
                    share.append(ends.low <= truth["share_of_rows_wrong"] <= ends.high)
                    (told if truth["plant"] else alarms).append(seen.finding("contradicted-again") is not None)
                    for one in noise["scores"]:
                        if one["measure"] == "P@10" and one["corrected"] is not None:
                            true = truth["true_scores"][one["run"]]["P@10"]
                            scores.append(one["corrected_low"] - 1e-9 <= true <= one["corrected_high"] + 1e-9)
                    for one in noise["differences"]:
                        if one["measure"] == "P@10" and one["corrected"] is not None:
                            true = truth["true_scores"][one["first"]]["P@10"]
                            true -= truth["true_scores"][one["second"]]["P@10"]
                            apart.append(one["corrected_low"] - 1e-9 <= true <= one["corrected_high"] + 1e-9)
                            if abs(true) > 1e-9 and one["corrected_low"] * one["corrected_high"] > 0:
                                turned.append(one["corrected_low"] * true < 0)
            cells = (counted(one) for one in (told, alarms, share, scores, apart, turned))
            rows.append((name, sample, *cells))
    heads = (
        "set,judged again,wrong ones: COLL21,none wrong: COLL21,interval of the share of wrong ones holds it,"
        "of P@10,of differences,differences called with the wrong sign"
    )
    print(table(heads.split(","), rows))


def proposals(folder: Path) -> Suspects:
    """What the audit proposes, with documents and topics where there are some."""
    parts = parts_of(folder)
    runs = {one: read_run_frame(path) for one, path in runs_of(folder).items()}
    if "docs" not in parts:
        return suspects(runs, read_qrels_frame(parts["qrels"]))
    texts = {one.doc_id: one.text for one in open_documents(parts["docs"], keep_empty=True)}
    topics = read_topic_table(parts["topics"]).texts()

    def read(ids: Collection[str]) -> dict[str, str]:
        return {one: texts[one] for one in ids if one in texts}

    return suspects(runs, read_qrels_frame(parts["qrels"]), texts=read, topics=topics)


def suspect(given: argparse.Namespace) -> None:
    """Judgments that the runs contradict."""
    rows: list[Row] = []
    for name in given.sets:
        found: dict[str, list[tuple[int, int, int, int, int, int, float, bool]]] = {}
        for seed in given.seeds:
            for folder, truth in folders(given, name, seed):
                seen = proposals(folder)
                about = seen.facts()
                planted = {(one["topic"], one["document"]) for one in (*truth["wrong"], *truth["lost"])}
                proposed = [
                    [] if one is None else list(one.rows.select("topic_id", "doc_id").iter_rows())
                    for one in (seen.relevant, seen.others)
                ]
                right = [[pair in planted for pair in one] for one in proposed]
                expected = about.get("relevant", {}).get("expected") or 0.0
                found.setdefault(folder.name, []).append((
                    len(proposed[0]), sum(right[0]), sum(right[0][:50]), len(right[0][:50]), len(proposed[1]),
                    sum(right[1]), expected, bool(about["refused"]),
                ))  # fmt: skip
        for label, own in found.items():
            some = np.array([one[:6] for one in own]).sum(axis=0)
            first = proportion(int(some[2]), int(some[3]), method="exact") if some[3] else None
            rows.append((
                name, label, len(own), f"{some[0] / len(own):.0f}", f"{np.mean([one[6] for one in own]):.2f}",
                f"{some[1]} of {some[0]}",
                "–" if first is None else f"{first.share:.2f} ({first.low:.2f} to {first.high:.2f})",
                f"{some[5]} of {some[4]}", "refused" if any(one[7] for one in own) else "",
            ))  # fmt: skip
    heads = "set,folder,draws,proposed of the relevant,expected wrong,wrong,first 50,of others: right,"
    print(table(heads.split(","), rows))


def echo(given: argparse.Namespace) -> None:
    """Topics that were made from their documents."""
    rows: list[Row] = []
    found: dict[tuple[str, str], list[tuple[bool, bool | None]]] = {}
    for name in given.sets:
        for seed in given.seeds:
            planted = dict(folders(given, name, seed))
            own = next(one for one in planted if one.name == "people")
            people = list(read_topic_table(parts_of(own)["topics"]).texts().values())
            for folder, truth in planted.items():
                parts = parts_of(folder)
                if "qrels" not in parts:
                    continue
                relevant: dict[str, set[str]] = {}
                for topic, doc, grade in read_qrels_frame(parts["qrels"]).iter_rows():
                    if grade > 0:
                        relevant.setdefault(topic, set()).add(doc)
                stream = (one for one in open_documents(parts["docs"], keep_empty=True))
                asked = people if truth["plant"] else ()
                texts = read_topic_table(parts["topics"]).texts()
                facts, kinds = shared_words(WordOverlap.of(texts, relevant, asked, 0).read(stream), len(texts))
                called = {one.kind for one in kinds if one.count}
                share = truth["share_generated"]
                of = "people's" if not share else "all generated" if share == 1 else f"{share:.0%} generated"
                # People's topics that are in the set are no reference.
                above = "echo-above-people" in called if facts is not None and facts["asked"] else None
                found.setdefault((name, of), []).append(("echo" in called, above))
                means = ["" for _ in MEASURED] if facts is None else [f"{facts[one][0]:.2f}" for one in MEASURED]
                beside = "not compared" if above is None else "yes" if above else ""
                rows.append((name, seed, folder.name, *means, "yes" if "echo" in called else "", beside))
    heads = f"set,seed,folder,{','.join(MEASURED)},COLL19,COLL20 beside people's"
    print(table(heads.split(","), rows))
    print()
    print(table(("set", "topics", "COLL19", "COLL20, of those compared"), [
        (*key, counted([one for one, _ in own]), counted([one for _, one in own if one is not None]))
        for key, own in sorted(found.items())
    ]))  # fmt: skip


def panels(given: argparse.Namespace) -> None:
    """How many independent judges a panel amounts to."""
    rows: list[Row] = []
    for name in given.sets:
        for seed in given.seeds:
            for folder, truth in folders(given, name, seed):
                judges = {one.stem: str(one) for one in sorted((folder / "judges").glob("*.qrels"))}
                people = {"people": str(folder / "people.qrels")}
                seen = truerank.judge.audit(people, judges, resampling=Resampling(200, 0.95, 0))
                (own,) = seen.frames["panel"].filter(errors="equal").to_dicts()
                true = truth["effective_number"]
                held = own["effective_low"] - 1e-9 <= true <= own["effective_high"] + 1e-9
                rows.append((
                    name, folder.name, truth["judges"], f"{truth['mean_correlation_of_errors']:.3f}",
                    f"{own['value']:.3f}", f"{true:.2f}",
                    f"{own['effective']:.2f} ({own['effective_low']:.2f} to {own['effective_high']:.2f})",
                    "yes" if held else "no",
                ))  # fmt: skip
    heads = "set,folder,judges,correlation of the truth,of the audit,effective judges of the truth,of the audit,held"
    print(table(heads.split(","), rows))


def corpus(given: argparse.Namespace) -> None:
    """What a smaller corpus does, beside random removals of the same judged state."""
    rows: list[Row] = []
    called: dict[tuple[str, str], list[bool]] = {}
    for name in given.sets:
        for seed in given.seeds:
            for folder, truth in folders(given, name, seed):
                runs = {one: read_run_frame(path) for one, path in runs_of(folder).items()}
                ranked = RankedDocuments.of(read_qrels_frame(parts_of(folder)["qrels"]), runs, Scoring())
                gone, named = set(truth["removed"]), set(ranked.documents)
                unseen = Unseen(len(gone - named), truth["documents"] - len(gone | named))
                (own,) = document_placebos(
                    ranked, truth["removed"], "nDCG@10", by_state=unseen, resampling=Resampling(400, 0.95, seed)
                )
                true = truth["mean"]
                otherwise = own.word == "moved more than chance"
                more = otherwise and any(
                    one.p_corrected <= LEAST and abs(one.change) > abs(one.low + one.high) / 2 for one in own.systems
                )
                kinds = {
                    "more than random": (true["changed_more_than_random"], more),
                    "otherwise than random": (true["changed_otherwise_than_random"], otherwise),
                }
                for kind, (planted, seen) in kinds.items():
                    of = "planted" if planted else "chance by construction" if truth.get("drawn_as_the_comparison_is") \
                        else "not so by the truth"  # fmt: skip
                    called.setdefault((name, f"{kind}: {of}"), []).append(seen)
                rows.append((
                    name, folder.name, truth["plant"] or "none", f"{len(gone):,d}", f"{true['change']:+.3f}",
                    f"{true['random_low']:+.3f} to {true['random_high']:+.3f}", f"{true['p']:.2f}",
                    *("yes" if planted else "" for planted, _ in kinds.values()),
                    f"{own.p:.3f}", *("yes" if seen else "" for _, seen in kinds.values()),
                ))  # fmt: skip
    heads = (
        "set,folder,plant,removed,mean change,random,p of the truth,more than random,otherwise,p of the audit,"
        "said to be more,otherwise"
    )
    print(table(heads.split(","), rows))
    print()
    print(table(("set", "by the truth", "said"), [(*key, counted(own)) for key, own in sorted(called.items())]))


def means(qrels: str | pl.DataFrame, runs: dict[str, str]) -> Floats:
    """The runs' nDCG@10."""
    found = truerank.evaluate(qrels, runs, "nDCG@10")
    return np.array([found.of(one, "nDCG@10").mean() for one in runs])


def chunks(given: argparse.Namespace) -> None:
    """Judgments of chunks, carried to another cutting; pieces are to judge, or relevant."""
    rows: list[Row] = []
    for name in given.sets:
        for seed in given.seeds:
            for folder, truth in folders(given, name, seed):
                true = {
                    (topic, doc): grade
                    for topic, doc, grade in read_qrels_frame(str(folder / "truth" / "true.qrels")).iter_rows()
                }
                relevant = {pair for pair, grade in true.items() if grade > 0}
                runs = {one.stem: str(one) for one in sorted((folder / "new-runs").glob("*.run"))}
                right = means(str(folder / "truth" / "true.qrels"), runs)
                for pieces in ("judge", "relevant"):
                    route = Route(
                        spans=str(folder / "docs.jsonl"), docs=str(folder / "new-docs.jsonl"), pieces=pieces
                    )  # fmt: skip
                    seen = carry(parts_of(folder)["qrels"], route=route)
                    carried = {(topic, doc): grade for topic, doc, grade in seen.qrels.iter_rows()}
                    doubtful = set() if seen.doubtful is None else {row[:2] for row in seen.doubtful.iter_rows()}
                    back = [pair for pair in relevant if carried.get(pair, 0) > 0]
                    said = [pair for pair, grade in carried.items() if grade > 0]
                    wrong = [pair not in relevant for pair in said]
                    scores = means(seen.qrels, runs)
                    rows.append((
                        name, folder.name, f"{truth['old_cutting']} to {truth['new_cutting']}", seen.by, pieces,
                        f"{len(relevant):,d}", f"{len(back) / max(1, len(relevant)):.0%}",
                        f"{sum(carried[pair] == true[pair] for pair in back) / max(1, len(back)):.0%}",
                        f"{sum(pair in doubtful for pair in relevant) / max(1, len(relevant)):.0%}",
                        f"{sum(carried.get(pair, 1) == 0 for pair in relevant) / max(1, len(relevant)):.1%}",
                        counted(wrong), f"{kendalltau(right, scores).statistic:+.2f}",
                        f"{np.abs(scores - right).max():.2f}",
                    ))  # fmt: skip
    heads = (
        "set,folder,cutting,by,pieces,relevant,carried,of these with their grade,to judge,carried as not relevant,"
        "of those carried as relevant: wrong,order of the runs: tau,largest distance of nDCG@10"
    )
    print(table(heads.split(","), rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    functions = {
        "floors": floors, "claims": claims, "ceilings": ceilings, "wrong": wrong, "suspects": suspect, "echo": echo,
        "panels": panels, "corpus": corpus, "chunks": chunks,
    }  # fmt: skip
    parser.add_argument("question", choices=[*functions])
    parser.add_argument("--sets", nargs="+", default=["cacm"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--only", nargs="*", default=(), help="names of folders")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "truerank-rulers")
    require_shared()
    given = parser.parse_args()
    functions[given.question](given)


if __name__ == "__main__":
    main()
