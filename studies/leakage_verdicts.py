"""What a verdict is worth: test sets with planted leaks of known kinds, audited one by one.

    python studies/leakage_verdicts.py [--sets 200] [--lines 3000] [--seed 1] [--work DIR]

Every set has 20 to 40 real topics and 1 to 5 leaks of one kind in the log (every tenth set has none). The rewordings
are made here, with word lists and templates of their own; the sensitivity check has others. Topics that the real
log leaks already (the same words, or a pair that an audit finds before anything is planted) are left out, so that the
truth is what was planted.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from common import LOGS, SHARED, log_path, require_shared, table, topic_path
from truerank import leakage
from truerank.options import Encoding
from truerank.sources import open_queries, read_topics

Rewording = Callable[[list[str], random.Random], list[str] | None]

_LITTLE: Final = frozenset(
    "a an the of in on at for to from by with and or is are was were be been do does did has have had what which who"
    " whom whose where when why how that this these those it its as about into over than".split()
)
_KEYS: Final = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_SHORT: Final = {
    "united states": "usa", "united kingdom": "uk", "european union": "eu", "united nations": "un",
    "artificial intelligence": "ai", "information technology": "it", "blood pressure": "bp", "coronavirus": "cov",
    "government": "govt", "international": "intl", "department": "dept", "organization": "org", "university": "univ",
    "television": "tv", "versus": "vs", "doctor": "dr", "percent": "pct", "million": "m", "vitamin": "vit",
    "world health organization": "who", "human immunodeficiency virus": "hiv", "magnetic resonance imaging": "mri",
    "hypertension": "htn", "management": "mgmt", "association": "assoc", "and": "&", "kilometers": "km",
    "technology": "tech", "laboratory": "lab", "influenza": "flu", "examination": "exam", "application": "app",
}  # fmt: skip
_ALIKE: Final = {
    "illness": "sickness", "disease": "disorder", "cancer": "tumor", "drug": "medication", "drugs": "medications",
    "cause": "source", "causes": "reasons", "effect": "impact", "effects": "consequences", "treatment": "therapy",
    "car": "automobile", "cars": "automobiles", "movie": "film", "jobs": "employment", "buy": "purchase",
    "kids": "children", "children": "kids", "risk": "danger", "risks": "hazards", "law": "legislation",
    "laws": "statutes", "growth": "increase", "reduce": "lower", "reduces": "decreases", "increases": "raises",
    "cells": "cell lines", "protein": "polypeptide", "diet": "nutrition", "heart": "cardiac", "kidney": "renal",
    "liver": "hepatic", "accident": "crash", "accidents": "crashes", "ship": "vessel", "teacher": "educator",
    "crime": "offence", "trade": "commerce", "money": "cash", "big": "large", "small": "little", "house": "home",
    "airport": "airfield", "security": "safety", "weather": "climate", "war": "conflict", "food": "nourishment",
    "pregnancy": "gestation", "women": "females", "men": "males", "doctor": "physician", "virus": "pathogen",
    "infection": "contagion", "death": "mortality", "pain": "ache", "school": "academy", "energy": "power",
    "ocean": "sea", "forest": "woodland", "employees": "staff", "salary": "wage", "begin": "start", "fast": "quick",
}  # fmt: skip
_FURTHER: Final = ("2004", "in canada", "for beginners", "statistics", "pdf", "history", "in africa", "new", "free")


def order(words: list[str], draw: random.Random) -> list[str] | None:
    """Two neighbouring parts change places."""
    if len(words) < 2:
        return None
    cut = draw.randrange(1, len(words))
    return words[cut:] + words[:cut]


def inflection(words: list[str], draw: random.Random) -> list[str] | None:
    """One content word in singular or plural, or another form of a verb."""
    places = [i for i, word in enumerate(words) if word not in _LITTLE and word.isalpha() and len(word) > 3]
    if not places:
        return None
    place = draw.choice(places)
    word = words[place]
    if word.endswith("ies"):
        other = word[:-3] + "y"
    elif word.endswith(("ches", "shes", "xes", "sses")):
        other = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        other = word[:-1]
    elif word.endswith("ing") and len(word) > 6:
        other = word[:-3]
    elif word.endswith("y") and word[-2] not in "aeiou":
        other = word[:-1] + "ies"
    else:
        other = word + ("es" if word.endswith(("ch", "sh", "x", "s")) else "s")
    return [*words[:place], other, *words[place + 1 :]]


def stop_words(words: list[str], draw: random.Random) -> list[str] | None:
    """The little words go; where there are none, one or two come."""
    kept = [word for word in words if word not in _LITTLE]
    if kept and len(kept) < len(words):
        return kept
    for _ in range(draw.randrange(1, 3)):
        place = draw.randrange(len(words))
        words = [*words[:place], draw.choice(("the", "of", "in", "a", "for", "and")), *words[place:]]
    return words


def question(words: list[str], draw: random.Random) -> list[str] | None:
    """A topic becomes a question, a question loses its frame."""
    if words[0] in ("what", "how", "why", "where", "when", "who", "which", "is", "are", "does", "do", "can"):
        rest = [word for word in words[1:] if word not in ("is", "are", "was", "were", "does", "do", "did")]
        return rest or None
    frame = draw.choice(("what is the", "what are", "how is", "where are the", "who has"))
    return [*frame.split(), *words]


def typing_error(words: list[str], draw: random.Random) -> list[str] | None:
    """Two letters swapped, one dropped, doubled, or hit beside."""
    places = [i for i, word in enumerate(words) if len(word) > 3 and word.isascii() and word.isalpha()]
    if not places:
        return None
    place = draw.choice(places)
    word = words[place]
    at = draw.randrange(len(word) - 1)
    row = next(keys for keys in _KEYS if word[at] in keys)
    beside = row[max(0, row.index(word[at]) - 1)] if word[at] != row[0] else row[1]
    wrong = draw.choice(
        (
            word[:at] + word[at + 1] + word[at] + word[at + 2 :],
            word[:at] + word[at + 1 :],
            word[: at + 1] + word[at:],
            word[:at] + beside + word[at + 1 :],
        )
    )
    return [*words[:place], wrong, *words[place + 1 :]] if wrong != word else None


def _exchanged(words: list[str], list_: dict[str, str], draw: random.Random) -> list[str] | None:
    text = f" {' '.join(words)} "
    there = [(left, right) for left, right in list_.items() if f" {left} " in text]
    if not there:
        return None
    left, right = draw.choice(there)
    return text.replace(f" {left} ", f" {right} ", 1).split()


def abbreviation(words: list[str], draw: random.Random) -> list[str] | None:
    """A long form becomes short, or a short one long."""
    return _exchanged(words, {**_SHORT, **{short: long for long, short in _SHORT.items()}}, draw)


def synonym(words: list[str], draw: random.Random) -> list[str] | None:
    """One word becomes one that means nearly the same."""
    return _exchanged(words, {**{right: left for left, right in _ALIKE.items()}, **_ALIKE}, draw)


def narrower(words: list[str], draw: random.Random) -> list[str] | None:
    """One word more."""
    return [*words, *draw.choice(_FURTHER).split()]


def broader(words: list[str], draw: random.Random) -> list[str] | None:
    """One content word less."""
    places = [i for i, word in enumerate(words) if word not in _LITTLE]
    if len(places) < 3:
        return None
    place = draw.choice(places)
    return words[:place] + words[place + 1 :]


#: By how the names of the sensitivity check begin.
KINDS: Final[dict[str, Rewording]] = {
    "order": order,
    "inflection": inflection,
    "stop words": stop_words,
    "question": question,
    "typing error": typing_error,
    "abbreviation": abbreviation,
    "synonym": synonym,
    "narrower": narrower,
    "broader": broader,
}


@dataclass
class Tally:
    """What came of the sets of one kind."""

    sets: int = 0
    clean: int = 0
    verdicts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    leaks: int = 0
    listed: int = 0
    promised: list[float] = field(default_factory=list)

    def row(self, kind: str) -> tuple[str, ...]:
        """One row of the table."""
        promise = f"{sum(self.promised) / len(self.promised):.2f}" if self.promised else "none given"
        listed = f"{self.listed / self.leaks:.2f} ({self.listed} of {self.leaks})" if self.leaks else "—"
        others = ", ".join(f"{count} {word}" for word, count in sorted(self.verdicts.items()))
        return kind, str(self.sets), f"{self.clean} ({self.clean / self.sets:.0%})", others, listed, promise


def plain(text: str) -> list[str]:
    """The words of a text in lower case."""
    return re.findall(r"[^\W_]+(?:['-][^\W_]+)*", text.lower())


def collections() -> dict[str, list[str]]:
    """Real test queries by collection; of TREC topics titles and descriptions apart."""
    found: dict[str, list[str]] = {}
    for name in ("robust04", "core17", "core18"):
        topics = read_topics(str(topic_path(name))).topics
        found[f"{name} titles"] = [topic.title for topic in topics]
        found[f"{name} descriptions"] = [topic.description for topic in topics]
    folder = SHARED / "topics"
    for file in ("beir-nfcorpus.tsv.gz", "beir-scifact.tsv.gz", "beir-trec-covid.tsv.gz", "dl19-doc.tsv", "dl20.tsv"):
        found[file.partition(".")[0]] = [topic.title for topic in read_topics(str(folder / file)).topics]
    found["web09"] = [topic.title for topic in read_topics(str(folder / "web09.xml")).topics]
    return {name: [text for text in texts if len(plain(text)) > 1] for name, texts in found.items()}


def write_log(path: Path, lines: int, topics: Sequence[str]) -> None:
    """The first lines of each real log, without those that have exactly a topic's words."""
    known = {frozenset(plain(text)) for text in topics}
    with path.open("w", encoding="utf-8") as stream:
        for name in LOGS:
            for number, query in enumerate(open_queries(str(log_path(name)))):
                if number == lines:
                    break
                if frozenset(plain(query.text)) not in known:
                    stream.write(f"{name}-{number}\t{' '.join(query.text.split())}\n")


def audited(train: Sequence[Path], topics: Sequence[tuple[str, str]], work: Path) -> leakage.AuditResult:
    """Audits one set in a folder of its own."""
    test = work / "test.tsv"
    test.write_text("".join(f"{topic_id}\t{' '.join(text.split())}\n" for topic_id, text in topics), encoding="utf-8")
    options = leakage.AuditOptions(fields=("title",))
    encoding = Encoding(encoder="packaged", cache=str(work / "cache"))
    return leakage.audit(
        [str(path) for path in train], [str(test)], options=options, encoding=encoding, out=work / "audit"
    )


def planted(texts: Sequence[str], kind: str, draw: random.Random) -> tuple[list[str], dict[int, str]]:
    """A set of texts, and for 1 to 5 of them a rewording that is not the text itself."""
    chosen = draw.sample(list(texts), min(len(texts), draw.randrange(20, 41)))
    wanted = 0 if kind == "none" else draw.randrange(1, 6)
    leaks: dict[int, str] = {}
    for place in draw.sample(range(len(chosen)), len(chosen)):
        if len(leaks) == wanted:
            break
        words = plain(chosen[place])
        reworded = KINDS[kind](list(words), draw)
        if reworded and reworded != words:
            leaks[place] = " ".join(reworded)
    return chosen, leaks


def promise(test: dict[str, Any], kind: str) -> list[float]:
    """The shares that the audit's sensitivity check gives for a kind: "stop words" are two kinds there."""
    return [row["share"] for row in test["sensitivity"] if row["share"] is not None and row["kind"].startswith(kind)]


def main() -> None:
    """Audits the sets and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--lines", type=int, default=3000, help="lines of each log")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=Path, help="keeps the embeddings here for the next time")
    options = parser.parse_args()
    require_shared()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        texts = collections()
        log, plants = work / "log.tsv", work / "plants.tsv"
        write_log(log, options.lines, [text for several in texts.values() for text in several])
        every = [text for several in texts.values() for text in several]
        real = audited([log], [(str(place), text) for place, text in enumerate(every)], work).candidates["topic_id"]
        leaking = {every[int(place)] for place in real}
        pools = {name: [text for text in several if text not in leaking] for name, several in texts.items()}
        sizes = ", ".join(f"{name} {len(pool)} of {len(texts[name])}" for name, pool in pools.items())
        print(f"topics without a leak in the log: {sizes}", file=sys.stderr, flush=True)
        draw, tallies = random.Random(options.seed), {kind: Tally() for kind in ("none", *KINDS)}
        for number in range(options.sets):
            kind = list(tallies)[number % len(tallies)]
            chosen, leaks = [], {}
            while not chosen or (kind != "none" and not leaks):
                # Some collections have no word that can be abbreviated.
                chosen, leaks = planted(pools[draw.choice(list(pools))], kind, draw)
            plants.write_text("".join(f"plant-{place}\t{text}\n" for place, text in leaks.items()), encoding="utf-8")
            numbered = [(str(place), text) for place, text in enumerate(chosen)]
            result = audited([log, plants] if leaks else [log], numbered, work)
            pairs = result.candidates.filter(source="plants").select("topic_id", "query_id").iter_rows()
            test: dict[str, Any] = json.loads(json.dumps(result.summary["tests"]["test"]))
            tally = tallies[kind]
            tally.sets += 1
            tally.clean += test["verdict"] == "CLEAN"
            tally.verdicts[test["verdict"]] += 1
            listed = len({(topic, query) for topic, query in pairs if query == f"plant-{topic}"})
            tally.leaks += len(leaks)
            tally.listed += listed
            tally.promised += promise(test, kind)
            told = f"{number + 1} of {options.sets}: {kind}, {listed} of {len(leaks)} listed, {test['verdict']}"
            print(told, file=sys.stderr, flush=True)
    header = ("kind", "sets", "CLEAN", "verdicts", "planted leaks that are listed", "share promised (mean)")
    print(table(header, [tally.row(kind) for kind, tally in tallies.items() if tally.sets]))


if __name__ == "__main__":
    main()
