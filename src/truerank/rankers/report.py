"""How reranked runs and trained rankers are shown."""

from __future__ import annotations

from typing import Final

from truerank.rankers.base import DECIMALS
from truerank.rankers.reranking.reranked import Reranked
from truerank.rankers.training.train import Trained
from truerank.reports.results import Summary, place_note, summarises
from truerank.reports.tables import Column, Table
from truerank.text.printable import first_few

#: Ids that a table names; the JSON has all.
_NAMED: Final = 5


def reranked_table(found: Reranked) -> Table:
    """How many documents and passages were scored."""
    policy = f"{found.about['passages']} of the passages '{found.about['policy']}'"
    lacking = (
        (found.missing, "candidates are not in the collection and stand below what was reranked"),
        (found.no_text, "topics of the run have no text and were left as they are"),
    )
    return Table(
        f"{found.tag}: {found.about['run']['name']} to depth {found.about['depth']}, {policy}",
        (*Column.numbers(",d", "topics", "rows", "reranked", "passages", "scored", "from the cache"),),
        (
            (
                found.run["topic_id"].n_unique(),
                len(found.run),
                found.counts["documents"],
                found.counts["passages"],
                found.counts["asked"] - found.counts["hits"],
                found.counts["hits"],
            ),
        ),
        notes=(
            f"Ranker: {found.about['ranker']['name']}. Equal passages are scored once in a block.",
            f"Ties: scores with {DECIMALS} decimals, equal ones by document id ascending.",
            *(_named(ids, what) for ids, what in lacking if ids),
            *(f"Agreement with full precision: {name} {value:.6g}." for name, value in found.agreement.items()),
        ),
    )


@summarises(Reranked)
def _reranked(found: Reranked) -> Summary:
    written = {} if found.out is None else {"output": str(found.out)}
    return Summary((reranked_table(found),), {**found.json(), **written}, notes=place_note("run", found.out))


@summarises(Trained)
def _trained(trained: Trained) -> Summary:
    cut = trained.provenance.get("cut_queries")
    told = () if not cut else (f"{cut['cut']:,} of {cut['queries']:,} queries are cut to {cut['words']} words.",)
    return Summary((trained.fitted.table(), *told, f"saved: {trained.folder}"), trained.json())


def _named(ids: tuple[str, ...], what: str) -> str:
    return f"{len(ids)} {what}: {first_few(ids, _NAMED)}."
