"""The commands by the import paths of their functions; everything else is declared there."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Final

#: In the order of `truerank --help`.
COMMANDS: Final[Mapping[str, str]] = {
    "check": "truerank.claims.checking:check",
    "leakage audit": "truerank.audits.leakage.audit:audit",
    "leakage examples": "truerank.audits.leakage.training_data.examples:examples",
    "leakage matrix": "truerank.audits.leakage.training_data.matrix:matrix",
    "leakage calibrate": "truerank.audits.leakage.commands:calibrate",
    "leakage clean": "truerank.audits.leakage.commands:clean",
    "leakage effect": "truerank.audits.leakage.effect:effect",
    "leakage card": "truerank.audits.leakage.card:card",
    "transfer match": "truerank.audits.transfer.matching.matches:match",
    "transfer snapshots": "truerank.audits.transfer.captures:snapshots",
    "transfer scan": "truerank.audits.transfer.scanning.scan:scan",
    "transfer describe": "truerank.audits.transfer.descriptions:describe",
    "transfer estimate": "truerank.audits.transfer.estimates:estimate",
    "transfer carry": "truerank.audits.transfer.routes:carry",
    "transfer clean": "truerank.audits.transfer.removal:clean",
    "transfer select": "truerank.audits.transfer.selection:select",
    "transfer card": "truerank.audits.transfer.descriptions:card",
    "survivorship profile": "truerank.audits.survivorship.profiles:profile",
    "survivorship map": "truerank.audits.survivorship.mapping:map",
    "survivorship depth": "truerank.audits.survivorship.depths:depth",
    "survivorship simulate": "truerank.audits.survivorship.simulation:simulate",
    "survivorship triples": "truerank.audits.survivorship.training_triples:triples",
    "survivorship evaluate": "truerank.audits.survivorship.evaluation:evaluate",
    "survivorship answerable": "truerank.audits.survivorship.answers:answerable",
    "survivorship rescue": "truerank.audits.survivorship.rescued_queries:rescue",
    "collection audit": "truerank.audits.collection.audit:audit",
    "collection clean": "truerank.audits.collection.repairs:clean",
    "collection card": "truerank.audits.collection.card:card",
    "pool build": "truerank.audits.pool.pools:build",
    "pool topics": "truerank.audits.pool.judged_topics:topics",
    "pool simulate": "truerank.audits.pool.simulation:simulate",
    "judge new": "truerank.judging.samples:new",
    "judge serve": "truerank.judge:serve",
    "judge import": "truerank.judging.exchange.importing:import_",
    "judge export": "truerank.judging.exchange.exporting:export",
    "judge agreement": "truerank.judging.agreement:agreement",
    "judge table": "truerank.judging.tables:table",
    "judge model": "truerank.judge:model",
    "judge audit": "truerank.audits.assessors.audit:audit",
    "track candidates": "truerank.audits.track.candidates:candidates",
    "track validate": "truerank.audits.track.validation:validate",
    "track select-topics": "truerank.audits.track.selection:select_topics",
    "track report": "truerank.audits.track.audit:report",
    "instances build": "truerank.lab.instances.training_sets:build",
    "instances stats": "truerank.lab.instances.proofs:stats",
    "instances queries": "truerank.lab.instances.document_queries:queries",
    "instances export": "truerank.lab.instances.built:export",
    "experiment run": "truerank.lab.grid.execution:run",
    "experiment status": "truerank.lab.grid.execution:status",
    "experiment designs": "truerank.lab.ready:designs",
    "experiment report": "truerank.lab.reporting.experiment_report:report",
    "index": "truerank.lexical.building:index",
    "search": "truerank.lexical.searching:search",
    "tune": "truerank.lexical.tuning:tune",
    "rerank": "truerank.rankers.reranking.rerank:rerank",
    "train": "truerank.lab.train:train",
    "evaluate": "truerank.measures.scoring:evaluate",
    "compare": "truerank.measures.run_comparison:compare",
    "explain": "truerank.measures.explanation:explain",
    "leaderboard": "truerank.audits.leaderboard.audit:leaderboard",
    "merge": "truerank.work.merging:merge",
    "machine": "truerank.rankers.machine:machine",
    "rules": "truerank.cli.rules:rules",
    "rule": "truerank.cli.rules:rule",
}
#: The panels of `truerank --help`, with the commands and groups of each.
PANELS: Final[Mapping[str, tuple[str, ...]]] = {
    "Is it true?": ("check", "compare", "evaluate", "explain", "leaderboard", "rules", "rule"),
    "Audits": ("leakage", "transfer", "survivorship", "collection", "pool", "track"),
    "Judge": ("judge",),
    "Search and score": ("index", "search", "tune", "rerank", "machine"),
    "Lab": ("instances", "experiment", "train", "merge"),
}
#: The packages of groups of commands.
GROUPS: Final[Mapping[str, str]] = {
    "leakage": "truerank.audits.leakage",
    "transfer": "truerank.audits.transfer",
    "survivorship": "truerank.audits.survivorship",
    "pool": "truerank.audits.pool",
    "judge": "truerank.judge",
    "collection": "truerank.audits.collection",
    "track": "truerank.audits.track",
    "instances": "truerank.lab.instances",
    "experiment": "truerank.lab",
}


def first_sentence(path: str) -> str:
    """The first sentence of the docstring of a function or package, read from its file: nothing is imported."""
    module, _, name = path.partition(":")
    place = Path(__file__).parent.parent.joinpath(*module.split(".")[1:])
    file = place.with_suffix(".py")
    file = file if file.is_file() else place / "__init__.py"
    tree = ast.parse(file.read_text(encoding="utf-8"))
    node = next(one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == name) if name else tree
    return (ast.get_docstring(node) or "").partition("\n\n")[0].replace("\n", " ")
