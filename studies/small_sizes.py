"""Runs the scripts of a folder at a small size: what `studies/all.py` and `benchmarks/all.py` do.

Each script runs in a process and a folder of its own. The table shows processor seconds and key figures, beside those
that `--record` kept for this processor in `recorded.json`, and for others. A figure at a small size says that something
has changed, not how good it is: the documents have the figures of full size. The exit code is 1 where a script broke,
and where a ratio to another program, which ran beside it, fell by more than a fifth below what is kept for this kind of
processor; seconds alone say too much about what else the machine does.
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

from common import SHARED, table
from truerank.vectors.encoders.speed import instruction_sets, processor_name
from truerank.work.engines import processors

#: The figure that every script has.
SECONDS: Final = "processor s"
#: What the name of a ratio holds: "OpenVINO, times CrossEncoder". Higher is better.
_RATIO: Final = ", times "
_LOSS: Final = 0.2
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


def machine() -> str:
    """What figures are kept under: the processor with its widest products of matrices, and how many there are."""
    widest = instruction_sets()[-1:]
    return ", ".join([processor_name(), *widest, f"{processors()} processors"])


def run(script: Path, small: Small, limit: float) -> Outcome:
    """Runs one script; it and what it started are ended when the time is up."""
    if small.shared and not SHARED.is_dir():
        return Outcome(skipped="needs TRUERANK_SHARED")
    before, printed = _children(), ""
    with tempfile.TemporaryDirectory(prefix=f"truerank-{script.stem}-") as folder:
        for words in small.calls:
            process = subprocess.Popen(
                [sys.executable, str(script), *words.split()],
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


def fallen(outcomes: Mapping[str, Outcome], own: Mapping[str, object]) -> list[str]:
    """The ratios that are more than a fifth below those that were kept."""
    return [
        f"{name}: {label} {value:.3g}, was {before:.3g}"
        for name, outcome in outcomes.items()
        for label, value in outcome.figures.items()
        if _RATIO in label and (before := _kept(own, name, label)) and value < (1 - _LOSS) * before
    ]


def _kept(content: Mapping[str, object], name: str, label: str) -> float | None:
    scripts = content.get("scripts")
    value = scripts.get(name, {}).get(label) if isinstance(scripts, dict) else None
    return None if value is None else float(value)


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def read_recorded(kept: Path) -> dict[str, dict[str, object]]:
    """What was kept, by machine."""
    return dict(json.loads(kept.read_text(encoding="utf-8"))) if kept.is_file() else {}


def record(outcomes: Mapping[str, Outcome], here: str, kept: Path) -> None:
    """Keeps the figures of the scripts that ran, beside those of other scripts and machines."""
    every = read_recorded(kept)
    own = every.setdefault(here, {"scripts": {}})
    own["date"] = time.strftime("%Y-%m-%d", time.gmtime())
    scripts = own["scripts"]
    assert isinstance(scripts, dict)
    for name, outcome in outcomes.items():
        if not outcome.fault and not outcome.skipped:
            scripts[name] = {SECONDS: round(outcome.seconds, 1), **outcome.figures}
    text = json.dumps(every, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    temporary = kept.with_suffix(".tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(kept)


def main(folder: Path, every: Mapping[str, Small], left_out: Mapping[str, str]) -> None:
    """Runs what is asked for of a folder's scripts and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD", help="scripts with such a word in their name")
    parser.add_argument("--limit", type=float, default=300, help="seconds by the clock for one call of a script")
    parser.add_argument("--record", action="store_true", help="keep the figures in recorded.json")
    given = parser.parse_args()
    chosen = {name: small for name, small in every.items()
              if not given.only or any(word in name for word in given.only)}  # fmt: skip
    here, begun = machine(), time.perf_counter()
    kept = folder / "recorded.json"
    recorded = read_recorded(kept)
    print(f"{here}: {len(chosen)} scripts", file=sys.stderr)
    outcomes: dict[str, Outcome] = {}
    for number, (name, small) in enumerate(chosen.items(), 1):
        outcome = outcomes[name] = run(folder / f"{name}.py", small, given.limit)
        said = outcome.fault or (f"SKIPPED, {outcome.skipped}" if outcome.skipped else "done")
        print(f"[{number}/{len(chosen)}] {name}: {outcome.seconds:.1f} s, {said}", file=sys.stderr, flush=True)
        if given.record:
            record({name: outcome}, here, kept)
    others = [name for name in recorded if name != here]
    spent = sum(outcome.seconds for outcome in outcomes.values())
    print(f"{here}: {spent:.0f} s of processor time, {time.perf_counter() - begun:.0f} s by the clock\n")
    print(table(("script", "figure", "now", "recorded", "change", *others), rows(outcomes, recorded, here)))
    broken = [name for name, outcome in outcomes.items() if outcome.fault]
    skipped = [name for name, outcome in outcomes.items() if outcome.skipped]
    if not given.only:
        print("\n" + table(("not run", "why"), list(left_out.items())))
    if skipped:
        print(f"\nSKIPPED {len(skipped)} of {len(chosen)}: {', '.join(skipped)}")
    faults = [f"broken: {', '.join(broken)}"] if broken else []
    faults += [f"fallen by more than a fifth: {one}" for one in fallen(outcomes, recorded.get(here, {}))]
    sys.exit("\n".join(faults) or 0)
