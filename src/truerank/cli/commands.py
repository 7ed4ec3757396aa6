"""The commands by the import paths of their functions; everything else is declared there."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Final

__all__ = ["COMMANDS", "GROUPS", "first_sentence"]

#: In the order of `truerank --help`.
COMMANDS: Final[Mapping[str, str]] = {
    "leakage audit": "truerank.audits.leakage.audit:audit",
    "leakage calibrate": "truerank.audits.leakage.commands:calibrate",
    "leakage clean": "truerank.audits.leakage.commands:clean",
    "leakage effect": "truerank.audits.leakage.effect:effect",
    "leakage card": "truerank.audits.leakage.card:card",
    "track candidates": "truerank.audits.track.candidates:candidates",
    "track validate": "truerank.audits.track.validating:validate",
    "track select-topics": "truerank.audits.track.selecting:select_topics",
    "track report": "truerank.audits.track.reporting:report",
    "evaluate": "truerank.measures.scoring:evaluate",
    "compare": "truerank.measures.run_comparison:compare",
    "index": "truerank.lexical.building:index",
    "search": "truerank.lexical.searching:search",
    "tune": "truerank.lexical.tuning:tune",
    "rerank": "truerank.rankers.reranking.rerank:rerank",
    "train": "truerank.rankers.training.train:train",
    "demo": "truerank.audits.leakage.demo:demo",
}
#: The packages of groups of commands.
GROUPS: Final[Mapping[str, str]] = {"leakage": "truerank.audits.leakage", "track": "truerank.audits.track"}


def first_sentence(path: str) -> str:
    """The first sentence of the docstring of a function or package, read from its file: nothing is imported.

    Args:
        path: `package.module:function`, or a package.
    """
    module, _, name = path.partition(":")
    place = Path(__file__).parent.parent.joinpath(*module.split(".")[1:])
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    tree = ast.parse(file.read_text(encoding="utf-8"))
    if name:
        node = next(one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == name)
        text = ast.get_docstring(node)
    else:
        text = ast.get_docstring(tree)
    return (text or "").partition("\n\n")[0].replace("\n", " ")
