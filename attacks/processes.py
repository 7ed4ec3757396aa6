"""Commands in forked processes, which can be killed."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from command_lines import words

__all__ = ["Attacked", "Running", "import_all", "run", "start"]


@dataclass(frozen=True)
class Attacked:
    """A command that is attacked.

    Attributes:
        line: the command line; OUT stands for the folder of everything that it writes.
        inputs: the folder that IN stands for.
        env: of the process, beside that of this one.
    """

    line: str
    inputs: Path
    env: Mapping[str, str]


@dataclass
class Running:
    """A command in a process of its own group, forked from this one, which has imported everything already."""

    pid: int
    log: Path
    code: int | None = None

    def wait(self, seconds: float = 600) -> int:
        """Waits until it ends; the exit code, negative for a signal.

        Raises:
            TimeoutError: it takes longer.
        """
        end = time.monotonic() + seconds
        while self.poll() is None:
            if time.monotonic() > end:
                self.kill()
                raise TimeoutError(f"more than {seconds:.0f} s")
            time.sleep(0.01)
        return self.code or 0

    def poll(self) -> int | None:
        """The exit code, None while it runs."""
        if self.code is None:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code

    def kill(self) -> None:
        """Kills its whole group, as a machine that goes down does."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        while self.poll() is None:
            time.sleep(0.002)

    @property
    def said(self) -> str:
        """What it printed."""
        return self.log.read_text(encoding="utf-8", errors="replace")


def run(attacked: Attacked, out: Path, seconds: float = 600, **env: str) -> Running:
    """Runs it to its end."""
    running = start(attacked, out, **env)
    running.wait(seconds)
    return running


def start(attacked: Attacked, out: Path, **env: str) -> Running:
    """Starts it."""
    out.mkdir(parents=True, exist_ok=True)
    import_all()
    handle, name = tempfile.mkstemp(prefix="attacked-", suffix=".log")
    pid = os.fork()
    if pid:
        os.close(handle)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.setpgid(pid, pid)
        return Running(pid, Path(name))
    code = 70
    try:
        os.setpgid(0, 0)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        os.environ.update({**attacked.env, **env})
        from truerank.cli.app import main

        sys.stdin = io.StringIO()
        main(words(attacked.line, IN=attacked.inputs, OUT=out))
    except SystemExit as error:
        code = int(error.code or 0)
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


@functools.cache
def import_all() -> None:
    """Imports what the commands need; nothing may be computed before the fork, or threads would be lost."""
    import importlib
    import pkgutil

    import truerank

    for name in (
        "scipy.special",
        "scipy.stats",
        "matplotlib.figure",
        "matplotlib.backends.backend_svg",
        "matplotlib.backends.backend_pdf",
        "torch",
        "safetensors.torch",
        "cyclopts",
        "rich.console",
        "Stemmer",
    ):
        importlib.import_module(name)
    for module in pkgutil.walk_packages(truerank.__path__, "truerank."):
        if not module.name.endswith("__main__") and "worker" not in module.name:
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)
