"""Labels to and from other tools: JSONL, CSV, doccano, Label Studio, TREC qrels."""

from truerank.judging.exchange.exporting import Exported, Format, export_labels
from truerank.judging.exchange.importing import Imported, Unmatched, import_labels
from truerank.judging.exchange.outgoing import RULES, Which

__all__ = ["RULES", "Exported", "Format", "Imported", "Unmatched", "Which", "export_labels", "import_labels"]
