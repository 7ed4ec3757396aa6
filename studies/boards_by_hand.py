"""What `leaderboard` finds in boards that another hand spoilt (`hand_boards.py`): by kind, with intervals.

    python studies/boards_by_hand.py [--seed 1] [--boards FOLDER] [--models 40] [--draws 20]

A problem is found where a finding names a model or a task that was touched. Other findings are false alarms, but for
`published` boards, which are left as they are, and for what models say they were trained on: relatives of tasks are in
the metadata of clean boards too, so that BOARD09 and BOARD22 count for problems of training only.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from common import ROOT, require_shared, table
from truerank.audits.leaderboard.board import read_board
from truerank.audits.leaderboard.comparability import findings
from truerank.measures.magnitudes import proportion

_TRAINING = ("BOARD09", "BOARD22")
_CLEAN = ("clean", "published")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--draws", type=int)
    parser.add_argument("--models", type=int)
    parser.add_argument("--boards", type=Path, help="boards that were written before")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = given.boards or Path(folder) / "boards"
        if given.boards is None:
            require_shared()
            command = [sys.executable, str(ROOT / "studies/hand_boards.py"), str(place), "--seed", str(given.seed)]
            for name in ("draws", "models"):
                command += [] if getattr(given, name) is None else [f"--{name}", str(getattr(given, name))]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        report(place)


def report(place: Path) -> None:
    found: dict[str, list[bool]] = defaultdict(list)
    codes: dict[str, Counter[str]] = defaultdict(Counter)
    alarms: dict[str, Counter[str]] = defaultdict(Counter)
    visible: dict[str, str] = {}
    for board in sorted(path for path in place.iterdir() if (path / "truth.json").is_file()):
        truth = json.loads((board / "truth.json").read_text(encoding="utf-8"))
        kind, touched = truth["kind"], [*truth["models"], *truth["tasks"]]
        visible[kind] = truth["visible"]
        own = [
            one
            for one in findings(read_board(board / "results"))
            if kind.startswith("trained") or one.rule.code not in _TRAINING
        ]
        named = [one for one in own if any(name in one.evidence for name in touched)]
        found[kind].append(bool(named))
        codes[kind].update({one.rule.code for one in named})
        alarms[kind].update({one.rule.code for one in own if one not in named})
    rows = []
    for kind in sorted(found, key=lambda kind: (visible[kind], kind)):
        hits = sum(found[kind])
        share = proportion(hits, len(found[kind]))
        by = ", ".join(f"{code} {count}" for code, count in codes[kind].most_common(4))
        other = ", ".join(f"{code} {count}" for code, count in alarms[kind].most_common(4))
        rows.append(
            (kind, visible[kind], f"{hits}/{len(found[kind])}", f"{share.low:.0%} to {share.high:.0%}", by, other)
        )
    for name in dict.fromkeys(visible.values()):
        own = [hit for kind, hits in found.items() if visible[kind] == name and kind not in _CLEAN for hit in hits]
        share = proportion(sum(own), len(own))
        rows.append(("all", name, f"{sum(own)}/{len(own)}", f"{share.low:.0%} to {share.high:.0%}", "", ""))
    print(table(("kind", "visible", "found", "interval", "by", "boards with other findings"), rows))


if __name__ == "__main__":
    main()
