"""Annotation schemes as data: what is asked, which labels there are and go together; and the files that hold them."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from truerank.core.plain import plain
from truerank.errors import InputError
from truerank.loading import load_json, load_toml, text_file, whole_number

if TYPE_CHECKING:
    from truerank.judging.items import Item

_TEXT: Final = "a text"
_FLAG: Final = "true or false"
_NUMBER: Final = "a whole number"
_TEXTS: Final = "a list of texts"
_TOP: Final = {
    "name": _TEXT, "title": _TEXT, "question": _TEXT, "view": _TEXT, "guideline": _TEXT, "skip_reasons": _TEXTS,
    "version": _TEXT,
}  # fmt: skip
_CHOICE: Final = {
    "name": _TEXT, "key": _TEXT, "text": _TEXT, "group": _TEXT, "help": _TEXT, "alone": _FLAG, "grade": _NUMBER,
    "aliases": _TEXTS,
}  # fmt: skip
_GROUP: Final = {"name": _TEXT, "title": _TEXT, "required": _FLAG, "exclusive": _FLAG}
_PER_TEXT: Final = {"prefix": _TEXT, "keys": _TEXT, "group": _TEXT}
_VIEWS: Final = ("pair", "versions", "passages", "document")


class _Place:
    """Where a key stands: its path for the message, and its line as far as the text tells."""

    def __init__(self, where: str | Path, text: str) -> None:
        self._where = where
        self._lines = text.split("\n")

    def fault(self, path: str, fault: str, remedy: str) -> InputError:
        return InputError(f"{path}: {fault}" if path else fault, remedy, where=self._where, line=self._line(path))

    def _line(self, path: str) -> int | None:
        """The line of a key: after the n-th header of its table in TOML, after the n-th object's name in JSON."""
        table, _, key = path.rpartition(".")
        start = 0
        if table:
            name, number = table.rstrip("]").split("[") if "[" in table else (table, "1")
            heads = [at for at, line in enumerate(self._lines) if re.match(rf"\s*\[+\s*{re.escape(name)}\s*\]", line)]
            if len(heads) < int(number):
                return None
            start = heads[int(number) - 1]
        for at in range(start, len(self._lines)):
            if re.match(rf'\s*"?{re.escape(key)}"?\s*[=:]', self._lines[at]):
                return at + 1
            if table and at > start and re.match(r"\s*\[", self._lines[at]):
                break
        return start + 1 if table else None


def checked_values(value: Mapping[str, Any], where: str | Path, text: str) -> dict[str, Any]:
    """The scheme's keys and values after their types were looked at."""
    place = _Place(where, text)
    tables = ("choices", "groups", "per_text")
    read = _typed({key: part for key, part in value.items() if key not in tables}, _TOP, "", place)
    for key in ("name", "title", "question", "view"):
        if not read.get(key):
            raise place.fault("", f"no '{key}'", f"write {key} = …")
    if read["view"] not in _VIEWS:
        raise place.fault("view", f"no view '{read['view']}'", f"one of {', '.join(_VIEWS)}")
    read["choices"] = _objects(value.get("choices", []), "choices", _CHOICE, ("name", "key", "text"), place)
    read["groups"] = _objects(value.get("groups", []), "groups", _GROUP, ("name",), place)
    if "per_text" in value:
        read["per_text"] = _object(value["per_text"], "per_text", _PER_TEXT, ("prefix",), place)
    return read


def _objects(
    value: Any, name: str, types: Mapping[str, str], needed: tuple[str, ...], place: _Place
) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise place.fault(name, "is not a list of tables", f"write [[{name}]] before each of them")
    return [_object(part, f"{name}[{number}]", types, needed, place) for number, part in enumerate(value, start=1)]


def _object(value: Any, path: str, types: Mapping[str, str], needed: tuple[str, ...], place: _Place) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise place.fault(path, "is not a table", f"write {', '.join(types)} in it")
    read = _typed(value, types, f"{path}.", place)
    for key in needed:
        if key not in read or (key != "key" and read[key] == "" and not path.startswith("groups")):
            raise place.fault(f"{path}.{key}", "is missing", f"write {key} = …")
    return read


def _typed(value: Mapping[str, Any], types: Mapping[str, str], prefix: str, place: _Place) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for key, part in value.items():
        if key not in types:
            raise place.fault(f"{prefix}{key}", "is not a key of a scheme", f"there are {', '.join(types)}")
        if not _fits(part, types[key]):
            raise place.fault(f"{prefix}{key}", f"is not {types[key]}", "correct it")
        read[key] = part.strip() if isinstance(part, str) and key != "name" else part
    return read


def _fits(value: Any, kind: str) -> bool:
    if kind == _TEXTS:
        return isinstance(value, list) and all(isinstance(part, str) for part in value)
    return type(value) is {_TEXT: str, _FLAG: bool, _NUMBER: int}[kind]


View = Literal["pair", "versions", "passages", "document"]

#: The schemes that come with truerank; `transfer:N` makes one for N versions.
BUILT_IN: Final = (
    "leakage", "leak", "transfer", "survivorship", "answerability", "relevance-documents", "relevance-passages",
    "duplicates",
)  # fmt: skip
#: Keys of the judging page itself: undo, skip, comment, guideline, help, next, previous, and the key list.
RESERVED_KEYS: Final = frozenset("uscghnp?")
_KEYS: Final = "1234567890qwertyioadfjklzxvbm"
_SEPARATORS: Final = frozenset("|;,\n\t")
_JOINTS: Final = re.compile(r"[\s_-]+")


@dataclass(frozen=True)
class Choice:
    """One label of a scheme.

    Attributes:
        name: the stored value, such as "Title-Identical".
        key: the key on the keyboard, one character; empty where the keys do not reach.
        text: what the annotator reads.
        group: choices of one group exclude each other unless the group says otherwise.
        help: a sentence that tells when to choose it.
        alone: excludes every other choice, of whatever group.
        grade: the relevance grade for qrels and ordinal agreement, where the scheme has grades.
        aliases: other names of it in imported files.
    """

    name: str
    key: str
    text: str
    group: str = ""
    help: str = ""
    alone: bool = False
    grade: int | None = None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Group:
    """Choices that answer one part of the question.

    Attributes:
        name: as the choices name it.
        title: the heading above its choices.
        required: a label of it is needed, unless a choice that stands alone was made.
        exclusive: at most one label of it.
    """

    name: str
    title: str = ""
    required: bool = True
    exclusive: bool = True


@dataclass(frozen=True)
class TextChoices:
    """One more choice, in a group, for each text of an item whose name begins with a prefix ("passage 1", …); texts
    beyond the keys have none."""

    prefix: str
    keys: str = _KEYS
    group: str = ""


@dataclass(frozen=True)
class Scheme:
    """What is asked about an item, and the labels that answer it.

    Attributes:
        name: how stores and exports call it.
        title: its heading.
        question: one sentence.
        view: how an item is laid out.
        choices: the labels in the order in which they are shown and stored.
        groups: the groups in the order in which they are shown.
        guideline: plain paragraphs, separated by empty lines.
        skip_reasons: reasons that are offered for skipping an item; others may be written.
        version: of the wording; a change of wording is a new version.
        per_text: further choices that depend on the item's texts.
    """

    name: str
    title: str
    question: str
    view: View
    choices: tuple[Choice, ...]
    groups: tuple[Group, ...] = ()
    guideline: str = ""
    skip_reasons: tuple[str, ...] = ()
    version: str = "1"
    per_text: TextChoices | None = None
    _names: Mapping[str, str] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        if not self.groups:
            named = dict.fromkeys(choice.group for choice in self.choices if not choice.alone)
            object.__setattr__(self, "groups", tuple(Group(name) for name in named))
        _check(self)
        names = {_fold(text): choice.name for choice in self.choices for text in (*choice.aliases, choice.name)}
        object.__setattr__(self, "_names", names)

    def for_item(self, item: Item) -> Scheme:
        """The scheme with the choices that this item's texts bring; itself where it has none of that kind."""
        return self.for_texts([text.name for text in item.texts])

    def for_texts(self, names: Sequence[str]) -> Scheme:
        """The scheme with the choices that texts of these names bring."""
        rule = self.per_text
        return self if rule is None else _extended(self, tuple(name for name in names if name.startswith(rule.prefix)))

    def check(self, labels: Sequence[str], item: Item | None = None) -> tuple[str, ...]:
        """The labels as they are stored: the scheme's spelling and order, each once.

        Args:
            labels: names or aliases; case, blanks, hyphens and underscores do not matter.
            item: the item, for choices that depend on its texts; without it any number of a text is taken.

        Returns:
            The names.

        Raises:
            InputError: no label; a label that the scheme lacks; labels that exclude each other; a required group
                without a label.
        """
        scheme, names = self._known(labels, item)
        if not names:
            raise InputError("no label", f"choose one of {scheme._offered()}", where=self.name)
        chosen = [choice for choice in scheme.choices if choice.name in names]
        for choice in chosen:
            if choice.alone and len(chosen) > 1:
                others = ", ".join(f"'{other.name}'" for other in chosen if other is not choice)
                raise InputError(f"'{choice.name}' excludes {others}", "keep one of them", where=self.name)
        for group in scheme.groups:
            there = [choice.name for choice in chosen if choice.group == group.name and not choice.alone]
            if group.exclusive and len(there) > 1:
                raise InputError(f"'{there[0]}' excludes '{there[1]}'", "keep one of them", where=self.name)
            if group.required and not there and not any(choice.alone for choice in chosen):
                offered = ", ".join(f"'{choice.name}'" for choice in scheme.choices if choice.group == group.name)
                fault = f"no label of the group '{group.title or group.name}'"
                raise InputError(fault, f"one of {offered}", where=self.name)
        return names

    def known(self, labels: Sequence[str], item: Item | None = None) -> tuple[str, ...]:
        """The labels as they are stored, whether or not they go together: how labels of other tools are taken over.

        Raises:
            InputError: a label that the scheme lacks.
        """
        return self._known(labels, item)[1]

    def regular(self, labels: Sequence[str], item: Item | None = None) -> bool:
        """Whether `check` would take the labels."""
        try:
            self.check(labels, item)
        except InputError:
            return False
        return True

    def grade(self, label: str) -> int | None:
        """The grade of a label; None where it has none."""
        return next((choice.grade for choice in self.choices if choice.name == label), None)

    @property
    def graded(self) -> bool:
        """Whether every choice has a grade, so that labels can be written as qrels."""
        return self.per_text is None and all(choice.grade is not None for choice in self.choices)

    def json(self) -> dict[str, Any]:
        """The scheme as a JSON object; `load_scheme` reads it from a file."""
        value: dict[str, Any] = plain(self, "_names")
        usual = plain(Choice("", "", ""), "name", "key", "text")
        value["choices"] = [
            {key: part for key, part in choice.items() if key not in usual or part != usual[key]}
            for choice in value["choices"]
        ]
        return {key: part for key, part in value.items() if part is not None}

    @classmethod
    def from_json(cls, value: Mapping[str, Any], where: str | Path = "scheme", text: str = "") -> Scheme:
        """A scheme from a JSON or TOML object.

        Args:
            value: the object.
            where: the file, for messages.
            text: the file's text, from which the lines of faults are told.

        Raises:
            InputError: a missing or unknown key, a value of the wrong type, labels or keys that are not unique.
        """
        read = checked_values(value, where, text)
        per_text = read.pop("per_text", None)
        choices = tuple(Choice(**{**part, "aliases": tuple(part.get("aliases", ()))}) for part in read.pop("choices"))
        groups = tuple(Group(**part) for part in read.pop("groups", ()))
        reasons = tuple(read.pop("skip_reasons", ()))
        texts = None if per_text is None else TextChoices(**per_text)
        try:
            return cls(**read, choices=choices, groups=groups, skip_reasons=reasons, per_text=texts)
        except InputError as error:
            raise InputError(error.fault, error.remedy, where=where) from error

    def _known(self, labels: Sequence[str], item: Item | None) -> tuple[Scheme, tuple[str, ...]]:
        scheme = self._for_labels(labels) if item is None else self.for_item(item)
        names = {scheme._names.get(_fold(label), "") for label in labels}
        if "" in names:
            label = next(label for label in labels if _fold(label) not in scheme._names)
            fault = f"the scheme has no label '{label[:80]}'"
            raise InputError(fault, f"there are {scheme._offered()}", where=self.name)
        return scheme, tuple(choice.name for choice in scheme.choices if choice.name in names)

    def _for_labels(self, labels: Sequence[str]) -> Scheme:
        """The scheme with the choices of a text that the labels name, where the item is not known."""
        if self.per_text is None:
            return self
        numbered = re.compile(re.escape(_fold(self.per_text.prefix)) + r" ?(\d{1,3})")
        found = [int(match[1]) for label in labels if (match := numbered.fullmatch(_fold(label)))]
        return self.for_texts([f"{self.per_text.prefix} {n}" for n in range(1, max(found, default=0) + 1)])

    def _offered(self) -> str:
        return ", ".join(f"'{choice.name}'" for choice in self.choices)


def load_scheme(name_or_file: str | Path) -> Scheme:
    """A built-in scheme by its name, or one's own from a file.

    Args:
        name_or_file: one of `BUILT_IN`; `transfer:N` for N versions of a document (N at least 2); or a TOML or JSON
            file.

    Returns:
        The scheme.

    Raises:
        InputError: neither a name nor a file; a fault in the file, with its line or key.
    """
    text = str(name_or_file)
    if text in BUILT_IN:
        return _built_in(text)
    name, colon, number = text.partition(":")
    if name == "transfer" and colon:
        versions = whole_number(number)
        if versions is None:
            raise InputError(f"'{number}' is not a number of versions", "write transfer:3", where=text)
        return versions_scheme(versions)
    path = Path(text)
    if path.suffix.lower() not in (".toml", ".json"):
        known = ", ".join((*BUILT_IN, "transfer:N"))
        raise InputError(f"no scheme '{text}'", f"one of {known}, or a file that ends in .toml or .json")
    return _from_file(path)


def versions_scheme(versions: int) -> Scheme:
    """A scheme that grades each of several versions of a document: 0, 1, or 2 for relevant and better than the rest.

    Args:
        versions: how many; their texts are named V1, V2, ….

    Returns:
        A scheme with one required group per version and the labels `V1=0`, `V1=1`, `V1=2`, `V2=0`, ….

    Raises:
        InputError: fewer than 2, or more than there are keys for.
    """
    most = len(_KEYS) // 3
    if not 2 <= versions <= most:
        raise InputError(f"{versions} versions", f"between 2 and {most} can be judged side by side", where="transfer:N")
    if versions == 2:
        return _built_in("transfer")
    base = _built_in("transfer")
    choices, groups = [], []
    for number in range(1, versions + 1):
        groups.append(Group(f"V{number}", f"Version {number}"))
        for grade, text in enumerate(("not relevant", "relevant", "relevant, and better than the others")):
            key = _KEYS[3 * (number - 1) + grade]
            choices.append(Choice(f"V{number}={grade}", key, text, f"V{number}", grade=grade))
    return replace(
        base,
        name=f"transfer:{versions}",
        title=f"Which of {versions} versions of a document is relevant",
        question="How relevant is each version of the document to the query?",
        choices=tuple(choices),
        groups=tuple(groups),
    )


@functools.cache
def _built_in(name: str) -> Scheme:
    text = resources.files("truerank.judging").joinpath(f"schemes/{name}.toml").read_text(encoding="utf-8")
    return Scheme.from_json(load_toml(text, f"{name}.toml"), f"{name}.toml", text)


def _from_file(path: Path) -> Scheme:
    text = text_file(path, "give a TOML or JSON file")
    load = load_toml if path.suffix.lower() == ".toml" else load_json
    value = load(text, path, remedy="correct the line")
    if not isinstance(value, dict):
        fault = "no object"
        raise InputError(fault, "write a scheme as an object with name, title, question, view, choices", where=path)
    return Scheme.from_json(value, path, text)


@functools.lru_cache(maxsize=1024)
def _extended(scheme: Scheme, names: tuple[str, ...]) -> Scheme:
    rule = scheme.per_text
    if rule is None:
        return scheme
    taken = {choice.key for choice in scheme.choices}
    keys = [key for key in rule.keys if key not in taken]
    keys += [""] * (len(names) - len(keys))
    more = tuple(Choice(name, key, name, rule.group) for name, key in zip(names, keys, strict=False))
    return replace(scheme, choices=(*more, *scheme.choices), per_text=None)


def _check(scheme: Scheme) -> None:
    """Faults that only show when the parts are seen together."""
    if not scheme.choices and scheme.per_text is None:
        raise InputError("a scheme without choices", "give it [[choices]]")
    groups = {group.name for group in scheme.groups}
    if len(groups) != len(scheme.groups):
        raise InputError("two groups of one name", "give each group a name of its own")
    for choice in scheme.choices:
        if not _fold(choice.name) or choice.name != choice.name.strip() or _SEPARATORS & set(choice.name):
            fault = f"'{choice.name}' is not a name for a label"
            raise InputError(fault, "use words without '|', ';', ',' and blanks at the ends")
        if choice.key and (len(choice.key) != 1 or not choice.key.isprintable() or choice.key.isspace()):
            raise InputError(f"'{choice.key}' is not a key ('{choice.name}')", "give one visible character")
        if choice.key in RESERVED_KEYS:
            fault = f"the key '{choice.key}' of '{choice.name}' belongs to the page"
            raise InputError(fault, f"choose another than {' '.join(sorted(RESERVED_KEYS))}")
        if choice.group not in groups and not choice.alone:
            raise InputError(f"'{choice.name}' is in the group '{choice.group}', which is not there", "declare it")
    _check_unique(scheme.choices)
    if scheme.per_text is not None and scheme.per_text.group not in groups:
        raise InputError(f"per_text names the group '{scheme.per_text.group}', which is not there", "declare it")


def _check_unique(choices: Sequence[Choice]) -> None:
    seen: dict[tuple[str, Any], str] = {}
    for choice in choices:
        marks: set[tuple[str, Any]] = {("name", _fold(text)) for text in (choice.name, *choice.aliases)}
        marks |= {("key", choice.key)} if choice.key else set()
        marks |= set() if choice.grade is None else {("grade", (choice.group, choice.grade))}
        for mark in sorted(marks, key=str):
            if mark in seen:
                value = choice.grade if mark[0] == "grade" else mark[1]
                fault = f"'{choice.name}' and '{seen[mark]}' have the same {mark[0]} '{value}'"
                raise InputError(fault, "change one of them")
            seen[mark] = choice.name


def _fold(label: str) -> str:
    return _JOINTS.sub(" ", label.strip().casefold()).replace("isation", "ization")
