"""Train against dev topics of the 13 languages of MIRACL, and logs that mix them: what the leakage audit says.

    python studies/languages.py sound [LANGUAGE …] [--show]   # nothing planted
    python studies/languages.py planted [LANGUAGE …]          # 20 leaks of each of nine kinds
    python studies/languages.py mixed [--show]                # all languages in one log, sound and planted

Dev topics whose normalised text is a train topic are taken out first. Printed: the verdict, topics with a leak,
topics with pairs to judge, pairs by evidence, and how many texts the encoder was not asked about. `--show` prints each
pair that stands for CONTAMINATED, to be looked at. The kinds are made by rules that know no language but its letters
and blanks; of each kind 20 plants stand among all train topics.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from common import SHARED, require_shared, table
from truerank import leakage
from truerank.options import Encoding
from truerank.sources import open_queries
from truerank.text.normalising import normalise

LANGUAGES = ("ar", "bn", "en", "fa", "fi", "fr", "id", "ja", "ru", "sw", "te", "th", "zh")
UNSPACED = ("ja", "th", "zh")
PLANTS = 20
MIXED = (300, 30)


def order(text: str, draw: random.Random) -> str | None:
    """The words in another order; of a script without blanks, its halves."""
    parts = text.split()
    if len(parts) < 3:
        half = len(text) // 2
        return text[half:] + text[:half] if half > 3 else None
    other = draw.sample(parts, len(parts))
    return " ".join(other) if other != parts else None


def ending(text: str, draw: random.Random) -> str | None:
    """The last letter of one long word is another of the text."""
    parts = text.split()
    long = [at for at, word in enumerate(parts) if len(word) > 4 and word[-1].isalpha()]
    if not long:
        return None
    at = draw.choice(long)
    parts[at] = parts[at][:-1] + draw.choice([sign for sign in text if sign.isalpha() and sign != parts[at][-1]])
    return " ".join(parts)


def letter(text: str, draw: random.Random) -> str | None:
    """Two letters inside a word change places."""
    places = [at for at in range(1, len(text) - 2) if text[at : at + 2].isalpha() and text[at] != text[at + 1]]
    if not places:
        return None
    at = draw.choice(places)
    return text[:at] + text[at + 1] + text[at] + text[at + 2 :]


def without_blanks(text: str, draw: random.Random) -> str | None:
    """All blanks removed; of a script without blanks, one put in."""
    if " " in text.strip():
        return text.replace(" ", "")
    at = draw.randrange(1, len(text)) if len(text) > 1 else 0
    return f"{text[:at]} {text[at:]}" if at else None


def word_less(text: str, draw: random.Random) -> str | None:
    """One word of at least six left out; of a script without blanks, one letter."""
    parts = text.split()
    if len(parts) >= 6:
        del parts[draw.randrange(len(parts))]
        return " ".join(parts)
    return text[:-1] if " " not in text and len(text) > 8 else None


KINDS: Mapping[str, Callable[[str, random.Random], str | None]] = {
    "marks and case": lambda text, draw: f"«{text.upper().rstrip('?؟？。. ')}» !",
    "`query:` in front": lambda text, draw: f"query: {text}",
    "a frame around": lambda text, draw: f"Instruct: given a question, retrieve passages\nQuery: {text}",
    "tags": lambda text, draw: f"<p>{text}</p>",
    "order": order,
    "another ending": ending,
    "two letters swapped": letter,
    "blanks": without_blanks,
    "a word less": word_less,
}


class Sets(NamedTuple):
    """Train and dev topics."""

    train: list[str]
    dev: list[str]


class Answer(NamedTuple):
    """What an audit says: its word, topics that leak and that have pairs to judge, pairs, and texts not asked about."""

    word: str
    leaking: int
    doubtful: int
    pairs: pl.DataFrame
    unread: tuple[int, int]

    def by_evidence(self) -> str:
        """Pairs, counted by what proposes them."""
        counts = self.pairs.group_by("evidence").len().sort("evidence").iter_rows()
        return ", ".join(f"{evidence} {count}" for evidence, count in counts) or "none"


def topics_of(language: str) -> Sets:
    """Without the dev topics that are train topics."""
    folder = SHARED / "topics/miracl"
    train, dev = (
        [topic.text for topic in open_queries(str(folder / f"{language}-{half}.tsv.gz"))] for half in ("train", "dev")
    )
    known = {normalise(text) for text in train}
    return Sets(train, [text for text in dev if normalise(text) not in known])


def audited(train: Sequence[str], dev: Sequence[str]) -> Answer:
    """One audit, with the packaged encoder."""
    log = {f"q{at}": text for at, text in enumerate(train)}
    result = leakage.audit(log, {str(at): text for at, text in enumerate(dev)}, encoding=Encoding("packaged"))
    ((_, test),) = result.summary["tests"].items()
    unread = sum(source["unread"] for source in result.summary["sources"].values())
    return Answer(
        test["verdict"], len(test["leaked_topics"]), test["below"]["topics"], result.candidates,
        (test["unread"], unread),
    )  # fmt: skip


def planted(dev: Sequence[str], kind: str, seed: int) -> dict[str, str]:
    """Plants of a kind, by the number of their topic."""
    draw = random.Random(f"{kind} {seed}")
    found: dict[str, str] = {}
    for at in draw.sample(range(len(dev)), len(dev)):
        text = KINDS[kind](dev[at], draw)
        if text is not None and text != dev[at]:
            found[str(at)] = text
        if len(found) == PLANTS:
            break
    return found


def seen(answer: Answer, plants: Mapping[str, str]) -> int:
    """Plants that are listed with their topic, above or below the threshold."""
    pairs = {(topic, text) for topic, text in answer.pairs.select("topic_id", "query_text").iter_rows()}
    return sum((topic, text) in pairs for topic, text in plants.items())


def show(answer: Answer) -> None:
    """The pairs of an audit that says CONTAMINATED."""
    if answer.word == "CONTAMINATED":
        for row in answer.pairs.iter_rows(named=True):
            print(f"  {row['evidence']} {row['similarity']:.3f}\n    {row['topic_text']}\n    {row['query_text']}")


def sound_row(name: str, sets: Sets, shown: bool) -> list[object]:
    """What is said where nothing was planted."""
    answer = audited(sets.train, sets.dev)
    if shown:
        show(answer)
    unread = f"{answer.unread[0]:,d} and {answer.unread[1]:,d}"
    return [
        name, len(sets.train), len(sets.dev), unread, answer.word, answer.leaking, answer.doubtful, answer.by_evidence()
    ]  # fmt: skip


def planted_row(name: str, sets: Sets) -> list[object]:
    """Plants and seen ones by kind; one audit of all."""
    plants = {kind: planted(sets.dev, kind, 0) for kind in KINDS}
    every = [text for one in plants.values() for text in one.values()]
    answer = audited([*sets.train, *every], sets.dev)
    return [name, *(f"{seen(answer, one)}/{len(one)}" if one else "–" for one in plants.values())]


def main() -> None:
    """The command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", choices=("sound", "planted", "mixed"))
    options.add_argument("languages", nargs="*", help=f"of {', '.join(LANGUAGES)}; by default all")
    options.add_argument("--show", action="store_true", help="print the pairs of CONTAMINATED")
    given = options.parse_args()
    require_shared()
    languages = given.languages or list(LANGUAGES)
    sets = {language: topics_of(language) for language in languages}
    if given.what == "mixed":
        draw = random.Random(13)
        train = [text for one in sets.values() for text in draw.sample(one.train, min(MIXED[0], len(one.train)))]
        dev = [text for one in sets.values() for text in draw.sample(one.dev, min(MIXED[1], len(one.dev)))]
        draw.shuffle(train)
        sets = {"all in one log": Sets(train, dev)}
    if given.what != "planted":
        header = ("topics", "train", "dev", "not asked of the encoder", "word", "leaking", "to judge", "pairs")
        print(table(header, [sound_row(name, one, given.show) for name, one in sets.items()]) + "\n", flush=True)
    if given.what != "sound":
        print(table(("topics", *KINDS), [planted_row(name, one) for name, one in sets.items()]))


if __name__ == "__main__":
    main()
