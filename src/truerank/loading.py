"""Small files and values of JSON, YAML and TOML; every fault of depth, size, number or encoding is an InputError.

The parsers of Python fail in many ways: with errors of several types, by recursion, or by taking minutes. Here is the
one place where they are called.
"""

from __future__ import annotations

import json
import math
import re
import stat
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

from truerank.errors import InputError

if TYPE_CHECKING:
    import yaml

#: Bytes of a file or value that is read in one piece.
LARGEST: Final = 1 << 28
#: Bytes of YAML and TOML, whose parsers read about 250 KB a second.
_LARGEST_SETTINGS: Final = 1 << 19
#: Lists and objects within each other; no format of the field needs more than ten.
_DEEPEST: Final = 100
#: Digits of a whole number: those of 128 bits.
_DIGITS: Final = 39
#: Digits of a number that 64 bits hold in any case.
_LONGEST_NUMBER: Final = 18
#: Numbers as people write them, in ASCII; Python reads more digits than can be meant from 4,300 on not at all.
_SIGNED: Final = re.compile(r"[+-]?[0-9]{1,4000}")
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]{1,4000}(?:\.[0-9]{0,4000})?|\.[0-9]{1,4000})(?:[eE][+-]?[0-9]{1,20})?")
_REMEDY: Final = "correct it, or write the file again"
_HALVES: Final = re.compile(r"[\ud800-\udfff]")
#: A chain of keys joined by dots; tomllib takes time that grows with the square of its length.
_CHAIN: Final = re.compile(r"(?:(?:[\w-]{1,64}|\"[^\"\n]{0,64}\"|'[^'\n]{0,64}')[ \t]{0,8}\.[ \t]{0,8}){101}")

T = TypeVar("T")


def check_regular(path: Path) -> None:
    """Refuses what stands at a path and is neither a regular file nor a folder: opening a named pipe waits for ever."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise InputError("not a regular file", "write it to a file first: it is read more than once", where=path)


def opened(path: Path) -> IO[bytes]:
    """A regular file for reading bytes."""
    check_regular(path)
    return path.open("rb")


def text_file(path: str | Path, remedy: str = "give a text file", most: int = LARGEST) -> str:
    """The text of a small UTF-8 file, without a byte order mark, its lines ended by line feeds.

    Args:
        most: its largest size in bytes.
    """
    place = Path(path)
    try:
        with opened(place) as stream:
            content = stream.read(most + 1)
    except ValueError as error:
        raise InputError(f"cannot be read ({error})", remedy, where=path) from error
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", remedy, where=path) from error
    return _decoded(content, path, most).replace("\r\n", "\n").replace("\r", "\n")


def json_file(path: str | Path, remedy: str = _REMEDY) -> Any:
    """The value of a small JSON file; halves of surrogate pairs are replaced."""
    text = text_file(path, remedy)
    value = load_json(text, path, remedy=remedy)
    return without_halves(value) if "\\u" in text else value


def toml_file(path: str | Path, remedy: str = _REMEDY) -> dict[str, Any]:
    """The table of a small TOML file."""
    return load_toml(text_file(path, remedy, _LARGEST_SETTINGS), path, remedy=remedy)


def load_json(
    data: bytes | str, place: str | Path, *, line: int | None = None, remedy: str = _REMEDY, strict: bool = False
) -> Any:
    """The value of a JSON text. Halves of surrogate pairs stay as they are.

    Args:
        data: the text; bytes are UTF-8, perhaps with a byte order mark.
    """
    text = _decoded(data, place, LARGEST, line) if isinstance(data, bytes) else data
    return load_json_at(text, None, place, line=line, remedy=remedy, strict=strict)[0]


def load_json_at(
    text: str, start: int | None, place: str | Path, *, line: int | None, remedy: str = _REMEDY, strict: bool = False
) -> tuple[Any, int]:
    """The value that begins at a position of a text (None: that the text is), and where it ends."""
    decoder = _STRICT if strict else _JSON
    try:
        value, end = (decoder.decode(text), len(text)) if start is None else decoder.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise InputError(f"no valid JSON ({error.msg})", remedy, where=place, line=line or error.lineno) from error
    except ValueError as error:
        raise InputError(f"no valid JSON ({error})", remedy, where=place, line=line) from error
    except RecursionError as error:
        raise _too_deep("JSON", remedy, place, line) from error
    if text.count("[", start, end) + text.count("{", start, end) > _DEEPEST and _is_deep(value):
        raise _too_deep("JSON", remedy, place, line)
    return value, end


def load_yaml(
    data: bytes | str, place: str | Path, read: Callable[[yaml.SafeLoader, Any], T], *, remedy: str = _REMEDY,
    most: int = _LARGEST_SETTINGS,
) -> T | None:  # fmt: skip
    """What a function makes of the one document of a YAML text.

    Args:
        data: the text; bytes are UTF-8, perhaps with a byte order mark.
        most: its largest size.
    """
    import yaml

    text = _decoded(data, place, most)
    loader = None
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if (twice := _repeated_key(node)) is not None:
            fault = f"'{twice.value}' occurs twice"
            raise InputError(fault, "give each key once", where=place, line=twice.start_mark.line + 1)
        return None if node is None else read(loader, node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        fault = " ".join(str(error.problem or error.context).split())
        raise InputError(f"no YAML ({fault})", remedy, where=place, line=line) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        fault = f"the character U+{error.character:04X} is not allowed"
        raise InputError(f"no YAML ({fault})", remedy, where=place, line=line) from error
    except (yaml.YAMLError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        # The constructors of numbers and dates fail in these ways for texts that only look like one.
        raise InputError(f"no YAML ({' '.join(str(error).split())[:120]})", remedy, where=place) from error
    except RecursionError as error:
        raise _too_deep("YAML", remedy, place, None) from error
    finally:
        if loader is not None:
            loader.dispose()


def _repeated_key(node: Any) -> Any:
    """The node of a key that its mapping has already, in any depth; None where there is none."""
    seen, todo = set(), [node]
    while todo:
        place = todo.pop()
        parts = place.value if isinstance(getattr(place, "value", None), list) else []
        if id(place) in seen:
            continue
        seen.add(id(place))
        pairs = [part for part in parts if isinstance(part, tuple)]
        keys: set[tuple[str, str]] = set()
        for key, _ in pairs:
            if isinstance(key.value, str) and (key.tag, key.value) in keys:
                return key
            keys |= {(key.tag, str(key.value))}
        todo += [value for _, value in pairs] or parts
    return None


def load_toml(data: bytes | str, place: str | Path, *, remedy: str = _REMEDY) -> dict[str, Any]:
    """The table of a TOML text.

    Args:
        data: the text; bytes are UTF-8, perhaps with a byte order mark.
    """
    text = _decoded(data, place, _LARGEST_SETTINGS)
    if chain := _CHAIN.search(text):
        raise _too_deep("TOML", remedy, place, text.count("\n", 0, chain.start()) + 1)
    try:
        value = tomllib.loads(text)
    except RecursionError as error:
        raise _too_deep("TOML", remedy, place, None) from error
    except (ValueError, ArithmeticError) as error:
        found = re.search(r"line (\d+)", str(error))
        line = int(found[1]) if found else text.count("\n") + 1
        reason = str(error).partition(" (at")[0].rstrip(".")
        raise InputError(f"no valid TOML ({reason})", remedy, where=place, line=line) from error
    if _is_deep(value):
        raise _too_deep("TOML", remedy, place, None)
    if _has_long_number(value):
        raise InputError("no valid TOML (a number of more than 64 bits)", remedy, where=place)
    return value


def whole_number(text: str) -> int | None:
    """The number that a text of 1 to 18 ASCII digits is, None for any other text.

    `isdigit` is true of signs that are not numbers, and a number of thousands of digits cannot be read.
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER else None


def signed_number(text: str) -> int | None:
    """The whole number that decimal ASCII digits with an optional sign are; None for 1.5, 1e0, 0x3, 1_0 and others."""
    return int(text) if _SIGNED.fullmatch(text) else None


def decimal_number(text: str) -> float | None:
    """The finite number that ASCII digits, perhaps with a sign, a point and an exponent, are; None for other texts."""
    value = float(text) if _DECIMAL.fullmatch(text) else math.inf
    return value if math.isfinite(value) else None


def _whole(text: str) -> int:
    """A whole number of a JSON text; the C parser calls it for each."""
    if len(text) > _DIGITS:
        raise ValueError(f"a number of {len(text):,} digits")
    return int(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a key occurs twice")
    return value


def _refused(name: str) -> None:
    raise ValueError(f"{name} is not a number")


_JSON: Final = json.JSONDecoder(parse_int=_whole)
_STRICT: Final = json.JSONDecoder(parse_int=_whole, object_pairs_hook=_unique, parse_constant=_refused)


def _decoded(content: bytes | str, place: str | Path, most: int, line: int | None = None) -> str:
    if len(content) > most:
        raise InputError(f"more than {most >> 20 or most >> 10} {'MiB' if most >> 20 else 'KiB'}",
                         "make it smaller, or give another file", where=place, line=line)  # fmt: skip
    if isinstance(content, str):
        return content
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = line or content.count(b"\n", 0, error.start) + 1
        fault = f"no UTF-8 text (byte 0x{content[error.start]:02x})"
        raise InputError(fault, "save it as UTF-8", where=place, line=where) from error


def _too_deep(kind: str, remedy: str, place: str | Path, line: int | None) -> InputError:
    return InputError(f"no valid {kind} (nested more than {_DEEPEST} deep)", remedy, where=place, line=line)


def _inside(values: Iterable[Any]) -> list[Any]:
    """What is in the lists and objects among some values."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, dict):
            found += value.values()
        elif isinstance(value, list):
            found += value
    return found


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        level = [each for each in _inside(level) if isinstance(each, dict | list)]
        if not level:
            return False
    return True


def _has_long_number(value: Any) -> bool:
    level = [value]
    while level:
        if any(isinstance(each, int) and not -(1 << 63) <= each < 1 << 63 for each in level):
            return True
        level = _inside(level)
    return False


def without_halves(value: Any) -> Any:
    """A value of JSON in which halves of surrogate pairs, which no file can hold, are replaced."""
    if isinstance(value, str):
        return _HALVES.sub("\ufffd", value)
    if isinstance(value, list):
        return [without_halves(each) for each in value]
    if isinstance(value, Mapping):
        return {_HALVES.sub("\ufffd", str(key)): without_halves(each) for key, each in value.items()}
    return value
