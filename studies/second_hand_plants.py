"""What `second_hand.py` does to texts; written before the code of the detector was read.

A change takes the text, a generator and the half, and returns None where it does not apply. The halves share no
boilerplate, no OCR confusion and no new sentence.
"""

from __future__ import annotations

import html
import random
import re
import textwrap
import unicodedata
from collections.abc import Callable, Mapping, Sequence

from second_hand_texts import words_of

Change = Callable[[str, random.Random, int], str | None]
MARK = re.compile(r"(?<=[.!?؟。])\s+")
BOILERPLATE = (
    ("We value your privacy. Some of our partners process data on the basis of legitimate interest. Accept all",
     "Home > Archive > Articles | Log in | Basket (0) | Help centre",
     "This work is distributed under the terms of the Open Archive Licence 2.1; see the file COPYING for details.",
     "Read also: The ten best hikes of the season. Get our letter every Friday!"),
    ("By browsing this portal you agree that we store small files on your device. Learn more. OK, got it",
     "Skip to main content Menu Search Subscribe Sign up Contact us Imprint",
     "Copyright (c) the contributors. Redistribution in source and binary forms is permitted with this notice.",
     "Advertisement - scroll down to continue. Share this on your favourite network. 14 comments"),
)  # fmt: skip
SENTENCES = (
    ("Nobody at the town hall wanted to comment on this yesterday.", "A second study with more people is planned.",
     "Prices for olive oil rose again in the same quarter.", "The older edition describes this in appendix B."),
    ("Critics say the opposite is true and ask for proof.", "The bridge will stay closed until the paint is dry.",
     "Our correspondent could not reach the owner by phone.", "Users of earlier releases should skip this paragraph."),
)  # fmt: skip
CONFUSED = tuple(
    dict(pair.split("=") for pair in pairs.split())
    for pairs in (
        "m=rn w=vv cl=d e=c l=1 o=0 h=b g=q S=5 fi=h и=н о=0",
        "rn=m li=h a=o I=l t=f u=ii B=8 y=v n=ri i=j л=п е=c",
    )
)
SYNONYMS = """
show display|use employ|large big|small little|begin start|find locate|help assist|need require|make create|
get obtain|change modify|way method|fast quick|many numerous|important significant|problem issue|give provide|
keep retain|return yield|contain include|remove delete|allow permit|choose select|explain clarify|information details|
people persons|about concerning|because since|also additionally|only solely|however but|each every|
must should|called named|what which|best top|cost price|car automobile|city town|country nation|
doctor physician|movie film|job occupation
"""
PAIRS = [pair.split() for pair in SYNONYMS.split("|")]
WORDS = dict(PAIRS) | {other: one for one, other in PAIRS}
SMALL = set("what is are was were the a an of in on to for who how does do did when where which why can i you".split())
NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve".split()


def joined(words: Sequence[str], text: str) -> str:
    """Words as in the text they come from."""
    return (" " if len(text.split()) > 2 or text.isascii() else "").join(words)


def sentences(text: str, least: int = 3) -> list[str] | None:
    """Sentences, where there are enough."""
    found = [one for one in MARK.split(text) if one]
    return found if len(found) >= least else None


def excerpt(place: float) -> Change:
    """30 to 80% of the words, from the beginning, the middle or the end."""

    def change(text: str, draw: random.Random, side: int) -> str | None:
        words = words_of(text)
        size = round(len(words) * draw.uniform(0.3, 0.8))
        start = round((len(words) - size) * place)
        return joined(words[start : start + size], text) if size >= 8 else None

    return change


def rewrapped(text: str, draw: random.Random, side: int) -> str:
    """Lines of another width, quoted or indented."""
    lead = draw.choice(("> ", "    ", "| ", ""))
    return "\n".join(lead + line for line in textwrap.wrap(text, draw.randint(24, 90)))


def boilerplate(place: str) -> Change:
    """Foreign text before, after or between."""

    def change(text: str, draw: random.Random, side: int) -> str | None:
        notes = list(BOILERPLATE[side])
        draw.shuffle(notes)
        if place == "between":
            words = words_of(text)
            cut = draw.randint(len(words) // 4, 3 * len(words) // 4)
            return joined(words[:cut], text) + "\n\n" + notes[0] + "\n\n" + joined(words[cut:], text)
        return "\n".join((*notes[:2], text) if place == "before" else (text, *notes[:3]))

    return change


def as_html(text: str, draw: random.Random, side: int) -> str:
    """A page."""
    tags = ("b", "em") if side else ("strong", "a href='/wiki/x?id=3'")
    body = " ".join(
        f"<{tag}>{html.escape(word)}</{tag.split()[0]}>" if draw.random() < 0.08 else html.escape(word)
        for word in words_of(text)
        for tag in [draw.choice(tags)]
    )
    body = body.replace(". ", ".</p>\n<p class='t'>").replace(" and ", "&nbsp;and ")
    return f"<html><head><style>p {{margin: 0}}</style></head><body><div id='c'><p>{body}</p></div></body></html>"


def as_markdown(text: str, draw: random.Random, side: int) -> str:
    """A list with marked words."""
    marks = ("**{}**", "[{}](https://example.org/a)") if side else ("_{}_", "`{}`", "{}[^2]")
    parts = [draw.choice(marks).format(word) if draw.random() < 0.1 else word for word in words_of(text)]
    return "## Notes\n\n- " + joined(parts, text).replace(". ", ".\n- ")


def one_sentence(way: str) -> Change:
    """One sentence is exchanged, taken out, put in or moved."""

    def change(text: str, draw: random.Random, side: int) -> str | None:
        parts = sentences(text)
        if parts is None:
            return None
        place = draw.randrange(len(parts))
        if way == "inserted":
            parts.insert(place, draw.choice(SENTENCES[side]))
        elif way == "changed":
            parts[place] = draw.choice(SENTENCES[side])
        else:
            moved = parts.pop(place)
            if way == "moved":
                parts.insert((place + 1 + draw.randrange(len(parts))) % (len(parts) + 1), moved)
        return " ".join(parts)

    return change


def truncated(tokens: int) -> Change:
    """Cut at so many tokens of 4.3 signs, inside a word."""

    def change(text: str, draw: random.Random, side: int) -> str | None:
        size = int(tokens * 4.3)
        return text[:size] if size < len(text) <= 4 * size else None

    return change


def ocr(rate: float) -> Change:
    """Confused signs, words that are broken at the end of a line, split and joined words."""

    def change(text: str, draw: random.Random, side: int) -> str | None:
        out, at, table_ = [], 0, CONFUSED[side]
        while at < len(text):
            one = next(
                (key for key in (text[at : at + 2], text[at]) if key in table_ and draw.random() < 3 * rate), None
            )
            if one:
                out.append(table_[one])
                at += len(one)
                continue
            sign, chance = text[at], draw.random()
            if sign == " " and chance < rate:
                sign = ""
            elif sign.isalpha() and chance < rate / 4:
                sign += draw.choice((" ", "-\n"))
            out.append(sign)
            at += 1
        changed = "".join(out)
        return changed if changed != text else None

    return change


def typed(text: str, draw: random.Random, side: int) -> str:
    """A letter swapped or lost in each 45."""
    signs = list(text)
    for _ in range(max(1, len(text) // 45)):
        at = draw.randrange(1, len(signs) - 1)
        if draw.random() < 0.5:
            signs[at], signs[at - 1] = signs[at - 1], signs[at]
        else:
            signs.pop(at)
    return "".join(signs)


def full_width(text: str, draw: random.Random, side: int) -> str | None:
    """The letters of East Asian typesetting."""
    return "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in text) if text.isascii() else None


def typographic(text: str, draw: random.Random, side: int) -> str | None:
    """Typographic quotes, dashes, ligatures and blanks."""
    changed = re.sub(r"\B'|'\B", "’", re.sub(r'"(\S[^"]*)"', "“\\1”", text)).replace("'", "’").replace(" - ", " — ")
    changed = (
        changed.replace("fi", "ﬁ").replace("fl", "ﬂ").replace("...", "…").replace(" ", "\u00a0" if side else "\u2009")
    )
    return changed if changed != text else None


def invisible(text: str, draw: random.Random, side: int) -> str:
    """Soft hyphens or zero-width blanks in words."""
    sign = "\u00ad" if side else "\u200b"
    return "".join(one + sign if one.isalpha() and draw.random() < 0.12 else one for one in text)


def bare(text: str, draw: random.Random, side: int) -> str:
    """Without marks, in one case."""
    return " ".join(re.sub(r"[^\w\s]|_", " ", text.upper() if draw.random() < 0.3 else text.lower()).split())


def numerals(text: str, draw: random.Random, side: int) -> str | None:
    """Numbers as words and the other way round; Arabic digits."""
    changed = re.sub(r"(?<![\d.])(\d|1[0-2])(?![\d.])", lambda found: NUMBERS[int(found[1])], text)
    changed = re.sub(r"\b(" + "|".join(NUMBERS[2:]) + r")\b", lambda found: str(NUMBERS.index(found[1])), changed)
    changed = re.sub(r"(\d),(\d{3})\b", r"\1\2", changed)
    if not text.isascii():
        changed = changed.translate({48 + digit: 0x660 + digit for digit in range(10)})
    return changed if changed != text else None


def paraphrased(text: str, draw: random.Random, side: int) -> str | None:
    """Other words, and clauses the other way round."""
    changed = re.sub(r"[A-Za-z]+", lambda found: WORDS.get(found[0], found[0]), text)
    parts = [re.sub(r"^(.{12,}?), (.{12,})\.$", r"\2, \1.", one) for one in MARK.split(changed)]
    changed = " ".join(parts)
    return changed if len(set(text.split()) - set(changed.split())) > len(text.split()) / 20 else None


def shuffled(text: str, draw: random.Random, side: int) -> str | None:
    """The end first."""
    words = text.split()
    cut = draw.randrange(1, len(words)) if len(words) > 2 else 0
    return " ".join(words[cut:] + words[:cut]) if cut else None


def inflected(text: str, draw: random.Random, side: int) -> str | None:
    """Other endings of two words."""
    if not text.isascii():
        return None
    words = text.split()
    long = [at for at, word in enumerate(words) if len(word) > 4 and word.isalpha()]
    for at in draw.sample(long, min(2, len(long))):
        words[at] = (
            words[at][:-1]
            if words[at].endswith("s")
            else words[at] + ("es" if words[at].endswith(("x", "ch")) else "s")
        )
    return " ".join(words) if long else None


def keywords(text: str, draw: random.Random, side: int) -> str | None:
    """Without the words of a question."""
    words = [word for word in re.findall(r"[\w'-]+", text) if word.lower() not in SMALL]
    return " ".join(words) if text.isascii() and 2 <= len(words) < len(text.split()) else None


def question(text: str, draw: random.Random, side: int) -> str | None:
    """As a question."""
    frames = (
        ("Can you tell me about {}?", "What do we know about {}?")
        if side
        else ("I would like to know: {}", "Please explain {}")
    )
    return draw.choice(frames).format(text.rstrip("?"))


def instructed(text: str, draw: random.Random, side: int) -> str:
    """With a prompt of embedding models."""
    return (f"Instruct: Retrieve passages that answer the request.\nQuery: {text}", f"search_query: {text}")[side]


def inside(text: str, draw: random.Random, side: int) -> str:
    """Among the sentences of a document."""
    return f"{SENTENCES[side][0]} {SENTENCES[side][1]} {text} {SENTENCES[side][2]}"


FERRY = "The ferry to the island runs twice a day in winter. Bicycles travel free of charge, dogs do not."
DOCUMENT_KINDS: Mapping[str, Change] = {
    "excerpt, beginning": excerpt(0), "excerpt, middle": excerpt(0.5), "excerpt, end": excerpt(1),
    "re-wrapped": rewrapped, "boilerplate before": boilerplate("before"), "boilerplate after": boilerplate("after"),
    "boilerplate between": boilerplate("between"), "HTML": as_html, "Markdown": as_markdown,
    "sentence changed": one_sentence("changed"), "sentence removed": one_sentence("removed"),
    "sentence inserted": one_sentence("inserted"), "sentence moved": one_sentence("moved"),
    "100 tokens": truncated(100), "256 tokens": truncated(256), "512 tokens": truncated(512),
    "OCR, light": ocr(0.01), "OCR, heavy": ocr(0.04), "typing errors": typed,
    "decomposed": lambda text, draw, side: unicodedata.normalize("NFD", text), "full width": full_width,
    "typographic": typographic, "invisible signs": invisible, "case and marks": bare, "numerals": numerals,
    "behind another text": lambda text, draw, side: f"{FERRY}\n\n{text}", "paraphrased": paraphrased,
}  # fmt: skip
QUERY_KINDS: Mapping[str, Change] = {
    "query: reordered": shuffled, "query: inflected": inflected, "query: keywords": keywords,
    "query: question": question, "query: typing errors": typed, "query: case and marks": bare,
    "query: full width": full_width, "query: invisible signs": invisible, "query: numerals": numerals,
    "query: instructed": instructed, "query: OCR, light": ocr(0.02), "query: paraphrased": paraphrased,
}  # fmt: skip
#: Looked for in the training side's documents.
INSIDE = {"query: inside a document": inside}
