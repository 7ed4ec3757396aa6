"""What changed a judging store, in the manifest of every command: one file beside the store for each change."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from truerank.judging.store import Store
from truerank.records import Input
from truerank.work.artifacts import digest
from truerank.work.runs import Run, plain, run


def store_input(store: str | Path | Store) -> Input:
    """A store in a manifest, without a hash: its bytes change with every judgment."""
    path = store.path if isinstance(store, Store) else Path(store)
    return Input(path.name, str(path), "store")


@contextlib.contextmanager
def store_change(
    command: str, store: str | Path | Store, inputs: Sequence[Input], options: Mapping[str, Any]
) -> Iterator[Run]:
    """A command that adds to a store. Its manifest is `STORE.COMMAND-HASH.manifest.json`.

    The hash is that of inputs and options: the same command again writes the same file, another one a file of its own.
    """
    own = store_input(store)
    known = digest({"inputs": [one._asdict() for one in inputs], "options": plain(options)})[:8]
    place = f"{own.source}.{command.rpartition(' ')[2]}-{known}"
    with run(command, (own, *inputs), options, place, file=True) as job:
        yield job
