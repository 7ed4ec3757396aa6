"""Attacks running commands: kills, full and read-only disks, two processes on one folder, planted texts.

    python attacks/running.py kills --times 104      each command killed at random moments, then run to its end
    python attacks/running.py disk --times 50        a disk that is full at random moments, then has room
    python attacks/running.py readonly --times 10    a disk that becomes read-only while a command runs
    python attacks/running.py two                    two processes that write to one folder
    python attacks/running.py repeat                 each command twice into one folder, then beside files of others
    python attacks/running.py kept --times 60        kept files of killed commands damaged, then run to their end
    python attacks/running.py workers                --workers 1, 2 and 7: the same bytes
    python attacks/running.py redaction --times 10   no planted text in any file of finished and killed audits

Disks are small tmpfs mounts, for which the process must be root; without it these parts say that they were skipped.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from commands import left_over, make, outputs
from processes import import_all, run, start
from small_data import PLANTED

#: The experiment trains networks in processes of their own, and takes longest.
COMMANDS: Final = (
    "audit",
    "audit by prefilter",
    "transfer scan",
    "pool simulate",
    "experiment run",
    "index",
    "rerank",
    "clean",
    "collection audit",
    "collection clean",
    "leakage examples",
    "check",
    "evaluate",
    "search",
    "transfer match",
    "redacted audit",
    "leakage matrix",
    "instances build",
)
_SLOW: Final = 120
#: So many kept files are damaged, each in a copy of its own, for one killed command.
_OF_ONE_KILL: Final = 3
#: Written anew, whole, whenever a cell of an experiment or an audit of a check is done.
_GROWING: Final = ("record.parquet", "leaked.parquet", "audits.json", "audits.json.sum")


class _Attack:
    """The commands, what an undisturbed run of each gives, and what went wrong.

    Attributes:
        faults: one line each.
    """

    def __init__(self, folder: Path, seed: int, names: Sequence[str]) -> None:
        self.folder = folder
        self.names = names
        self.commands = make(folder / "inputs")
        self.draw = random.Random(seed)
        self.faults: list[str] = []
        self._whole: dict[str, dict[str, str]] = {}
        self.seconds: dict[str, float] = {}

    def whole(self, name: str) -> dict[str, str]:
        """The files of an undisturbed run, by name, with their hashes."""
        if name not in self._whole:
            out = self.folder / f"whole-{name.replace(' ', '-')}"
            import_all()
            begun = time.monotonic()
            done = run(self.commands[name], out)
            self.seconds[name] = time.monotonic() - begun
            if done.code != 0:
                raise SystemExit(f"{name} fails undisturbed: {done.said[-2000:]}")
            self._whole[name] = outputs(out)
        return self._whole[name]

    def check(self, what: str, name: str, out: Path, said: str, code: int) -> None:
        """A run that came to its end must have given what an undisturbed one gives."""
        if code != 0:
            self.fault(f"{what}: {name} ended with {code}: {said[-300:]}")
            return
        found, whole = outputs(out), self.whole(name)
        if found != whole:
            differing = sorted(file for file in found | whole if found.get(file) != whole.get(file))
            self.fault(f"{what}: {name} gave other bytes in {', '.join(differing)[:300]}")
        if stale := [path for path in left_over(out) if not path.endswith(".lock")]:
            self.fault(f"{what}: {name} left {', '.join(stale)[:300]}")

    def check_half(self, what: str, name: str, out: Path) -> None:
        """What stands under a final name after a fault is whole."""
        whole = self.whole(name)
        for file, digest in outputs(out).items():
            if whole.get(file) != digest and not file.endswith(_GROWING):
                self.fault(f"{what}: {name} left half a file under its final name: {file}")

    def check_line(self, what: str, name: str, said: str, code: int, place: str = "") -> None:
        """A command that could not go on says why in one line, with the place."""
        lines = [line for line in said.splitlines() if line.strip()]
        if code != 2 or "Traceback" in said or not lines:
            self.fault(f"{what}: {name} ended with {code}: {said[-400:]}")
        elif place and place not in lines[-1]:
            self.fault(f"{what}: {name} does not name the place: {lines[-1][:300]}")

    def fault(self, text: str) -> None:
        """Remembers and prints a fault."""
        self.faults.append(" ".join(text.split()))
        print(f"    FAULT {self.faults[-1]}", flush=True)

    def moment(self, name: str) -> float:
        """A random moment in a run of this command."""
        self.whole(name)
        return self.draw.uniform(0.02, 0.9) * self.seconds[name]


def kills(attack: _Attack, times: int) -> str:
    """Kills each command in turn, sometimes twice, and runs it to its end."""
    tried, met, turn = 0, 0, 0
    while met < times:
        name = attack.names[turn % len(attack.names)]
        turn += 1
        out = attack.folder / "killed"
        shutil.rmtree(out, ignore_errors=True)
        for _ in range(attack.draw.choice((1, 1, 2))):
            moment = attack.moment(name)
            running = start(attack.commands[name], out)
            _sleep(running, moment)
            met += running.code is None
            running.kill()
            tried += 1
        attack.check_half("killed", name, out)
        done = run(attack.commands[name], out)
        attack.check("killed", name, out, done.said, done.code or 0)
        print(f"  {met} kills, the last of {name}", flush=True)
    return f"{met} kills before the end, and {tried - met} too late, of {len(attack.names)} commands"


def _sleep(running: object, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and running.poll() is None:  # type: ignore[attr-defined]
        time.sleep(0.005)


@contextlib.contextmanager
def _disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "attack", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def _can_mount(folder: Path) -> bool:
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return False
    try:
        with _disk(folder / "probe", 64):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


def disk(attack: _Attack, times: int) -> str:
    """Runs commands on disks of a random size, at most what they need; then there is room, and they finish."""
    if not _can_mount(attack.folder):
        return "SKIPPED: no disk can be mounted here (root is needed)"
    full, of_each = 0, -(-times // len(attack.names))
    for number in range(times):
        name = attack.names[number % len(attack.names)]
        need = _peak(attack, name)
        # The sizes are spread evenly from nothing to what the command needs, so that every write meets a full disk.
        share = (number // len(attack.names) + attack.draw.random()) / of_each
        with _disk(attack.folder / "disk", 8 + int(share * max(8, need * 0.95 - 8))) as place:
            # As deep as an undisturbed run: results hold paths that are seen from them.
            out = place
            done = run(attack.commands[name], out, TMPDIR=str(attack.folder))
            if done.code != 0:
                full += 1
                attack.check_line("full disk", name, done.said, done.code or 0, str(place))
                attack.check_half("full disk", name, out)
            subprocess.run(["mount", "-o", "remount,size=512m", str(place)], check=True)
            done = run(attack.commands[name], out, TMPDIR=str(attack.folder))
            attack.check("room again", name, out, done.said, done.code or 0)
        print(f"  {number + 1} disks, {full} full, the last of {name} (needs {need:,} KB)", flush=True)
    return f"{times} disks, {full} of them full before the end, of {len(attack.names)} commands"


_peaks: dict[str, int] = {}


def _peak(attack: _Attack, name: str) -> int:
    """How many kilobytes a command has on its disk at most."""
    if name not in _peaks:
        with _disk(attack.folder / "disk", 1 << 19) as place:
            running, most = start(attack.commands[name], place), 0
            while running.poll() is None:
                used = shutil.disk_usage(place)
                most = max(most, used.used >> 10)
                time.sleep(0.005)
            attack.check("large disk", name, place, running.said, running.code or 0)
        _peaks[name] = most
    return _peaks[name]


def readonly(attack: _Attack, times: int) -> str:
    """Makes the disk read-only at random moments; then it can be written again, and the command finishes."""
    if not _can_mount(attack.folder):
        return "SKIPPED: no disk can be mounted here (root is needed)"
    met = 0
    for number in range(times):
        name = attack.names[number % len(attack.names)]
        moment = attack.moment(name)
        with _disk(attack.folder / "disk", 1 << 19) as place:
            out = place
            running = start(attack.commands[name], out)
            _sleep(running, moment)
            # Refused while a file is open for writing: the next moment will do.
            while running.poll() is None:
                tried = subprocess.run(["mount", "-o", "remount,ro", str(place)], capture_output=True, check=False)
                if tried.returncode == 0:
                    break
            code = running.wait(_SLOW)
            if code != 0:
                met += 1
                attack.check_line("read-only", name, running.said, code)
                attack.check_half("read-only", name, out)
            subprocess.run(["mount", "-o", "remount,rw", str(place)], check=True)
            done = run(attack.commands[name], out)
            attack.check("writable again", name, out, done.said, done.code or 0)
        print(f"  {number + 1} disks, {met} read-only, the last of {name}", flush=True)
    return f"{times} disks made read-only, {met} of them before the end, of {len(attack.names)} commands"


def two(attack: _Attack, times: int) -> str:
    """Starts each command twice for one folder: one writes, the other is refused or comes later."""
    refused = 0
    for name in attack.names:
        attack.whole(name)
        out = attack.folder / "two"
        shutil.rmtree(out, ignore_errors=True)
        both = [start(attack.commands[name], out) for _ in range(2)]
        codes = [running.wait() for running in both]
        if 0 not in codes:
            attack.fault(f"two: of two processes of {name} none finished: {both[0].said[-200:]} {both[1].said[-200:]}")
        for running, code in zip(both, codes, strict=True):
            if code != 0:
                refused += 1
                attack.check_line("two", name, running.said, code)
        attack.check("two", name, out, "", 0)
        print(f"  two processes of {name}: {codes}", flush=True)
    return f"two processes of {len(attack.names)} commands, {refused} refused"


def repeat(attack: _Attack, times: int) -> str:
    """Runs each command twice into one folder, and then where files of others have the names of its results."""
    files = 0
    for name in attack.names:
        attack.whole(name)
        out = attack.folder / "repeated"
        shutil.rmtree(out, ignore_errors=True)
        for _ in range(2):
            done = run(attack.commands[name], out)
            attack.check("repeated", name, out, done.said, done.code or 0)
        for file in sorted(outputs(out)):
            if file.startswith(("out/audits", "out/cells", "out/collections", "out/sets")):
                continue
            files += 1
            shutil.rmtree(out)
            stranger = out / file
            stranger.parent.mkdir(parents=True)
            stranger.write_text("of others")
            done = run(attack.commands[name], out)
            if stranger.read_text(errors="replace") != "of others" or done.code != 2:
                attack.fault(f"others: {name} ended with {done.code} where {file} is of others: {done.said[-200:]}")
        shutil.rmtree(out)
        (out / "out" / ".work" / "theirs").mkdir(parents=True)
        run(attack.commands[name], out)
        if not (out / "out" / ".work" / "theirs").is_dir():
            attack.fault(f"others: {name} removed a .work that it did not make")
        print(f"  {name}, twice and beside {files} files", flush=True)
    return f"{len(attack.names)} commands twice, {files} files of others"


def kept(attack: _Attack, times: int) -> str:
    """Kills commands, damages some of the files that they keep, each in a copy, and runs the copies to their end."""
    damaged, turn, out, half = 0, 0, attack.folder / "kept", attack.folder / "half"
    while damaged < times and turn < 20 * times:
        name = attack.names[turn % len(attack.names)]
        turn += 1
        shutil.rmtree(out, ignore_errors=True)
        moment = attack.moment(name)
        running = start(attack.commands[name], out)
        _sleep(running, moment)
        running.kill()
        files = [file for file in sorted(out.rglob("*")) if file.is_file() and _is_kept(file.relative_to(out))]
        shutil.rmtree(half, ignore_errors=True)
        out.rename(half)
        for file in attack.draw.sample(files, min(_OF_ONE_KILL, len(files), times - damaged)):
            shutil.rmtree(out, ignore_errors=True)
            shutil.copytree(half, out, symlinks=True)
            content, way = file.read_bytes(), attack.draw.choice(sorted(_WAYS))
            changed = _WAYS[way](content)
            if changed == content:
                continue
            file.write_bytes(changed)
            damaged += 1
            what = f"{way} {file.relative_to(out)}"
            done = run(attack.commands[name], out)
            attack.check(what, name, out, done.said, done.code or 0)
            print(f"  {damaged} damaged: {what} of {name}", flush=True)
    return f"{damaged} damaged kept files of {len(attack.names)} commands"


def workers(attack: _Attack, times: int) -> str:
    """Runs each command that has the option with 1, 2 and 7 workers: only what says so may differ."""
    tried = 0
    for name in attack.names:
        command = attack.commands[name]
        if "--workers 1" not in command.line:
            continue
        found = {}
        for number in (1, 2, 7):
            shutil.rmtree(out := attack.folder / "workers", ignore_errors=True)
            line = command.line.replace("--workers 1", f"--workers {number}")
            done = run(replace(command, line=line), out)
            if done.code != 0:
                attack.fault(f"workers: {name} with {number} ended with {done.code}: {done.said[-300:]}")
            found[number] = {
                file: _NUMBER.sub("N", (out / file).read_text()) if file.endswith(_SAYS_HOW) else digest
                for file, digest in outputs(out).items()
            }
            tried += 1
            differing = [file for file in found[1] | found[number] if found[1].get(file) != found[number].get(file)]
            if differing:
                attack.fault(f"workers: {name} gave other bytes with {number} in {', '.join(sorted(differing))[:300]}")
        print(f"  1, 2 and 7 workers: {name}, {len(found[1])} files", flush=True)
    return f"{tried} runs with 1, 2 and 7 workers"


def _is_kept(file: Path) -> bool:
    """Unfinished work, without the lock, the names of what is written, and half-written files."""
    hidden = [part for part in file.parts if part.startswith(".")]
    return any(part.endswith(".work") for part in hidden) and file.name not in ("lock", "written") and len(hidden) == 1


#: The manifest says how many processes worked, and hashes the summaries that do.
_SAYS_HOW: Final = ("manifest.json", "summary.json")
_NUMBER: Final = re.compile(r'(?<="workers": )\d+|(?<="summary.json": ")\w+')
_WAYS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "emptied": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "flipped": lambda content: (
        content[: len(content) // 2] + bytes([content[len(content) // 2] ^ 16]) + content[len(content) // 2 + 1 :]
        if content
        else content
    ),
    "retyped": lambda content: b'{"error": "none"}\n',
}


def redaction(attack: _Attack, times: int) -> str:
    """Looks for planted texts in every file of finished and of killed redacted audits."""
    name, files = "redacted audit", 0
    for number in range(times + 1):
        out = attack.folder / "redacted"
        shutil.rmtree(out, ignore_errors=True)
        moment = attack.moment(name)
        running = start(attack.commands[name], out, TMPDIR=str(out))
        if number:
            _sleep(running, moment)
            running.kill()
        else:
            running.wait()
        for file in sorted(path for path in out.rglob("*") if path.is_file()):
            files += 1
            if PLANTED in _all_text(file):
                state = f"killed after {moment:.1f} s" if number else "finished"
                attack.fault(f"redaction: a planted text in {file.relative_to(out)} ({state})")
    return f"1 finished and {times} killed redacted audits, {files} files read"


def _all_text(file: Path) -> str:
    """The bytes of a file, and what stands in it where it is a compressed table."""
    found = file.read_bytes().decode("latin-1")
    code = (
        "import sys, polars as pl\n"
        "for read in (pl.read_parquet, pl.read_ipc):\n"
        "    try: print(read(sys.argv[1], glob=False).write_csv() if read is pl.read_parquet else "
        "read(open(sys.argv[1], 'rb')).select(pl.all().cast(pl.String, strict=False)).write_csv())\n"
        "    except Exception: pass\n"
    )
    if file.suffix in (".parquet", ".arrow", ".tmp"):
        # In a process of its own: here no thread may be started.
        found += subprocess.run(
            [sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=False
        ).stdout
    return found


def main() -> int:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["kills", "disk", "readonly", "two", "repeat", "kept", "workers", "redaction"])
    parser.add_argument("--times", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commands", nargs="*", default=list(COMMANDS))
    given = parser.parse_args()
    parts = {
        "kills": kills,
        "disk": disk,
        "readonly": readonly,
        "two": two,
        "repeat": repeat,
        "kept": kept,
        "workers": workers,
        "redaction": redaction,
    }
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        attack = _Attack(Path(folder), given.seed, given.commands)
        said = parts[given.part](attack, given.times)
    print(f"{given.part}: {said}; {len(attack.faults)} faults")
    return int(bool(attack.faults))


if __name__ == "__main__":
    sys.exit(main())
