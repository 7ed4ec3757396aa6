"""Reworded test queries: what somebody else might have typed for the same need, made by rules and a seed.

They stand for leaking training queries where no query log is at hand. The rules and the words are this project's own:
politeness and function words go, some words are replaced by others of like meaning, parts change places. Nobody
searched with them: results that rest on them say so.
"""

from __future__ import annotations

import random
import re

__all__ = ["reworded"]

#: Words that say nothing about the need.
_EMPTY = frozenset((
    "a about also am an and any anything are article articles as at be been being but by can could deal dealing deals "
    "describe describing did discuss discussing do does either especially etc exist find for from give given has have "
    "having how i if in info information interested into is it its know like literature looking me more my not of on "
    "or other paper papers please publications related relating relevant some such tell than that the their them there "
    "these they this those to us use used uses using various want was we were what when where which who why will with "
    "would you"
).split())  # fmt: skip
_LIKE = {
    "algorithm": "method", "algorithms": "methods", "analysis": "study", "application": "use", "applications": "uses",
    "calculation": "computation", "characteristics": "properties", "communication": "message exchange",
    "comparison": "contrast", "computer": "machine", "computers": "machines", "construction": "building",
    "current": "electric current", "design": "development", "detection": "recognition", "determination": "finding",
    "development": "creation", "device": "apparatus", "devices": "apparatus", "distributed": "decentralised",
    "effect": "influence", "effects": "influence", "efficient": "fast", "electronic": "electrical",
    "equipment": "apparatus", "evaluation": "assessment", "experimental": "laboratory", "fast": "quick",
    "generation": "production", "high": "large", "image": "picture", "investigation": "study", "language": "notation",
    "languages": "notations", "large": "big", "low": "small", "measurement": "measuring", "measurements": "measuring",
    "method": "technique", "methods": "techniques", "model": "description", "models": "descriptions",
    "numerical": "numeric", "operating": "control", "optimization": "improvement", "parallel": "concurrent",
    "performance": "speed", "prediction": "forecast", "problem": "question", "problems": "questions",
    "procedure": "method", "production": "making", "programming": "coding", "programs": "routines",
    "propagation": "spreading", "properties": "characteristics", "retrieval": "search", "simulation": "modelling",
    "solution": "solving", "solutions": "solving", "storage": "memory", "structure": "organisation",
    "study": "investigation", "system": "installation", "systems": "installations", "technique": "procedure",
    "techniques": "procedures", "testing": "checking", "theoretical": "mathematical", "theory": "mathematics",
    "transmission": "sending", "variation": "change", "variations": "changes",
}  # fmt: skip
_WORD = re.compile(r"[^\W_]+(?:[-'][^\W_]+)*")
#: No query that people type is longer.
_LONGEST = 12


def reworded(text: str, count: int, seed: int) -> list[str]:
    """Other wordings of a query, all different from it and from each other; fewer where its words give no more.

    Args:
        text: of the topic.
        count: how many are wanted.
        seed: of all choices, together with the text.
    """
    words = [word.lower() for word in _WORD.findall(text)]
    kept = list(dict.fromkeys(word for word in words if word not in _EMPTY and len(word) > 1)) or words
    draw = random.Random(f"{seed}\0{text}")
    found: list[str] = []
    for _ in range(20 * count):
        made = " ".join(_changed(kept, draw))
        if made and made not in found and made != " ".join(words):
            found.append(made)
        if len(found) == count:
            break
    return found


def _changed(words: list[str], draw: random.Random) -> list[str]:
    made = [_LIKE[word] if word in _LIKE and draw.random() < 0.7 else word for word in words]
    if len(made) > 3:
        # The end comes first, as in "filters, design of": one cut, away from the ends.
        cut = draw.randrange(1, len(made))
        made = made[cut:] + made[:cut]
    if len(made) > 4 and draw.random() < 0.5:
        made.pop(draw.randrange(len(made)))
    return made[:_LONGEST]
