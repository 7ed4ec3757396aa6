"""Every study at a small size: does it run, and what has changed?

    python studies/all.py [--only WORD …] [--limit 300] [--record]

`studies/small_sizes.py` says what is printed and kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from small_sizes import Small, main

SMALL: Final[Mapping[str, Small]] = {
    "assessors": Small(["--seeds 1 --resamples 20 --workers 1", "--panel --seeds 1 --resamples 20"]),
    "boards_by_hand": Small(["--draws 1 --models 30"], {"problems found": r"\| all \| yes \| #/36"}),
    "calibration": Small(["--samples 2 --size 100 --rule point"], shared=False),
    "collection_effect": Small(["--copies 60 --draws 50"]),
    "collection_planted": Small(["--collection cacm --only twice"], {"planted faults found": r"planted: # found"}),
    "collection_grids": Small(["--sets 2 --checks 1"], shared=False),
    "corrected_scores": Small(["coverage --simulations 10"]),
    "echo": Small(["plants --sets cacm --count 2"]),
    "explain": Small(["inject --sets cacm --pairs 3"]),
    "floors": Small(["claims --sets cacm --count 1"]),
    "label_noise": Small(["--sets cacm --draws 2"]),
    "leakage_sensitivity": Small(["titanic"], shared=False),
    "leaderboard": Small(["planted --draws 1"], {"planted mixes found": r"\| BOARD03 \| #/1"}),
    "leakage_verdicts": Small(["--sets 2 --lines 200"]),
    "peer_conventions": Small(
        ["--seeds 1 --only pytrec_eval scikit-learn bm25s"], {"measures matched": r"# of \d+ measures"}, shared=False
    ),
    "placebo": Small(
        [
            "level --remove topics --simulations 20 --resamples 99",
            "level --remove documents --only core17 --simulations 10",
        ]
    ),
    "plant_faults": Small(["pages --collection cacm"], {"pages": "# pages, "}),
    "prefilter": Small(["--coverage --lines 200"]),
    "qna": Small(["--queries 300 --passages 3000 --folder qna"], shared=False),
    "repeats": Small(["--draws 10"], shared=False),
    "second_hand": Small(["develop --per-cell 1"]),
    "selection": Small(["level --draws 4"], shared=False),
    "shuffled_runs": Small([""], {"shuffled runs called misplaced": r"dl19-passage \| shuffled \| 6 \| #"}),
    "severity": Small(["queries msmarco --topics 20"]),
    "smaller_corpus": Small(["--simulations 2"]),
    "spans": Small(["--sets cacm"]),
    "suspects": Small(["--collection cacm --seeds 1"], {"proposals of pooled plants": r"\| pooled \| relevant \| #"}),
    "survivorship_depths": Small(["--simulate 3 --queries 300"]),
    "tools": Small(["develop --only truerank --per-cell 1"]),
    "track_tables": Small([""]),
    "training": Small(["--instances 20 --seeds 1 --models knrm --collections cacm --workers 1"]),
    "transfer_planted": Small(["--scale 300"]),
    "vaswani_runs": Small(["runs"]),
}  # fmt: skip

#: Scripts that are not run here, and why.
LEFT_OUT: Final[Mapping[str, str]] = {
    "all": "this one",
    "common": "no script: the others read it",
    "small_sizes": "no script: it runs the others",
    "bi_encoder": "no script: fine_tuning reads it",
    "check": "makes runs of all its systems first: more than ten minutes",
    "check_plants": "no script: check reads it",
    "clean_claims": "makes runs of all its systems first: more than ten minutes",
    "collection_fit_large": "moves thousands of judgments: several minutes",
    "collection_fit": "moves the judgments of every collection at hand: several minutes",
    "gallery": "looks at every benchmark at hand: several minutes",
    "gallery_files": "no script: gallery reads it",
    "collection_findings": "audits every collection at hand: more than ten minutes",
    "fine_tuning": "trains for hours",
    "monobert": "trains for more than an hour",
    "look_alikes": "compares families of texts for several minutes",
    "peer_scores": "no script: peer_conventions runs it in the environment of the evaluators",
    "planted_leaks": "no script: tools reads it",
    "reformulation_types": "has one size, of several minutes",
    "reusability_held_out": "simulates the judging of every team that is left out: half an hour",
    "hand_texts": "has one size, of several minutes",
    "gpqa": "needs the scores of a package that truerank does not need",
    "hand_boards": "no script: boards_by_hand runs it",
    "hand_claims": "makes its runs first, and asks one check a plant: many minutes",
    "hand_collection": "no script: hand_claims reads it",
    "hand_data_faults": "no script: hand_claims reads it",
    "hand_harmless": "no script: hand_claims reads it",
    "hand_id_faults": "no script: hand_claims reads it",
    "aggregation_hand": "needs the kept cells of a reproduction",
    "hand_gallery": "looks at every benchmark at hand, and ends with 1 while a figure differs",
    "hand_layouts": "writes files, and prints no figures",
    "hand_layouts_check": "needs the files of hand_layouts, and starts a command for each",
    "hand_layouts_second": "writes files, and prints figures of the reader with --check only",
    "hand_layouts_third": "writes files, and prints figures of the reader with --check only",
    "hand_judgment_faults": "no script: hand_claims reads it",
    "hand_kinds": "no script: hand_claims reads it",
    "hand_rulers": "writes files, and prints no figures of the product",
    "hand_rulers_base": "no script: hand_rulers reads it",
    "hand_rulers_chunks": "no script: hand_rulers reads it",
    "hand_rulers_corpus": "no script: hand_rulers reads it",
    "hand_rulers_echo": "no script: hand_rulers reads it",
    "hand_rulers_labels": "no script: hand_rulers reads it",
    "hand_rulers_null": "no script: hand_rulers reads it",
    "hand_rulers_panels": "no script: hand_rulers reads it",
    "hand_texts_documents": "no script: hand_texts reads it",
    "hand_texts_queries": "no script: hand_texts reads it",
    "hand_texts_templates": "no script: hand_texts reads it",
    "hand_run_faults": "no script: hand_claims reads it",
    "hand_severity": "no script: severity reads it",
    "languages": "13 languages, of several minutes each",
    "rulers": "plants rulers and makes their runs first: many minutes",
    "second_hand_bench": "no script: second_hand reads it",
    "second_hand_plants": "no script: second_hand reads it",
    "second_hand_texts": "no script: second_hand reads it",
    "template_families": "no script: look_alikes reads it",
}


if __name__ == "__main__":
    main(Path(__file__).resolve().parent, SMALL, LEFT_OUT)
