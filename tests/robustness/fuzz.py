"""Fuzzes every reader: guided by coverage where atheris is installed, otherwise by seeded mutations.

    python tests/robustness/fuzz.py [--runs 20000] [--seed 1] [READER …]

Each reader runs in a process of its own, within 8 GiB of addresses. Ends with 1, and keeps the input in a file, where a
reader ends in anything but a line for the user, or takes more than 10 seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

os.environ.setdefault("POLARS_MAX_THREADS", "1")
SECONDS, ADDRESSES = 10, 8 << 30


def fuzzed(name: str, runs: int, seed: int) -> int:
    """Runs one reader on many inputs, until one breaks it."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    try:
        import atheris
    except ImportError:
        atheris = None
    with atheris.instrument_imports(include=["truerank"]) if atheris else contextlib.nullcontext():
        from every_reader import READERS, SCRATCH, attempt, mutated
    reader, scratch = READERS[name], Path(tempfile.mkdtemp(dir=SCRATCH))

    def one(data: bytes) -> None:
        begun, fault = time.monotonic(), ""
        try:
            said = attempt(reader, data, scratch)
            fault = "a message of several lines" if "\n" in said else ""
        except Exception:
            fault = traceback.format_exc()
        if time.monotonic() - begun > SECONDS:
            fault = "a hang"
        if fault:
            kept = Path(tempfile.mkstemp(prefix=f"fuzz-{name.replace(' ', '-')}-")[1])
            kept.write_bytes(data)
            print(f"{name}: {fault}\nThe input is kept in {kept}.", flush=True)
            os._exit(1)

    if atheris is None:
        for data in mutated(reader.inputs(), runs, seed):
            one(data)
        return 0
    corpus = scratch / "corpus"
    corpus.mkdir()
    for number, data in enumerate(reader.inputs()):
        (corpus / f"{number}").write_bytes(data)
    words = [sys.argv[0], str(corpus), f"-runs={runs}", f"-seed={seed}", "-max_len=16384", "-verbosity=0"]
    atheris.Setup(words, one)
    atheris.Fuzz()
    return 0


def main() -> int:
    """Runs the readers, one process after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("readers", nargs="*", help="names of readers; by default all")
    parser.add_argument("--runs", type=int, default=20_000, help="inputs for each reader")
    parser.add_argument("--seed", type=int, default=1, help="of all draws")
    parser.add_argument("--alone", action="store_true", help="the one reader, in this process")
    given = parser.parse_args()
    if given.alone:
        return fuzzed(given.readers[0], given.runs, given.seed)
    from every_reader import READERS

    broken = []
    for name in given.readers or READERS:
        words = [sys.executable, __file__, name, "--alone", "--runs", str(given.runs), "--seed", str(given.seed)]
        code = subprocess.run(words, check=False).returncode
        print(f"{name}: {'no fault' if code == 0 else f'ended with {code}'}", flush=True)
        broken += [name] * (code != 0)
    print(f"faults in {', '.join(broken)}" if broken else "no faults")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
