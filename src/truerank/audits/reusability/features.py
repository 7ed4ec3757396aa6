"""The features of HiCAL: one sparse row for each document of a collection."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from truerank.records import Document

__all__ = ["Features"]


@dataclass(frozen=True, eq=False)
class Features:
    """Documents as rows of a sparse matrix: (1 + ln tf) · ln(N/df), of length 1.

    Attributes:
        doc_ids: of the rows.
        matrix: SciPy CSR, shape (documents, terms), 32-bit floats.
    """

    doc_ids: tuple[str, ...]
    matrix: Any

    @classmethod
    def of_documents(cls, documents: Iterable[Document]) -> Features:
        """The features of documents in memory or from a stream.

        Args:
            documents: with distinct ids.
        """
        raise NotImplementedError
