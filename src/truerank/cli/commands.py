"""The commands by the import paths of their functions; everything else is declared there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple


class Program(NamedTuple):
    """A command line.

    Attributes:
        name: what is typed.
        package: whose docstring begins with what it is for.
        commands: import paths of functions by the words of their commands, in the order of the help.
        panels: of the help, with the commands and groups of each.
        groups: the packages of groups of commands.
    """

    name: str
    package: str
    commands: Mapping[str, str]
    panels: Mapping[str, tuple[str, ...]]
    groups: Mapping[str, str]

    def command(self, words: Sequence[str]) -> str | None:
        """The command that the words begin with."""
        listed = list(words)
        return next((name for name in self.commands if listed[: len(name.split())] == name.split()), None)


#: In the order of `truerank --help`.
COMMANDS: Final[Mapping[str, str]] = {
    "check": "truerank.claims.checking:check",
    "leakage audit": "truerank.audits.leakage.audit:audit",
    "leakage calibrate": "truerank.audits.leakage.commands:calibrate",
    "leakage clean": "truerank.audits.leakage.commands:clean",
    "leakage effect": "truerank.audits.leakage.effect:effect",
    "transfer match": "truerank.audits.transfer.matching.matches:match",
    "transfer snapshots": "truerank.audits.transfer.captures:snapshots",
    "transfer scan": "truerank.audits.transfer.scanning.scan:scan",
    "transfer estimate": "truerank.audits.transfer.estimates:estimate",
    "transfer carry": "truerank.audits.transfer.routes:carry",
    "transfer clean": "truerank.audits.transfer.removal:clean",
    "transfer select": "truerank.audits.transfer.selection:select",
    "survivorship profile": "truerank.audits.survivorship.profiles:profile",
    "survivorship map": "truerank.audits.survivorship.mapping:map",
    "survivorship depth": "truerank.audits.survivorship.depths:depth",
    "survivorship triples": "truerank.audits.survivorship.training_triples:triples",
    "survivorship evaluate": "truerank.audits.survivorship.evaluation:evaluate",
    "survivorship answerable": "truerank.audits.survivorship.answers:answerable",
    "collection audit": "truerank.audits.collection.audit:audit",
    "collection clean": "truerank.audits.collection.repairs:clean",
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
    "index": "truerank.lexical.building:index",
    "search": "truerank.lexical.searching:search",
    "rerank": "truerank.rankers.reranking.rerank:rerank",
    "evaluate": "truerank.measures.scoring:evaluate",
    "compare": "truerank.measures.run_comparison:compare",
    "explain": "truerank.measures.explanation:explain",
    "leaderboard": "truerank.audits.leaderboard.audit:leaderboard",
    "rules": "truerank.cli.rules:rules",
    "rule": "truerank.cli.rules:rule",
}
#: The panels of `truerank --help`, with the commands and groups of each.
PANELS: Final[Mapping[str, tuple[str, ...]]] = {
    "Is it true?": ("check", "compare", "evaluate", "explain", "leaderboard", "rules", "rule"),
    "Audits": ("leakage", "transfer", "survivorship", "collection", "pool", "track"),
    "Judge": ("judge",),
    "Search and score": ("index", "search", "rerank"),
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
}
#: `truerank`.
TRUERANK: Final = Program("truerank", "truerank", COMMANDS, PANELS, GROUPS)
