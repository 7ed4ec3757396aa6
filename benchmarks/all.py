"""Every benchmark at a small size: does it run, and what has changed?

    python benchmarks/all.py [--only WORD …] [--limit 300] [--record]

`studies/small_sizes.py` says what is printed and kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import shared_data  # noqa: F401 - the modules of studies/ can be imported after it
from small_sizes import Small, main

SMALL: Final[Mapping[str, Small]] = {
    "batch_sizes": Small(
        ["cacm --topics 1 --pairs 12 --repeats 1 --part scoring"],
        {"OpenVINO, pairs/s in batches of 1,024 tokens": r"openvino[^*]*\| 1024 \* \| #"},
    ),
    "check_scale": Small(
        ["scifact --topics 20"], {"seconds of a check": r"\| scifact \| 20 \| 20 \| 1000 \| 0 \| #"}, shared=False,
    ),
    "collection_scale": Small(
        ["2000x60"], {"seconds of an audit of 2,000 documents": r"\| all of [\d,]+ × \d+ \| #"}, shared=False,
    ),
    "encoders": Small(
        ["--queries 200 --rounds 2 --no-error"],
        {"ONNX Runtime, times sentence-transformers": r"\| ONNX Runtime fp32 \| [\d.]+ \| [\d.]+ \| [\d.]+ \| #",
         "OpenVINO, times sentence-transformers": r"\| OpenVINO fp32 \| [\d.]+ \| [\d.]+ \| [\d.]+ \| #"},
    ),
    "encoding_limits": Small(
        ["--queries 200 --rounds 1 --pairs 16", "--audit --rounds 1 --lines 6000 --sample 500 --only fast"],
        {"fp32 products, GFLOP/s": r"\| fp32 matrix products \| #",
         "OpenVINO fp32, times sentence-transformers": r"\| openvino fp32 \| [\d,]+ \| #",
         "reranking, times CrossEncoder": r"\| truerank, OpenVINO \| \d+ \| #",
         "audit of 6,000 lines, times sentence-transformers": r"\| \[fast\], exhaustive \|[^|]*\|[^|]*\|[^|]*\| #"},
    ),
    "hical": Small(["--sizes 10000 --steps 2"]),
    "judging_load": Small(
        ["--annotators 3 --labels 60 --kills 1"], {"labels lost": r"lost #, doubled", "labels doubled": r"doubled #;"},
        shared=False,
    ),
    "judging_store": Small(["--events 400 --items 200"], {"events": r'"events": #'}, shared=False),
    "kill_and_resume": Small(["--kills 1 --lines 1000"], {"restarts with the same bytes": "same bytes"}),
    "leakage_audit": Small(["speed --rounds 1 --sample 600 --only core"]),
    "leakage_memory": Small(["--exhaustive 1000 --prefilter 5000"]),
    "lexical": Small(["--only speed --documents 2000 --rounds 1"]),
    "matrix": Small(["examples --number 1000 --out matrix"]),
    "measures": Small(
        ["--topics 100 --depth 200 --repeats 3"],
        {"processor time, times ir_measures": r"ir_measures +[\d.]+ +[\d.]+ +[\d.]+ +#"}, shared=False,
    ),
    "near_duplicates": Small(["generate 1000 pages", "scale pages --workers 1"]),
    "pool_simulation": Small(
        ["scale --documents 6000 --rounds 1 --simulate 0 --work pools"], shared=False,
    ),
    "prefilter_scale": Small(["--sizes 10000 --plants 3"]),
    "prefilter_speed": Small(
        ["--lines 5000 --rounds 1"],
        {"filter, lines/s of one processor": r"\| filter \(all of these\) \| [\d.]+ \| [\d.]+ \| #"},
    ),
    "reranking": Small(
        ["cacm --topics 1 --pairs 40 --repeats 1"],
        {"torch, times CrossEncoder": r"\| truerank, torch \| \d+ \| #",
         "OpenVINO, times CrossEncoder": r"\| truerank, OpenVINO \| \d+ \| #",
         "OpenVINO, largest difference": r"\| truerank, OpenVINO \| \d+ \| [\d.]+ \| #"},
    ),
    "significance": Small(["--permutations 500"], shared=False),
    "start_up": Small(
        ["--rounds 1"],
        {
            "`import truerank`, s": r"\| import truerank \| now \| #",
            "seconds of a check of 40 questions": r"\| truerank check TABLE \| now \| #",
        },
        shared=False,
    ),
    "track_validate": Small(["--rows 10000"], shared=False),
    "training_throughput": Small(["--instances 4 --batch 4 --repeats 1"]),
    "transfer_match": Small(["--documents 200"], shared=False),
    "triples_scale": Small(["--pairs 20000 --triples 2000"], shared=False),
}  # fmt: skip

#: Scripts that are not run here, and why.
LEFT_OUT: Final[Mapping[str, str]] = {
    "all": "this one",
    "shared_data": "no script: the others read it",
    "guarded_training": "needs the packages datasets and accelerate",
    "gpu": "needs a GPU, and the package datasets",
    "planted_duplicates": "no script: near_duplicates reads it",
    "sarif_validation": "needs Microsoft's validator of SARIF",
    "generated_documents": "no script: lexical, check_scale and collection_scale read it",
    "pool_scale": "no script: pool_simulation runs it",
    "training_sets": "has no size below several minutes",
}


if __name__ == "__main__":
    main(Path(__file__).resolve().parent, SMALL, LEFT_OUT)
