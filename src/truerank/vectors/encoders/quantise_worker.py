"""Quantises one graph with NNCF; run as a script in a process of its own (see `openvino`)."""

from __future__ import annotations

import json
import sys
from typing import Any, Final

# How far outliers of activations move into the weights (SmoothQuant, Xiao et al. 2023); at NNCF's own 0.95 the largest
# error of a cosine above 0.85 was a third larger.
_SMOOTHING: Final = 0.8


def main() -> None:
    """Reads the task as JSON from stdin (graph, input, ids, target) and writes the quantised graph to the target."""
    # NNCF reports its use to its makers through this package, unasked, and does without where it cannot be imported.
    # Whoever audits a private log wants no such messages.
    sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
    import nncf
    import numpy as np
    import openvino

    task: dict[str, Any] = json.load(sys.stdin)
    items = [{task["input"]: np.array([ids], dtype=np.int64)} for ids in task["ids"]]
    smoothing = nncf.AdvancedSmoothQuantParameters(matmul=_SMOOTHING)
    quantised = nncf.quantize(
        openvino.Core().read_model(task["graph"]),
        nncf.Dataset(items),
        model_type=nncf.ModelType.TRANSFORMER,
        subset_size=len(items),
        advanced_parameters=nncf.AdvancedQuantizationParameters(smooth_quant_alphas=smoothing),
    )
    openvino.save_model(quantised, task["target"], compress_to_fp16=False)


if __name__ == "__main__":
    main()
