"""Every error that a user can cause, as one sentence with the place, the fault and the remedy."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

__all__ = ["InputError", "MissingExtraError", "OptionError", "TruerankError", "TwoReadingsError"]


#: A flag with its value, which is no word of the sentence; command lines and what is quoted come first, and stay.
_FLAG: Final = re.compile(
    r"'[^']*'|`[^`]*`|\b(?:truerank|hf) .*|(?<![\w-])--([a-z][a-z-]*)"
    r"(?: (?!(?:a|and|or|the|of|instead)\b)(\"[^\"]*\"|[^\s,;:)]\S*[^\s,;:.)]))?"
)
_SWITCHES: Final = ("overwrite", "ignore_robots")


def _in_python(match: re.Match[str]) -> str:
    if match[1] is None:
        return match[0]
    name = match[1].replace("-", "_")
    name += "_" * (keyword.iskeyword(name) or hasattr(builtins, name))
    value = (match[2] or "").strip('"') or ("True" if name in _SWITCHES else "")
    shown = value if value == "True" or value.replace(".", "", 1).isdecimal() else f'"{value}"'
    return f"{name}={shown}" if value else f"`{name}`"


class TruerankError(Exception):
    """A fault that the user can mend; the command line prints it as one line and exits with 2.

    Args:
        fault: what is wrong, in a few words, without a full stop.
        remedy: what to do about it, without a full stop.
        where: the file, source or option that is at fault.
        line: the line in that file, counted from 1.

    Attributes:
        continues: whether the same call goes on where this one stopped: then its unfinished work stays.
        details: lines that the command line prints below the sentence, such as the columns of a table.
    """

    continues = False

    def __init__(
        self, fault: str, remedy: str = "", *, where: str | Path | None = None, line: int | None = None
    ) -> None:
        self.fault = fault
        self.remedy = remedy
        self.where = None if where is None else str(where)
        self.line = line
        self.details: tuple[str, ...] = ()
        super().__init__(fault, remedy)

    def name_keywords(self) -> None:
        """Names options as Python does, in place of flags of the command line."""
        self.fault, self.remedy = (_FLAG.sub(_in_python, text) for text in (self.fault, self.remedy))
        self.args = self.fault, self.remedy

    def __str__(self) -> str:
        # A name of blanks would not be seen.
        where = self.where if self.where is None or self.where.strip() else f"'{self.where}'"
        place = "" if where is None else f"{where}: " if self.line is None else f"{where}:{self.line}: "
        sentences = [part.rstrip(".") for part in (self.fault, self.remedy) if part]
        said = " ".join(part if part.endswith("?") else f"{part}." for part in sentences)
        return " ".join(f"{place}{said}".split())


class InputError(TruerankError):
    """A file, source or option does not hold what it should."""


class OptionError(InputError):
    """An option has a value that it cannot have.

    The option is named as in Python ("block_size"); the command line shows it as a flag ("--block-size"). A remedy
    names other options in backquotes.

    Args:
        option: the parameter, or the field of a dataclass of options.
        fault: what is wrong, with the value.
        remedy: what to do about it.
        value: the number, where it lies outside the bounds that the option declares.
    """

    def __init__(self, option: str, fault: str, remedy: str = "", *, value: float | None = None) -> None:
        super().__init__(fault, remedy, where=option)
        self.option, self.value = option, value


class TwoReadingsError(InputError):
    """The columns of a table can be read in two ways.

    Args:
        fault: what is ambiguous.
        choices: what `--columns` can be, one for each reading.
        where: the table.
    """

    def __init__(self, fault: str, choices: tuple[str, ...], where: str | Path) -> None:
        shown = [f'"{choice}"' if " " in choice else choice for choice in choices[:6]]
        lead = "say which" if len(choices) > 1 else f"to take it for the {choices[0].partition('=')[0]}"
        fault = fault.replace("two readings:", "several readings:") if len(choices) > 2 else fault
        super().__init__(fault, f"{lead}: --columns {', or '.join(shown)}", where=where)
        self.choices = choices

    def beside(self, columns: str) -> TwoReadingsError:
        """The same question, whose choices also say what was named before."""
        named = [(part.partition("=")[0].strip(), part) for part in columns.split(",") if part]
        return self._with(",".join([*(part for role, part in named if f"{role}=" not in x), x]) for x in self.choices)

    def among(self, choices: Iterable[str]) -> TwoReadingsError:
        """The same question with some of its choices; with all of them where there are none."""
        kept = frozenset(choices) or frozenset(self.choices)
        return self._with(choice for choice in self.choices if choice in kept)

    def _with(self, choices: Iterable[str]) -> TwoReadingsError:
        error = type(self)(self.fault, tuple(choices), self.where or "")
        error.details = self.details
        return error


class MissingExtraError(TruerankError):
    """An optional dependency is not installed; the message names the extra that brings it.

    Args:
        feature: what the user asked for ("the OpenVINO backend").
        extra: the extra of this package that carries it ("fast").
        remedy: what installs it, where the extra alone does not.
    """

    def __init__(self, feature: str, extra: str, remedy: str = "") -> None:
        remedy = remedy or f"pip install 'truerank[{extra}]'"
        super().__init__(f"{feature} needs a package that is not installed", remedy)
        self.extra = extra


@contextmanager
def needed_for(feature: str, extra: str) -> Iterator[None]:
    """Imports of an optional dependency; where it is not installed, a `MissingExtraError`."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(feature, extra) from error
