"""Lists of stopwords: where each comes from, and how one is read from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from truerank.errors import InputError
from truerank.sources.lines import numbered_lines

#: The 33 words that Lucene's English analysis, and so Anserini's, leaves out.
_LUCENE: Final = """
    a an and are as at be but by for if in into is it no not of on or such that the their then there these they this
    to was will with
"""

#: English words of grammar, drawn up for this project class by class. It stands in for the longer lists of Terrier
#: (733 words) and Indri (418), which are not part of it; give `--stopwords FILE` to use those.
_GRAMMAR: Final = """
    a an the this that these those each every either neither both all any some such same other another

    i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers
    herself it its itself they them their theirs themselves one ones oneself who whom whose which what whoever whatever
    whichever someone somebody something anyone anybody anything everyone everybody everything noone nobody nothing none

    be am is are was were been being have has had having do does did doing done can could may might must shall should
    will would ought cannot

    about above across after against along among amongst around as at before behind below beneath beside besides between
    beyond by despite down during except for from in inside into like near of off on onto out outside over per since
    than through throughout till to toward towards under underneath until unto up upon versus via with within without

    and or nor but so yet if unless although though because while whereas whether once

    how when where why however wherever whenever therefore thus hence moreover furthermore nevertheless otherwise
    meanwhile instead thereby therein thereof whereby wherein whereof hereby herein

    no not never only just even also too very quite rather almost already always often sometimes ever again further
    then there here now still else indeed perhaps maybe mostly much many more most less least few fewer several enough
    own etc ie eg

    don doesn didn isn aren wasn weren hasn haven hadn won wouldn couldn shouldn s t re ve ll d m
"""

#: The lists that have names.
LISTS: Final[dict[str, frozenset[str]]] = {
    "none": frozenset(),
    "lucene": frozenset(_LUCENE.split()),
    "grammar": frozenset(_GRAMMAR.split()),
}


def read_stopwords(path: str | Path) -> frozenset[str]:
    """Reads a list of stopwords: one a line, lower-cased; what follows `#` or `|` is a comment."""
    words: set[str] = set()
    for line in numbered_lines(Path(path)):
        cells = line.text.partition("#")[0].partition("|")[0].split()
        if len(cells) > 1:
            raise InputError(
                f"{len(cells)} words in a line of stopwords", "write one a line", where=path, line=line.number
            )
        words.update(cell.lower() for cell in cells)
    if not words:
        raise InputError("no stopwords in it", "give a list of words, one a line, or 'none'", where=path)
    return frozenset(words)
