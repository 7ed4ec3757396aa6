"""Identifiers that may mean the same: equal but for case, padding, separators, ending or encoding."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable
from typing import Final
from urllib.parse import unquote

import polars as pl

from truerank.text.mojibake import repair

_ENDING: Final = re.compile(r"(?i)\.(html?|txt|xml|json|pdf|md|gz|0+)$")
_SEPARATORS: Final = re.compile(r"[\W_]+")
_PADDING: Final = re.compile(r"(?<!\d)0+(?=\d)")
#: Signs that mean themselves: no blank, no escape, nothing beyond ASCII. As Rust's regular expressions write it.
#: Identifiers that are looked at together.
_AT_ONCE: Final = 1 << 20
_PLAIN: Final = r"^[!-$'-~]+$"
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
