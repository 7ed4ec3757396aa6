"""The commands by the import paths of their functions; everything else is declared there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple


class Program(NamedTuple):
    """A command line.

    Attributes:
        name: what is typed.
        sentence: what it is for.
        commands: import paths of functions by the words of their commands, in the order of the help.
        panels: of the help: what each command or group is for. Those called `MORE` wait for `--help-all`.
    """

    name: str
    sentence: str
    commands: Mapping[str, str]
    panels: Mapping[str, Mapping[str, str]]

    def command(self, words: Sequence[str]) -> str | None:
        """The command that the words begin with."""
        listed = list(words)
        return next((name for name in self.commands if listed[: len(name.split())] == name.split()), None)

    def help(self, *, every: bool) -> str:
        """What it offers: a line for each command or group; with `every`, the rest and the commands of groups too."""
        width = max(len(name) for named in self.panels.values() for name in named) + 1
        lines = [self.sentence, ""]
        for title, named in self.panels.items():
            if title == MORE and not every:
                lines.append(f"{title:<8} {', '.join(named)}: {self.name} --help-all")
                continue
            for place, (name, sentence) in enumerate(named.items()):
                lines.append(f"{'' if place else title:<8} {name:<{width}}{sentence}")
                inner = ", ".join(one.partition(" ")[2] for one in self.commands if one.startswith(f"{name} "))
                lines += [f"{'':<{width + 9}}{inner}"] if every and inner else []
        return "\n".join([*lines, "", f"Options of a command: {self.name} COMMAND --help. Version: --version.", ""])


#: In the order of the help.
COMMANDS: Final[Mapping[str, str]] = {
    "check": "truerank.claims.checking:check",
    "evaluate": "truerank.measures.scoring:evaluate",
    "compare": "truerank.measures.run_comparison:compare",
    "explain": "truerank.measures.explanation:explain",
    "leakage audit": "truerank.audits.leakage.audit:audit",
    "leakage calibrate": "truerank.audits.leakage.commands:calibrate",
    "leakage clean": "truerank.audits.leakage.commands:clean",
    "leakage effect": "truerank.audits.leakage.effect:effect",
    "collection audit": "truerank.audits.collection.audit:audit",
    "collection clean": "truerank.audits.collection.repairs:clean",
    "pool build": "truerank.audits.pool.pools:build",
    "pool topics": "truerank.audits.pool.judged_topics:topics",
    "pool simulate": "truerank.audits.pool.simulation:simulate",
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
    "judge new": "truerank.judging.samples:new",
    "judge serve": "truerank.judge:serve",
    "judge import": "truerank.judging.exchange.importing:import_",
    "judge export": "truerank.judging.exchange.exporting:export",
    "judge agreement": "truerank.judging.agreement:agreement",
    "judge table": "truerank.judging.tables:table",
    "judge model": "truerank.judge:model",
    "judge audit": "truerank.audits.assessors.audit:audit",
    "leaderboard": "truerank.audits.leaderboard.audit:leaderboard",
    "rule": "truerank.cli.rules:rule",
    "rules": "truerank.cli.rules:rules",
    "search": "truerank.lexical.searching:search",
    "rerank": "truerank.rankers.reranking.rerank:rerank",
    "index": "truerank.lexical.building:index",
    "track candidates": "truerank.audits.track.candidates:candidates",
    "track validate": "truerank.audits.track.validation:validate",
    "track select-topics": "truerank.audits.track.selection:select_topics",
    "track report": "truerank.audits.track.audit:report",
}
#: The title of what only `--help-all` shows.
MORE: Final = "More"
#: What `truerank --help` says of each command or group: a line of 80 characters each.
PANELS: Final[Mapping[str, Mapping[str, str]]] = {
    "Start": {
        "check": "Compares two systems and finds faults of the test.",
        "evaluate": "Scores systems.",
        "compare": "Compares several systems with one.",
        "explain": "Finds out why your score differs from a reported one.",
    },
    "One part": {
        "leakage": "Were test questions in the training data?",
        "collection": "Are documents, questions and labels sound?",
        "pool": "Are systems treated fairly that nobody judged?",
        "transfer": "Do labels still fit changed documents?",
        "survivorship": "Which questions did labelling drop?",
        "judge": "Can a model label in place of people?",
        "leaderboard": "Which ranks of a leaderboard hold?",
    },
    MORE: {
        "rule": "Explains one finding, by its code.",
        "rules": "Lists what audits can find.",
        "search": "Finds documents for each topic.",
        "rerank": "Ranks the first documents of a run again.",
        "index": "Builds an index of documents.",
        "track": "What do the runs of a track show?",
    },
}
#: `truerank`.
TRUERANK: Final = Program("truerank", "Is one search system really better than another?", COMMANDS, PANELS)
