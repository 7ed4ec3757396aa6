"""Things by name that other packages can add to: truerank's own, and those that are registered as entry points."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any, Final

from truerank.errors import InputError, TruerankError

_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class Plugins:
    """Things of one kind by name, loaded on use.

    A name of truerank's own stays its own: no other package can replace it. The entry points of the environment are
    read once, and only when a name is asked for that truerank does not have.

    Args:
        group: of the entry points: "truerank.rankers".
        noun: what one of them is called in messages: "ranker".
        members: what each has, so that it can be used.
        own: truerank's own by name, as "module:attribute".
    """

    def __init__(
        self, group: str, noun: str, members: tuple[str, ...] = (), own: Callable[[], Mapping[str, str]] = lambda: _NONE
    ) -> None:
        self._group, self._noun, self._members, self._own = group, noun, members, own

    def __contains__(self, name: object) -> bool:
        return name in self._own() or name in _registered(self._group, tuple(sys.path))

    def __iter__(self) -> Iterator[str]:
        """All names: truerank's own, then those of other packages."""
        own = self._own()
        yield from own
        yield from (name for name in sorted(_registered(self._group, tuple(sys.path))) if name not in own)

    def load(self, name: str) -> Any:
        """What the name stands for."""
        if place := self._own().get(name):
            module, _, attribute = place.partition(":")
            return getattr(importlib.import_module(module), attribute)
        found = _registered(self._group, tuple(sys.path)).get(name, ())
        if not found:
            raise InputError(f"no {self._noun} '{name}'", f"there are {', '.join(self)}", where=self._group)
        if len(found) > 1:
            packages = " and ".join(sorted(_package(entry) for entry in found))
            raise self._fault(f"the {self._noun} '{name}' is in {packages}", "uninstall one of them")
        return self._loaded(found[0])

    @contextlib.contextmanager
    def calling(self, name: str, fails: str = "fails") -> Iterator[None]:
        """Whatever the code of another package raises within is a fault of that package, also `sys.exit`."""
        try:
            yield
        except (TruerankError, MemoryError):
            raise
        except (Exception, SystemExit) as error:  # code of others can fail in any way
            raise self.fault(name, f"{fails} ({type(error).__name__}: {error})") from error

    def fault(self, name: str, fault: str) -> InputError:
        """An error that names the package of an entry point."""
        entry = _registered(self._group, tuple(sys.path))[name][0]
        return self._fault(f"the {self._noun} '{name}' of the package {_package(entry)} {fault}")

    def _loaded(self, entry: EntryPoint) -> Any:
        with self.calling(entry.name, "cannot be loaded"):
            loaded = entry.load()
        missing = [member for member in self._members if not hasattr(loaded, member)]
        if missing:
            raise self.fault(entry.name, f"has no {' and no '.join(missing)}")
        return loaded

    def _fault(self, fault: str, remedy: str = "correct or uninstall that package") -> InputError:
        return InputError(" ".join(fault.split()), remedy, where=self._group)


@cache
def _registered(group: str, path: tuple[str, ...]) -> Mapping[str, tuple[EntryPoint, ...]]:
    """The entry points of a group by name; `path` is where packages are looked for, so that a change of it counts."""
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for entry in entry_points(group=group):
        found[entry.name] = (*found.get(entry.name, ()), entry)
    return MappingProxyType(found)


def _package(entry: EntryPoint) -> str:
    return "of unknown name" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
