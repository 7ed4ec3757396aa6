"""What is known about the pairs of the embedded sample."""

from __future__ import annotations

from typing import NamedTuple

from truerank.sources.sample import SAMPLE


class TruthRow(NamedTuple):
    """What is known about one pair of a topic and a training query.

    `field` ("title", "description" or "variant") names the text that the query derives from or resembles. `type` is
    the reformulation type against that text, `title_type` against the title: "identical", "generalization",
    "specialization", "reformulation", or "different topic" for a look-alike. Any pair without a row is not a leak.
    """

    test: str
    topic_id: str
    query_id: str
    field: str
    type: str
    title_type: str

    @property
    def leaks(self) -> bool:
        """Whether the training query expresses the topic's information need."""
        return self.type != "different topic"


def read_truth() -> tuple[TruthRow, ...]:
    """The planted pairs in the order of their topics; a leak that occurs in both sources has a row for each."""
    _, *lines = SAMPLE.truth.read_text(encoding="utf-8").splitlines()
    return tuple(TruthRow(*line.split("\t")) for line in lines)
