"""Ready designs: the experiments of the papers, at full size and at sizes that run on one machine."""

from __future__ import annotations

from pathlib import Path


def ready(name: str) -> Path:
    """The file of the ready design of a name; any other name is that of a file."""
    files = {file.stem: file for file in Path(__file__).parent.glob("*.yaml")}
    return files.get(name, Path(name))
