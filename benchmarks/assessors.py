"""Systems and models with planted faults, over pairs that people judged."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl


class Systems(NamedTuple):
    """Runs by name, the family of each, and the style of each pair that a family looks for."""

    runs: dict[str, pl.DataFrame]
    families: dict[str, str]
    style: np.ndarray
    tastes: np.ndarray


def make_systems(qrels: pl.DataFrame, seed: int, *, systems: int = 40, families: int = 4) -> Systems:
    """Runs over judged pairs by a stated model.

    A system scores a pair by q·g + t·s_f + 0.7·e_s + ε: g is people's grade, the quality q falls evenly from 1 to 0.25
    over the systems; s_f is the style that the system's family looks for, a standard normal number for each pair, with
    the weight t = 0.5; e_s is the system's own taste, and ε noise, standard normal both. Families hold every fourth
    system, so that each has good and weak ones.
    """
    draw = np.random.default_rng(seed)
    pairs = len(qrels)
    grade = qrels["relevance"].to_numpy().astype(float)
    style = draw.normal(size=(families, pairs))
    tastes = draw.normal(size=(systems, pairs))
    quality = np.linspace(1.0, 0.25, systems)
    runs, names = {}, {}
    for system in range(systems):
        family = system % families
        score = quality[system] * grade + 0.5 * style[family] + 0.7 * tastes[system] + draw.normal(size=pairs)
        name = f"system{system:02d}"
        runs[name] = qrels.select("topic_id", "doc_id").with_columns(
            pl.Series("score", score), pl.Series("rank", np.zeros(pairs, dtype=np.int64))
        )
        names[name] = f"family{family}"
    return Systems(runs, names, style, tastes)
