"""From pairs of texts to leaks: one row for each pair of texts and kind of leak."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from truerank.audits.leakage.training_examples.comparing import ComparedTexts
from truerank.audits.leakage.training_examples.kinds import KINDS
from truerank.audits.leakage.training_examples.locating import ExamplePlaces
from truerank.audits.leakage.training_examples.reading import TestTexts
from truerank.audits.leakage.training_examples.results import LEAKS

#: What the pairs show of their texts; the whole texts are joined.
_SHOWN: Final = ("test_text", "training_text")


def joined(test: TestTexts, found: ComparedTexts, located: ExamplePlaces, texts: Mapping[str, str]) -> pl.DataFrame:
    """The leaks of all kinds, columns as in `LEAKS`, in a stable order."""
    queries = pl.DataFrame(
        [(str(place), text.topic_id, text.field, text.text) for place, text in enumerate(test.texts)],
        schema={"test_id": pl.String, "topic_id": pl.String, "field": pl.String, "test_text": pl.String},
        orient="row",
    )
    documents = pl.DataFrame(
        {"test_id": list(texts), "doc_id": list(texts), "test_text": list(texts.values())},
        schema={"test_id": pl.String, "doc_id": pl.String, "test_text": pl.String},
    )
    relevant = list(test.relevant or ())
    found = found._replace(
        queries=found.queries.drop(_SHOWN),
        query_documents=found.query_documents.drop(_SHOWN),
        documents=found.documents.drop(_SHOWN),
    )
    frames = []
    for kind in KINDS:
        if kind.name == "pair":
            frames.append(_together(found, located, queries, documents))
            continue
        if kind.test == "query":
            pairs = (found.queries if "query" in kind.training else found.query_documents).join(queries, on="test_id")
        else:
            pairs = found.documents.join(documents, on="test_id")
            pairs = pairs.filter(pl.col("doc_id").is_in(relevant)) if kind.test == "relevant" else pairs
        places = located.places.filter(pl.col("role").is_in(kind.training))
        frames.append(pairs.join(places, on="training_id").with_columns(kind=pl.lit(kind.name)))
    order = {kind.name: place for place, kind in enumerate(KINDS)}
    whole = pl.concat([pl.DataFrame(schema=LEAKS), *(_shaped(frame) for frame in frames)])
    return whole.sort(
        pl.col("kind").replace_strict(order, return_dtype=pl.Int32),
        *("topic_id", "field", "doc_id", "source", "role", "training_text", "training_document", "example_id"),
        nulls_last=True,
        maintain_order=True,
    )


def _together(
    found: ComparedTexts, located: ExamplePlaces, queries: pl.DataFrame, documents: pl.DataFrame
) -> pl.DataFrame:
    """The pairs that leak together: the evidence of the query's best text, and that of the answer."""
    first = located.places.unique(["training_id", "source"], keep="first", maintain_order=True)
    text_of = first.select("training_id", "source", "training_text")
    asked = found.queries.join(queries, on="test_id").rename({"training_id": "query_training_id"})
    asked = asked.unique(["topic_id", "query_training_id"], keep="first", maintain_order=True)
    answered = found.documents.join(documents, on="test_id").select(
        "doc_id",
        document_training_id="training_id",
        document_text="test_text",
        document_evidence="evidence",
    )
    return (
        located.together.join(asked, on=["topic_id", "query_training_id"])
        .join(answered, on=["doc_id", "document_training_id"])
        .join(text_of, left_on=["query_training_id", "source"], right_on=["training_id", "source"])
        .join(
            text_of.rename({"training_text": "training_document"}),
            left_on=["document_training_id", "source"],
            right_on=["training_id", "source"],
        )
        .with_columns(kind=pl.lit("pair"), role=pl.lit("query+positive"))
    )


def _shaped(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with the columns of `LEAKS`; those that it lacks are null."""
    missing = [pl.lit(None, kind).alias(name) for name, kind in LEAKS.items() if name not in frame.columns]
    return frame.with_columns(missing).select(pl.col(name).cast(kind) for name, kind in LEAKS.items())
