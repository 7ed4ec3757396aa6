"""Every benchmark at a small size, meant for ten minutes on two processors: does it run, and what has changed?

    python benchmarks/all.py [--only WORD …] [--limit 300] [--record]

Each script runs in a process and a folder of its own. The table shows processor seconds and key figures, beside those
that `--record` kept for this processor in `recorded.json`, and for others. A figure at a small size says that something
has changed, not how good it is: the documents have the figures of full size. The exit code is 1 where a script broke.
Scripts that need real data are skipped without TRUERANK_SHARED.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from shared_data import SHARED, table
from truerank.vectors.encoders.speed import instruction_sets, processor_name
from truerank.work.engines import processors

HERE: Final = Path(__file__).resolve().parent
RECORDED: Final = HERE / "recorded.json"
#: The figure that every script has.
SECONDS: Final = "processor s"
_NUMBER: Final = r"([-−+]?[\d,]*\.?\d+(?:e[-+]?\d+)?)"
_PEER: Final = re.compile(r"No module named '(?!truerank)([\w.]+)'")


@dataclass(frozen=True)
class Small:
    """A script at a small size.

    Attributes:
        calls: the words of one call after another.
        figures: name and the pattern that finds a key figure in what is printed; `#` stands for the number.
        shared: whether it needs the real data.
    """

    calls: Sequence[str]
    figures: Mapping[str, str] = field(default_factory=dict)
    shared: bool = True


@dataclass(frozen=True)
class Outcome:
    """What came of a script: processor seconds, figures, and what went wrong or why it was left out."""

    seconds: float = 0.0
    figures: Mapping[str, float] = field(default_factory=dict)
    fault: str = ""
    skipped: str = ""


SMALL: Final[Mapping[str, Small]] = {
    "assessors": Small(["--seeds 1 --resamples 20 --workers 1"]),
    "batch_sizes": Small(
        ["cacm --topics 1 --pairs 12 --repeats 1 --part scoring"],
        {"OpenVINO, pairs/s in batches of 1,024 tokens": r"openvino[^*]*\| 1024 \* \| #"},
    ),
    "calibration": Small(["--samples 2 --size 100 --rule point"], shared=False),
    "collection_documents": Small(
        ["--collection cacm --times 1"], {"µs a document": r"\| [\d,]+ \| # \|"},
    ),
    "collection_effect": Small(["--copies 60 --draws 50"]),
    "collection_planted": Small(["--collection cacm --only twice"], {"planted faults found": r"planted: # found"}),
    "corrected_scores": Small(["coverage --simulations 10"]),
    "encoders": Small(
        ["--queries 200 --rounds 2 --no-error"],
        {"ONNX Runtime, times sentence-transformers": r"\| ONNX Runtime fp32 \| [\d.]+ \| [\d.]+ \| [\d.]+ \| #",
         "OpenVINO, times sentence-transformers": r"\| OpenVINO fp32 \| [\d.]+ \| [\d.]+ \| [\d.]+ \| #"},
    ),
    "encoding_limits": Small(
        ["--queries 200 --rounds 1 --pairs 16"],
        {"fp32 products, GFLOP/s": r"\| fp32 matrix products \| #",
         "OpenVINO fp32, times sentence-transformers": r"\| openvino fp32 \| [\d,]+ \| #",
         "reranking, times CrossEncoder": r"\| truerank, OpenVINO \| \d+ \| #"},
    ),
    "hical": Small(["--sizes 10000 --steps 2"]),
    "json_reading": Small(["--queries 2000 --repeats 1"], {"MB/s": r"s +# MB/s"}, shared=False),
    "judging_load": Small(
        ["--annotators 3 --labels 60 --kills 1"], {"labels lost": r"lost #, doubled", "labels doubled": r"doubled #;"},
        shared=False,
    ),
    "judging_store": Small(["--events 400 --items 200"], {"events": r'"events": #'}, shared=False),
    "kill_and_resume": Small(["--kills 1 --lines 1000"], {"restarts with the same bytes": "same bytes"}),
    "leakage_audit": Small(["speed --rounds 1 --sample 600 --only core"]),
    "leakage_memory": Small(["--exhaustive 1000 --prefilter 5000"]),
    "leakage_sensitivity": Small(["titanic"], shared=False),
    "leakage_verdicts": Small(["--sets 2 --lines 200"]),
    "lexical": Small(["--only speed --documents 2000 --rounds 1"]),
    "matrix": Small(["examples --number 1000 --out matrix"]),
    "measures": Small(
        ["--topics 100 --depth 200 --repeats 1"], {"ir_measures, times truerank": r"ir_measures +[\d.]+ +#"},
        shared=False,
    ),
    "near_duplicates": Small(["generate 1000 pages", "scale pages --workers 1"]),
    "placebo": Small(
        [
            "level --remove topics --simulations 20 --resamples 99",
            "level --remove documents --only core17 --simulations 10",
        ]
    ),
    "plant_faults": Small(["pages --collection cacm"], {"pages": "# pages, "}),
    "pool_simulation": Small(
        ["scale --documents 6000 --rounds 1 --simulate 0 --work pools"], shared=False,
    ),
    "prefilter": Small(["--coverage --lines 200"]),
    "prefilter_scale": Small(["--sizes 10000 --plants 3"]),
    "prefilter_speed": Small(
        ["--lines 5000 --rounds 1"],
        {"filter, lines/s of one processor": r"\| filter \(all of these\) \| [\d.]+ \| [\d.]+ \| #"},
    ),
    "qna": Small(["--queries 300 --passages 3000 --folder qna"], shared=False),
    "reranking": Small(
        ["cacm --topics 1 --pairs 40 --repeats 1"],
        {"torch, times CrossEncoder": r"\| truerank, torch \| \d+ \| #",
         "OpenVINO, times CrossEncoder": r"\| truerank, OpenVINO \| \d+ \| #",
         "OpenVINO, largest difference": r"\| truerank, OpenVINO \| \d+ \| [\d.]+ \| #"},
    ),
    "second_hand": Small(["develop --per-cell 1"]),
    "severity": Small(["queries msmarco --topics 20"]),
    "shards": Small(["plan --lines 20000"], {"hours of one machine": r"\| 1 \| #"}),
    "significance": Small(["--permutations 500"], shared=False),
    "start_up": Small(["--repeats 1"], {"`import truerank`, s": "# s  import truerank"}, shared=False),
    "survivorship_depths": Small(["--simulate 3 --queries 300"]),
    "tools": Small(["develop --only truerank --per-cell 1"]),
    "track_tables": Small([""]),
    "track_validate": Small(["--rows 10000"], shared=False),
    "training": Small(["--instances 20 --seeds 1 --models knrm --collections cacm --workers 1"]),
    "training_throughput": Small(["--instances 4 --batch 4 --repeats 1"]),
    "transfer_match": Small(["--documents 200"], shared=False),
    "transfer_planted": Small(["--scale 300"]),
    "triples_scale": Small(["--pairs 20000 --triples 2000"], shared=False),
    "vaswani_runs": Small(["runs"]),
}  # fmt: skip

#: Scripts that are not run here, and why.
LEFT_OUT: Final[Mapping[str, str]] = {
    "all": "this one",
    "bi_encoder": "no script: fine_tuning reads it",
    "check": "makes runs of all its systems first: more than ten minutes",
    "check_plants": "no script: check reads it",
    "clean_claims": "makes runs of all its systems first: more than ten minutes",
    "collection_fit": "moves the judgments of every collection at hand: several minutes",
    "collection_findings": "audits every collection at hand: more than ten minutes",
    "fine_tuning": "trains for hours",
    "guarded_training": "needs the packages datasets and accelerate",
    "monobert": "trains for more than an hour",
    "look_alikes": "compares families of texts for several minutes",
    "mteb_exports": "needs the package mteb",
    "planted_duplicates": "no script: near_duplicates reads it",
    "planted_leaks": "no script: tools reads it",
    "reformulation_types": "has one size, of several minutes",
    "reusability_held_out": "simulates the judging of every team that is left out: half an hour",
    "sarif_validation": "needs Microsoft's validator of SARIF",
    "hand_texts": "has one size, of several minutes",
    "hand_claims": "makes its runs first, and asks one check a plant: many minutes",
    "hand_collection": "no script: hand_claims reads it",
    "hand_data_faults": "no script: hand_claims reads it",
    "hand_harmless": "no script: hand_claims reads it",
    "hand_id_faults": "no script: hand_claims reads it",
    "hand_judgment_faults": "no script: hand_claims reads it",
    "hand_kinds": "no script: hand_claims reads it",
    "hand_texts_documents": "no script: hand_texts reads it",
    "hand_texts_queries": "no script: hand_texts reads it",
    "hand_texts_templates": "no script: hand_texts reads it",
    "hand_run_faults": "no script: hand_claims reads it",
    "hand_severity": "no script: severity reads it",
    "languages": "13 languages, of several minutes each",
    "generated_documents": "no script: lexical and triples_scale read it",
    "libraries": "needs the packages ruamel.yaml and lazy_loader",
    "pool_scale": "no script: pool_simulation runs it",
    "second_hand_bench": "no script: second_hand reads it",
    "second_hand_plants": "no script: second_hand reads it",
    "second_hand_texts": "no script: second_hand reads it",
    "shared_data": "no script: the others read it",
    "training_sets": "has no size below several minutes",
    "template_families": "no script: look_alikes reads it",
}


def machine() -> str:
    """What figures are kept under: the processor with its widest products of matrices, and how many there are."""
    widest = instruction_sets()[-1:]
    return ", ".join([processor_name(), *widest, f"{processors()} processors"])


def run(name: str, small: Small, limit: float) -> Outcome:
    """Runs one script; it and what it started are ended when the time is up."""
    if small.shared and not SHARED.is_dir():
        return Outcome(skipped="needs TRUERANK_SHARED")
    before, printed = _children(), ""
    with tempfile.TemporaryDirectory(prefix=f"truerank-{name}-") as folder:
        for words in small.calls:
            process = subprocess.Popen(
                [sys.executable, str(HERE / f"{name}.py"), *words.split()],
                cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            )  # fmt: skip
            try:
                out, errors = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                return Outcome(_children() - before, fault=f"not done after {limit:g} s")
            printed += out
            if process.returncode:
                lines = [line for line in errors.splitlines() if line.strip()]
                last = lines[-1] if lines else f"exit code {process.returncode}"
                peer = _PEER.search(last)
                if peer:
                    return Outcome(_children() - before, skipped=f"needs the package {peer[1]}")
                return Outcome(_children() - before, fault=" ".join(last.split())[:160])
    every = {label: figure(pattern, printed) for label, pattern in small.figures.items()}
    figures = {label: value for label, value in every.items() if value is not None}
    lacking = [label for label in every if label not in figures]
    return Outcome(_children() - before, figures, fault=f"prints no '{lacking[0]}'" if lacking else "")


def figure(pattern: str, printed: str) -> float | None:
    """The number at `#` in the first place where the pattern fits; a pattern without `#` is counted.

    Args:
        pattern: a regular expression.
        printed: what a script printed.
    """
    if "#" not in pattern:
        return float(len(re.findall(pattern, printed))) or None
    found = re.search(pattern.replace("#", _NUMBER), printed)
    return None if found is None else float(found[1].replace(",", "").replace("−", "-"))


def rows(outcomes: Mapping[str, Outcome], recorded: Mapping[str, Mapping[str, object]], here: str) -> list[list[str]]:
    """The table: a line for each figure of each script, and one for a script that did not run."""
    others = [content for place, content in recorded.items() if place != here]
    found = []
    for name, outcome in outcomes.items():
        if outcome.fault or outcome.skipped:
            said = f"BROKEN: {outcome.fault}" if outcome.fault else f"SKIPPED: {outcome.skipped}"
            found.append([name, said.replace("|", "/"), *[""] * (3 + len(others))])
            continue
        for label, value in {SECONDS: outcome.seconds, **outcome.figures}.items():
            own = _kept(recorded.get(here, {}), name, label)
            change = f"{value / own - 1:+.0%}" if own else ""
            elsewhere = [_shown(_kept(content, name, label)) for content in others]
            found.append([name, label, _shown(value), _shown(own), change, *elsewhere])
    return found


def _kept(content: Mapping[str, object], name: str, label: str) -> float | None:
    scripts = content.get("scripts")
    value = scripts.get(name, {}).get(label) if isinstance(scripts, dict) else None
    return None if value is None else float(value)


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def read_recorded() -> dict[str, dict[str, object]]:
    """What was kept, by machine."""
    return dict(json.loads(RECORDED.read_text(encoding="utf-8"))) if RECORDED.is_file() else {}


def record(outcomes: Mapping[str, Outcome], here: str) -> None:
    """Keeps the figures of the scripts that ran, beside those of other scripts and machines."""
    every = read_recorded()
    own = every.setdefault(here, {"scripts": {}})
    own["date"] = time.strftime("%Y-%m-%d", time.gmtime())
    scripts = own["scripts"]
    assert isinstance(scripts, dict)
    for name, outcome in outcomes.items():
        if not outcome.fault and not outcome.skipped:
            scripts[name] = {SECONDS: round(outcome.seconds, 1), **outcome.figures}
    text = json.dumps(every, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    temporary = RECORDED.with_suffix(".tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(RECORDED)


def main() -> None:
    """Runs what is asked for and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD", help="scripts with such a word in their name")
    parser.add_argument("--limit", type=float, default=300, help="seconds by the clock for one call of a script")
    parser.add_argument("--record", action="store_true", help="keep the figures in recorded.json")
    given = parser.parse_args()
    chosen = {name: small for name, small in SMALL.items()
              if not given.only or any(word in name for word in given.only)}  # fmt: skip
    here, begun = machine(), time.perf_counter()
    recorded = read_recorded()
    print(f"{here}: {len(chosen)} scripts", file=sys.stderr)
    outcomes: dict[str, Outcome] = {}
    for number, (name, small) in enumerate(chosen.items(), 1):
        outcome = outcomes[name] = run(name, small, given.limit)
        said = outcome.fault or (f"SKIPPED, {outcome.skipped}" if outcome.skipped else "done")
        print(f"[{number}/{len(chosen)}] {name}: {outcome.seconds:.1f} s, {said}", file=sys.stderr, flush=True)
        if given.record:
            record({name: outcome}, here)
    others = [name for name in recorded if name != here]
    spent = sum(outcome.seconds for outcome in outcomes.values())
    print(f"{here}: {spent:.0f} s of processor time, {time.perf_counter() - begun:.0f} s by the clock\n")
    print(table(("script", "figure", "now", "recorded", "change", *others), rows(outcomes, recorded, here)))
    broken = [name for name, outcome in outcomes.items() if outcome.fault]
    skipped = [name for name, outcome in outcomes.items() if outcome.skipped]
    if not given.only:
        print("\n" + table(("not run", "why"), list(LEFT_OUT.items())))
    if skipped:
        print(f"\nSKIPPED {len(skipped)} of {len(chosen)}: {', '.join(skipped)}")
    sys.exit(f"broken: {', '.join(broken)}" if broken else 0)


if __name__ == "__main__":
    main()
