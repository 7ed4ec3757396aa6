"""Labels to and from other tools: JSONL, CSV, doccano, TREC qrels; those of Label Studio are read."""

from truerank.judging.exchange.exporting import RULES, LabelExport, LabelFormat, Which, export
from truerank.judging.exchange.importing import LabelImport, UnmatchedRecord, import_

__all__ = ["RULES", "LabelExport", "LabelFormat", "LabelImport", "UnmatchedRecord", "Which", "export", "import_"]
