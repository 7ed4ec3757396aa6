"""A stopping rule: so many judgments, and no more."""

from __future__ import annotations

from dataclasses import dataclass

from truerank.audits.pool.stopping import AS_THE_TRACK, Decision, Keeping, TopicProgress


@dataclass(frozen=True)
class First:
    number: int = 3
    keeping: Keeping = AS_THE_TRACK

    @property
    def name(self) -> str:
        return f"first {self.number}"

    def stop(self, progress: TopicProgress) -> Decision:
        return Decision.stop("enough") if progress.judged >= self.number else Decision.go_on(self.number)
