"""Commands in hostile surroundings: streams that are closed, full or of another encoding, environments, file names.

    python attacks/surroundings.py [--seconds 20] [--seed 1] [--case N] [--most-seconds 60]

Each case forks a process that gets names of files, a form of output, streams and an environment drawn from a seed;
every tenth starts an interpreter of its own with -OO, few addresses or an encoding. Ends with 1, and prints the case,
if the exit code is another than the same command has in good surroundings (2 where stdout is full), if there is a
traceback, a character that commands a terminal, a CSV cell that a spreadsheet would run, or an error without a place.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from campaigns import campaign
from processes import import_all

_NAMES: Final = (
    "plain", "κ–\U0001f600", "\x1b[2Jx", "=cmd|' !A0", "+1+1", "@x", "a b", "\u202eb", "-x", "a,b", 'a"b',
)  # fmt: skip
_ENCODINGS: Final = ("utf-8", "ascii", "latin-1", "cp437", "koi8-r", "utf-16", "shift_jis")
_FORMS: Final = (
    "--format text", "--format csv", "--format json", "--format markdown", "--plot --out OUT", "--out OUT",
)  # fmt: skip
_ENVIRONMENTS: Final = (
    {}, {"COLUMNS": "1"}, {"COLUMNS": "nonsense"}, {"TZ": "Pacific/Kiritimati"}, {"TZ": "nonsense"},
    {"LC_ALL": "tr_TR"}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, {"TERM": "nonsense"},
    {"HOME": "/proc/nothing"}, {"TMPDIR": "/proc/nothing"},
)  # fmt: skip
#: What only a new interpreter meets, and with what it ends.
_INTERPRETERS: Final = (
    ({"PYTHONOPTIMIZE": "2"}, 0, 2), ({"PYTHONOPTIMIZE": "1"}, 0, 0), ({"PYTHONIOENCODING": "ascii"}, 0, 0),
    ({"PYTHONUTF8": "0", "LC_ALL": "C"}, 0, 0), ({"MPLBACKEND": "nonsense"}, 0, 0), ({}, 700, 70), ({}, 1400, 70),
    ({"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}, 0, 0),
)  # fmt: skip
_PLACE: Final = re.compile(r"(warning: |\S.*?: )\S")


def tried(seed: int, case: int, told: list[str]) -> str:
    """One case: notes what was drawn, and returns how it ended. Raises what should not be raised."""
    draw = random.Random(f"{seed} {case}")
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        name = draw.choice(_NAMES)
        home = Path(folder) / "home"
        home.mkdir()
        (home / name).write_text("1 Q0 d 1 1.5 t\n")
        (home / "q").write_text("1 0 d 1\n")
        missing = draw.random() < 0.3
        form = draw.choice(_FORMS)
        words = ["evaluate", "--qrels", "nothing" if missing else "q", f"--run={name}", *form.split()]
        told += [repr(name), form, "missing" if missing else ""]
        good, out, said = _forked(words, home, ("plain", "plain"), "utf-8", {})
        if good not in (0, 2) or (good == 2 and not missing and name.isprintable()):
            raise ValueError(f"in good surroundings: {good} {said[-500:]}")
        _look(out, said, form)
        if draw.random() < 0.1:
            return _interpreter(draw, home, words, good, told)
        streams = draw.choice(("plain", "plain", "closed", "full", "gone")), draw.choice(("plain", "closed", "full"))
        encoding, environment = draw.choice(_ENCODINGS), draw.choice(_ENVIRONMENTS)
        told += [*streams, encoding, str(environment)]
        more = ["--overwrite"] if "--out" in words else []
        code, out, said = _forked([*words, *more], home, streams, encoding, environment)
        wanted = 2 if streams[0] == "full" else good
        if code != wanted:
            raise ValueError(f"ended with {code}, not {wanted}: {said[-500:]}")
        if encoding in ("utf-8", "ascii", "latin-1"):
            _look(out, said, form)
        return f"{wanted}, stdout {streams[0]}"


def _look(out: str, said: str, form: str) -> None:
    """Raises where something printed could harm, or says too little."""
    # What programs read stays as it is.
    for text, exact in ((out, "csv" in form or "json" in form), (said, False)):
        if "Traceback" in text or (re.search(r"[\x00-\x08\x0b-\x1f\x7f\x9b\u202e]", text) and not exact):
            raise ValueError(f"printed {text[-500:]!r}")
    for line in said.splitlines():
        if not _PLACE.match(line) or "Errno" in line:
            raise ValueError(f"an error without a place: {line!r}")
    if "csv" in form:
        for row in csv.reader(io.StringIO(out)):
            for cell in row:
                if cell[:1] in ("=", "@") or (cell[:1] in ("+", "-") and not re.fullmatch(r"[+-][\d.e-]+", cell)):
                    raise ValueError(f"a cell that would run: {cell!r}")


def _forked(
    words: list[str], home: Path, streams: tuple[str, str], encoding: str, environment: dict[str, str]
) -> tuple[int, str, str]:
    """Runs a command in a fork of this process; its exit code, and what it wrote to both streams."""
    logs = [home.parent / "stdout", home.parent / "stderr"]
    pid = os.fork()
    if not pid:
        code = 71
        try:
            os.chdir(home)
            os.environ.update(environment)
            sys.stdout = _stream(1, streams[0], logs[0], encoding)
            sys.stderr = _stream(2, streams[1], logs[1], encoding)
            from truerank.cli.app import main

            main(words)
        except SystemExit as ended:
            code = int(ended.code or 0)
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    texts = [log.read_bytes().decode(encoding, "replace") if log.exists() else "" for log in logs]
    for log in logs:
        log.unlink(missing_ok=True)
    return code, texts[0], texts[1]


def _stream(number: int, kind: str, log: Path, encoding: str) -> Any:
    """The stream that Python makes of such a file handle when it starts."""
    if kind == "closed":
        os.close(number)
        return None
    if kind == "gone":
        reading, writing = os.pipe()
        os.close(reading)
    else:
        writing = os.open("/dev/full" if kind == "full" else log, os.O_WRONLY | os.O_CREAT)
    os.dup2(writing, number)
    errors = "strict" if number == 1 else "backslashreplace"
    return io.TextIOWrapper(io.FileIO(number, "w"), encoding, errors)


def _interpreter(draw: random.Random, home: Path, words: list[str], good: int, told: list[str]) -> str:
    environment, megabytes, wanted = draw.choice(_INTERPRETERS)
    told.append(f"{environment} {megabytes}")
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))  # noqa: E731
    more = ["--overwrite"] if "--out" in words else []
    done = subprocess.run(
        [sys.executable, "-m", "truerank", *words, *more], cwd=home, env={**os.environ, **environment}, check=False,
        capture_output=True, preexec_fn=limit if megabytes else None,
    )  # fmt: skip
    said = done.stderr.decode("utf-8", "replace")
    if done.returncode != (wanted or good) and not (environment.get("LC_ALL") and done.returncode == 2):
        raise ValueError(f"ended with {done.returncode}, not {wanted or good}: {said[-500:]}")
    with contextlib.suppress(UnicodeDecodeError):
        _look(done.stdout.decode(), said, " ".join(words))
    return f"{done.returncode}, of an interpreter"


if __name__ == "__main__":
    import_all()
    sys.exit(campaign(__doc__, tried, most_seconds=60, most_megabytes=2000))
