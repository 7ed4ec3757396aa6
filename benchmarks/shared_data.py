"""Where the benchmarks find the real data, and how they print; after it, the modules of studies/ can be imported."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "studies"))

from common import (
    LOGS,
    ROOT,
    SHARED,
    TOPICS,
    log_path,
    peak_memory,
    rate_table,
    recombined,
    require_shared,
    table,
    topic_path,
)  # fmt: skip

__all__ = [
    "LOGS", "ROOT", "SHARED", "TOPICS", "log_path", "peak_memory", "rate_table", "recombined", "require_shared",
    "table", "topic_path",
]  # fmt: skip
