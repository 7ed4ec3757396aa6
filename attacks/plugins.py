"""An encoder of another package that lies: raises, ends the process, or gives what are no vectors.

    python attacks/plugins.py [--seconds 20] [--seed 1] [--case N] [--most-seconds 60]

Each case draws a lie, the call of the encoder from which on it is told, and a command that uses encoders. Ends with 1,
and prints the case, if a command that met the lie ends with another code than 2, or its one line does not name the
encoder and its package.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from pathlib import Path

os.environ["ATTACK_SECONDS"] = "0"
sys.path[:0] = [str(Path(__file__).resolve().parent / "plugin")]

from attack_liar import LIES, chosen  # noqa: E402 - its place has just been named

from campaigns import campaign  # noqa: E402
from command_lines import words  # noqa: E402
from options import call  # noqa: E402

_LINES = (
    "leakage audit --train IN/train.tsv --test IN/test.tsv --encoder liar --threshold 0.95 --mode exhaustive --out OUT",
    "leakage audit --train IN/train.tsv --test IN/test.tsv --encoder liar --threshold 0.95 --mode prefilter --out OUT",
    "leakage matrix IN/suite.yaml --encoder liar --out OUT",
    "leakage examples --train IN/examples.jsonl --test IN/test.tsv --semantic queries --encoder liar"
    " --threshold 0.95 --workers 1 --out OUT",
)


def tried(seed: int, case: int, told: list[str]) -> str:
    """One case: notes what was drawn, and returns how it ended. Raises what should not be raised."""
    draw = random.Random(f"{seed} {case}")
    lie, late = draw.choice(sorted(LIES)), draw.choice((0, 1, 1, 2, 3, 4, 6, 9))
    line = draw.choice(_LINES)
    told += [repr(lie), f"from call {late} on:", line]
    chosen.update(lie=lie, call=late, calls=0)
    # Processes that work for the command read it there.
    os.environ.update(ATTACK_LIE=lie, ATTACK_CALL=str(late))
    with tempfile.TemporaryDirectory(prefix="attack-") as name:
        folder = Path(name)
        texts = [" ".join(draw.choices(("red", "fox", "blue", "sea", "house", "sky"), k=5)) for _ in range(40)]
        for file, some in (("train.tsv", texts), ("test.tsv", texts[:5])):
            (folder / file).write_text("".join(f"{number}\t{text}\n" for number, text in enumerate(some)))
        (folder / "examples.jsonl").write_text(
            "".join(f'{{"query": "{text}", "positive": "{text} again"}}\n' for text in texts)
        )
        (folder / "suite.yaml").write_text(
            f"training:\n  a: {{queries: {folder}/train.tsv}}\ntest:\n  b: {{topics: {folder}/test.tsv}}\n"
        )
        code, said = call(words(line, IN=folder, OUT=folder / "out"))
    last = said.strip().splitlines()[-1] if said.strip() else ""
    if code in (0, 1) and late and chosen["calls"] < late:
        return "not met"
    if code != 2 or "liar" not in last or "attack-encoder 1.0" not in last or not last.isprintable():
        raise ValueError(f"ended with {code}: {last!r}")
    return "refused"


if __name__ == "__main__":
    sys.exit(campaign(__doc__, tried, most_seconds=60, most_megabytes=4000))
