"""Where what is made once is kept, and how it gets there whole."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from truerank.errors import InputError


def user_cache_folder() -> Path:
    """The folder for graphs and quantised models: `TRUERANK_CACHE`, else the platform's cache folder."""
    if chosen := os.environ.get("TRUERANK_CACHE"):
        return Path(chosen).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "truerank"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "truerank" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "truerank"


def publish_folder(target: Path, write: Callable[[Path], None]) -> None:
    """Writes a folder under a temporary name and moves it into place, so that nobody sees half of it."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise _not_writable(target.parent, error) from error
    try:
        write(temporary)
        try:
            temporary.replace(target)
        except OSError:
            # A folder cannot replace a filled one: another process was first, with the same content.
            if not target.is_dir():
                raise
    except OSError as error:
        raise _not_writable(target, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _not_writable(folder: Path, error: OSError) -> InputError:
    reason = error.strerror or str(error)
    return InputError(f"cannot be written ({reason})", "set TRUERANK_CACHE to a folder with room", where=folder)
