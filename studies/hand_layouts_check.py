"""Give each layout of ``hand_layouts.py`` to ``truerank check`` as a stranger would, and compare it with the truth.

    python studies/hand_layouts.py LAYOUTS
    python studies/hand_layouts_check.py LAYOUTS OUT [--truerank PROGRAM] [--only NUMBER ...] [--again] [--jobs N]

Each layout is checked twice, with ``--dry-run`` and without. The program sees a folder that has the data files only; if
it refuses the folder, it gets the files in one command. What it printed and wrote lies in ``OUT/NN-name/``; what lies
there is judged again without a new run, unless ``--again`` is given.

A reading is *right* if the systems that the answer compares have the true means, or the true difference, to three
decimals. It is *silent* if the means are right, or those of a further defensible reading, and what had to be said was
not said. For one system the answer has no mean; then only the numbers of systems and questions are compared.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

Means = dict[str, float]


def run(program: str, folder: Path, out: Path) -> dict[str, Any]:
    """Everything that a person at the terminal would see."""
    data = out / "data"
    shutil.copytree(folder, data, ignore=shutil.ignore_patterns("truth.json"))
    files = sorted(path for path in data.rglob("*") if path.is_file())
    whole = [str(data)] if len(files) > 1 else [str(files[0])]
    tried = []
    for given in (whole, list(map(str, files)))[: 1 + (len(files) > 1)]:
        calls = []
        # The dry run of the folder tells what the files are taken for; it is not needed twice.
        for more in (["--dry-run"], ["--verbose", "--out", str(out / f"out{len(tried)}")])[bool(tried) :]:
            began = time.monotonic()
            # A stranger's shell does not know where a developer's checkout is.
            shell = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "TRUERANK_SHARED")}
            done = subprocess.run(
                [program, "check", *given, *more], capture_output=True, text=True, env=shell, check=False
            )
            calls.append(
                {
                    "code": done.returncode,
                    "text": done.stdout + done.stderr,
                    "seconds": round(time.monotonic() - began, 1),
                }
            )
        tried.append(
            {
                "given": "folder" if given is whole and len(files) > 1 else "files",
                "dry": tried[0]["dry"] if tried else calls[0],
                "full": calls[-1],
            }
        )
        if calls[-1]["code"] == 0:
            break
    (out / "calls.json").write_text(json.dumps(tried, ensure_ascii=False, indent=1), encoding="utf-8")
    return tried[-1] | {"summary": len(tried) - 1}


def shown_means(out: Path, number: int) -> tuple[Means, tuple[str, str, float] | None]:
    """The means of systems, and the claim: system, baseline and difference."""
    path = out / f"out{number}" / "summary.json"
    if not path.exists():
        return {}, None
    summary = json.loads(path.read_text(encoding="utf-8"))
    scores: Means = {}
    for answer in summary.get("answers", ()):
        for name, value in answer.get("facts", {}).get("scores", {}).items():
            if isinstance(value, dict) and isinstance(value.get("score"), float):
                scores.setdefault(name, value["score"])
    claim = summary.get("claim") or {}
    if single := summary.get("single"):
        scores[single["system"]] = single["value"]
    as_given = next(
        (
            e["value"]
            for a in summary.get("answers", ())
            for e in a.get("estimates", ())
            if e["label"] == "as the data are"
        ),
        None,
    )
    value = as_given if as_given is not None else claim.get("value")
    return scores, (claim["system"], claim["baseline"], value) if value is not None and claim.get("baseline") else None


def plain(name: str) -> str:
    return re.sub(r"[^\w]+", "", Path(name).name.lower())


def agrees(truth: Means, scores: Means, claim: tuple[str, str, float] | None) -> bool:
    """Names may carry a part of a path or an ending."""

    def true(name: str) -> float | None:
        names = [key for key in truth if plain(key) == plain(name)]
        names = names or [key for key in truth if plain(key) in plain(name) or plain(name) in plain(key)]
        return truth[max(names, key=len)] if names else None

    values = [(true(name), score) for name, score in scores.items()]
    if claim is not None:
        a, b = true(claim[0]), true(claim[1])
        values.append((None if a is None or b is None else a - b, claim[2]))
    return bool(values) and all(value is not None and abs(value - score) < 6e-4 for value, score in values)


def answer(truth: dict[str, Any], text: str, out: Path, number: int) -> tuple[str, str]:
    """What the answer shows, and whether that is true."""
    scores, claim = shown_means(out, number)
    if not scores and claim is None:
        counted = re.search(r"(\d+) systems?\b.*?(\d+) questions", text)
        same = counted and (int(counted[1]), int(counted[2])) == (len(truth.get("means", {})), truth.get("questions"))
        return counted[0] if counted else "no number", "right (counts only)" if same else "wrong"
    shown = ", ".join(f"{name} {value:.4f}" for name, value in scores.items())
    if not shown and claim is not None:
        shown = f"{claim[0]} − {claim[1]} = {claim[2]:.4f}"
    if agrees(truth.get("means", {}), scores, claim):
        return shown, "right"
    other = any(agrees(means, scores, claim) for means in truth.get("other_means", ()))
    return shown, "right (another reading)" if other else "wrong"


def judged(truth: dict[str, Any], call: dict[str, Any], out: Path) -> tuple[str, str]:
    """What happened, and the judgment."""
    text, code, accept = call["full"]["text"], call["full"]["code"], truth["accept"]
    said = all(re.search(sign, text, re.IGNORECASE) for sign in truth.get("signs", ()))
    if "Traceback" in text:
        return "traceback", "wrong"
    if code != 0:
        rightly = bool({"refuse", "ask"} & set(accept))
        word = "refused rightly" if rightly else "refused wrongly"
        return f"refused ({code})", word if said or not rightly else word + ", reason not named"
    shown, word = answer(truth, text, out, call["summary"])
    return shown, word if word == "wrong" or said or "read" in accept else f"silent ({word})"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("layouts", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--truerank", default="truerank")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    folders = [f for f in sorted(options.layouts.iterdir()) if not options.only or f.name.split("-")[0] in options.only]

    def check(folder: Path) -> dict[str, Any]:
        out = options.out / folder.name
        if options.again and out.exists():
            shutil.rmtree(out)
        if (out / "calls.json").exists():
            tried = json.loads((out / "calls.json").read_text(encoding="utf-8"))
            return {**tried[-1], "summary": len(tried) - 1}
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        return run(options.truerank, folder, out)

    with ThreadPoolExecutor(options.jobs) as pool:
        calls = list(pool.map(check, folders))
    print(
        "| layout | expected | true means | what happened | given | dry run | judgment |\n|---|---|---|---|---|---|---|"
    )
    counts: Counter[str] = Counter()
    for folder, call in zip(folders, calls, strict=True):
        truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
        happened, judgment = judged(truth, call, options.out / folder.name)
        counts[judgment] += 1
        means = ", ".join(f"{name} {value:.4f}" for name, value in truth.get("means", {}).items())
        dry = "same" if (call["dry"]["code"] == 0) == (call["full"]["code"] == 0) else f"other ({call['dry']['code']})"
        cells = f"{'/'.join(truth['accept'])} | {means} | {happened}"
        print(f"| {folder.name} | {cells} | {call['given']} | {dry} | {judgment} |")
    print()
    for judgment, count in counts.most_common():
        print(f"- {judgment}: {count}")


if __name__ == "__main__":
    main()
