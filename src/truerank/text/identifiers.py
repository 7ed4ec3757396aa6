"""Identifiers that may mean the same: equal but for case, padding, separators, ending or encoding."""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Final
from urllib.parse import unquote

import polars as pl

from truerank.text.mojibake import repair
from truerank.text.printable import and_more

_ENDING: Final = re.compile(r"(?i)\.(html?|txt|xml|json|pdf|md|gz|0+)$")
_SEPARATORS: Final = re.compile(r"[\W_]+")
_PADDING: Final = re.compile(r"(?<!\d)0+(?=\d)")
#: Signs that mean themselves: no blank, no escape, nothing beyond ASCII. As Rust's regular expressions write it.
#: Identifiers that are looked at together.
_AT_ONCE: Final = 1 << 20
_PLAIN: Final = r"^[!-$'-~]+$"
#: Identifiers that are looked at for the likely cause; so many of them that show it, and such a share, are no accident.
_LOOKED_AT: Final = 500
_FEW, _SOME, _HALF = 3, 0.05, 0.5
_NAMED: Final = 3
_PASSAGE: Final = re.compile(r"(?i)[-_#%:./]+(p|psg|passage|chunk|s)?\d+$")
#: No longer than 64 bits hold: Python refuses to read a number of some thousand digits.
_NUMBER: Final = re.compile(r"([0-9]{1,18})")
_DIGITS, _LETTERS = re.compile(r"\d+"), re.compile(r"[^\W\d_]+")
#: What a table that takes an identifier for a number drops of it.
_DECIMAL, _ZEROS = re.compile(r"\d+\.\d{4,}"), ("0000", "000", "00", "0")
_BLANK: Final = re.compile(r"[\s\x00-\x1f\x7f\u200b-\u200f\u2028\u2029\ufeff]")


def _decoded(text: str) -> str:
    return unicodedata.normalize("NFKC", repair(html.unescape(unquote(text))))


_STEPS: Final[tuple[tuple[str, Callable[[str], str]], ...]] = (
    ("case", str.casefold),
    ("padding", lambda text: _PADDING.sub("", text)),
    ("encoding", _decoded),
    ("ending", lambda text: _ENDING.sub("", text)),
    ("separators", lambda text: _SEPARATORS.sub("-", text).strip("-")),
)


def natural(identifier: str) -> tuple[list[str | int], str]:
    """What identifiers are sorted by, so that 9 comes before 10: texts and numbers in turn."""
    parts = _NUMBER.split(identifier)
    return [int(part) if place % 2 else part for place, part in enumerate(parts)], identifier


def folded(identifier: str) -> str:
    """The form in which identifiers are compared that do not match as they are.

    Percent and HTML escapes and wrong decoding are undone; case, leading zeros of numbers, the ending of a file's name
    and the kind of separator do not count.
    """
    text = _decoded(identifier).casefold().strip()
    text = _ENDING.sub("", text)
    return _PADDING.sub("", _SEPARATORS.sub("-", text).strip("-"))


def what_differs(one: str, other: str) -> str:
    """In what two identifiers of one folded form differ: "case", "padding", "encoding" …, or several of them."""
    alone = [name for name, step in _STEPS if step(one) == step(other)]
    if alone:
        return alone[0]
    needed = []
    for name, _ in _STEPS:
        a, b = one, other
        for step_name, step in _STEPS:
            if step_name != name:
                a, b = step(a), step(b)
        if a != b:
            needed.append(name)
    return " and ".join(needed) or "spelling"


def likely(wanted: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """For identifiers that are not known, the one known identifier of the same folded form."""
    forms: dict[str, list[str]] = {}
    for one in wanted:
        forms.setdefault(folded(one), []).append(one)
    candidates: dict[str, set[str]] = {}
    for other in _near(forms, known):
        form = folded(other)
        if form in forms:
            candidates.setdefault(form, set()).add(other)
    return {
        one: next(iter(candidates[form]))
        for form, several in forms.items()
        for one in several
        if len(candidates.get(form, ())) == 1
    }


def respelt(wanted: pl.Series, known: pl.Series) -> dict[str, str]:
    """For identifiers that are not known, known ones that may be meant, which other files have to bear out.

    They are equal in their folded form, or but for one beginning or end, or zeros at the end of a decimal number.
    """
    sample = wanted.head(4 * _LOOKED_AT).to_list()
    begin = str(known.head(_LOOKED_AT).str.extract(r"^(\D*)").mode().min() or "")
    zeros = {name: [name + end for end in _ZEROS if _DECIMAL.fullmatch(name + end)] for name in sample}
    longer = {name: (begin + name, *zeros[name]) for name in sample}
    asked = {each for name in sample for each in (*longer[name], *_parts(name))}
    there = set(known.filter(known.is_in(pl.Series([*asked], dtype=pl.String).implode())))
    # The last digit of a number is a part of the name.
    affixes = Counter(one for name in sample for one in _affixes(name, there) if not one.isdecimal())
    (affix, _), *_ = affixes.most_common(1) or [("", 0)]
    cut = {name: (name.removeprefix(affix), name.removesuffix(affix)) for name in sample}
    ends = {name: each for forms in (cut, longer) for name in sample for each in forms[name] if each in there}
    return {**ends, **likely(sample, known)}


def _parts(name: str) -> set[str]:
    """All beginnings and ends."""
    return {part for at in range(1, len(name)) for part in (name[:at], name[at:])}


def _near(forms: Collection[str], known: Iterable[str]) -> pl.Series:
    """The known identifiers that may have one of these folded forms; folding millions of others would take minutes.

    What folding leaves of an identifier of plain signs, it leaves of its letters and digits but zeros, too.
    """
    every = pl.Series("known", known if isinstance(known, pl.Series) else list(known), pl.String)
    cores = pl.Series(list(forms), dtype=pl.String).to_frame("form").select(_core(pl.col("form")).unique())["form"]
    ended = pl.col("known").str.replace(_ENDING.pattern, "")
    may = ~pl.col("known").str.contains(_PLAIN) | _core(ended).is_in(cores.implode())
    return pl.concat([every.clear(), *(some.filter(may)["known"] for some in every.to_frame().iter_slices(_AT_ONCE))])


def _core(identifiers: pl.Expr) -> pl.Expr:
    return identifiers.str.replace_all("[^A-Za-z0-9]|0", "").str.to_lowercase()


def unwritable(identifier: str) -> bool:
    """Whether an identifier cannot be in a column of a run file: empty, or with a blank in it."""
    return not identifier or _BLANK.search(identifier) is not None


def likely_cause(wanted: pl.Series, known: pl.Series, last: str = "") -> str:
    """Why identifiers may not meet, as the end of a sentence; empty where nothing shows it.

    Args:
        wanted: identifiers that are not known.
        known: those that are.
        last: of an order that ends too early, the last one that is known.
    """
    sample = wanted.head(_LOOKED_AT).to_list()
    some = max(_FEW, _SOME * len(sample))
    by_form = likely(sample, known)
    if len(by_form) >= some:
        one, other = min(by_form.items())
        return f" (their ids differ in {what_differs(one, other)}: {one}, {other})"
    if last and _form(sample[0]) == _form(last):
        return f" (what lacks is the end of the order of ids, behind {last}: the documents may be cut short)"
    cut = {name: _PASSAGE.sub("", name) for name in sample}
    parts = {part for name in sample for part in _parts(name)}
    there = set(known.filter(known.is_in(pl.Series([*parts, *cut.values()], dtype=pl.String).implode())))
    if sum(short in there and short != name for name, short in cut.items()) >= some:
        one = next(name for name, short in cut.items() if short in there and short != name)
        return f" (their ids end in the number of a passage: {one}, {cut[one]})"
    affixes = Counter(affix for name in sample for affix in _affixes(name, there))
    (affix, times), *_ = affixes.most_common(1) or [("", 0)]
    # Of numbers, the last digit is a part of the name for one in ten, by chance for three of six.
    if times >= (max(2 * some, _HALF * len(sample)) if affix.isdecimal() else some):
        one = next(name for name in sample if affix in _affixes(name, there))
        return f" (their ids have '{affix}' too much: {one})"
    ascii_only = known.str.len_bytes() == known.str.len_chars()
    forms = {*map(_form, known.filter(~ascii_only))}
    for part in known.filter(ascii_only).to_frame("known").iter_slices(_AT_ONCE):
        numbered = part["known"].str.replace_all(_DIGITS.pattern, "0")
        forms.update(numbered.str.replace_all(_LETTERS.pattern, "a").unique())
    strange = [name for name in sample if _form(name) not in forms]
    if strange and len(strange) >= _HALF * len(sample):
        usual = str(known.min())
        return f" (their ids look like {and_more(strange[:_NAMED], _NAMED)}, the others like {usual})"
    return ""


def _affixes(name: str, known: Collection[str]) -> set[str]:
    """The beginnings and ends without which an identifier is a known one."""
    return {name[:at] for at in range(1, len(name)) if name[at:] in known} | {
        name[-at:] for at in range(1, len(name)) if name[:-at] in known
    }


def _form(name: str) -> str:
    """An identifier with every number and every word as one sign."""
    return _LETTERS.sub("a", _DIGITS.sub("0", name))
