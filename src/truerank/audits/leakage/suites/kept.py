"""What the sources of a suite are compared by, kept in the output folder and opened when needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.audits.leakage.suites.reading import SuiteSet, TextSource
from truerank.overlaps import KeptTexts, OverlapRules, keep, kept_before, open_kept
from truerank.overlaps.keeping import ComparedForm, holds_any, keep_without, shared_passages
from truerank.vectors.encoders import Encoder
from truerank.work.artifacts import digest
from truerank.work.jobs import Job
from truerank.work.kept import is_whole, keep_json, keep_text, kept_json, kept_text

_FORMAT: Final = 5
_PLAIN: Final = ComparedForm()
#: Beside the texts of a source: the passages that many of them hold; written last.
_PASSAGES: Final = "passages.json"
#: Beside those in another form: that they are whole.
_WHOLE: Final = "formed"


class TextUnit(NamedTuple):
    """Texts of one source, and the key under which they are kept."""

    source: TextSource
    key: str


@dataclass(frozen=True)
class KeptSources:
    """All texts of a suite as they are compared.

    Attributes:
        rules: what an n-gram is.
        encoder: makes vectors; None for none.
        job: the folder that keeps them, what runs the work, and whom it tells.
        read: the sources that were read now, because nothing was kept of them.
        again: those that were read again, because boilerplate of a test set stands in them.
    """

    rules: OverlapRules
    encoder: Encoder | None
    job: Job
    read: list[str] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    _keys: dict[TextSource, str] = field(default_factory=dict)
    _opened: dict[str, KeptTexts] = field(default_factory=dict)
    _about: dict[str, dict[str, Any]] = field(default_factory=dict)
    _formed: dict[tuple[str, ComparedForm], TextUnit] = field(default_factory=dict)
    _forms: dict[str, ComparedForm] = field(default_factory=dict)

    def units(self, one: SuiteSet, part: str | None = None) -> list[TextUnit]:
        """The sources of a set, or those of queries or documents; their texts as they are without a test set."""
        found = []
        for source in one.sources if part is None else one.of_part(part):
            if source not in self._keys:
                encoder = None if self.encoder is None else self.encoder.fingerprint
                self._keys[source] = digest([_FORMAT, source.fingerprint, self.rules.ngram, encoder])[:20]
            found.append(TextUnit(source, self._keys[source]))
        return found

    def units_for(self, test: SuiteSet, one: SuiteSet, part: str) -> list[TextUnit]:
        """The sources of a set as they are compared with a test set: without its boilerplate."""
        form = self.form(test)
        return [self._in_form(unit, form) for unit in self.units(one, part)]

    def form(self, test: SuiteSet) -> ComparedForm:
        """The form in which the texts of a test set, and others with them, are compared."""
        if test.name not in self._forms:
            rows = self.boilerplate(test)
            self._forms[test.name] = ComparedForm(tuple(row["passage"] for row in rows))
        return self._forms[test.name]

    def boilerplate(self, test: SuiteSet) -> list[dict[str, Any]]:
        """The passages that many texts of a test set hold, with their counts."""
        return [row for unit in self.units(test) for row in self._known(unit)["passages"]]

    def texts(self, unit: TextUnit) -> KeptTexts:
        """The texts of a source; they are read where nothing is kept of them."""
        if unit.key not in self._opened:
            folder = self._folder(unit.key)
            before = kept_before(folder, self.rules)
            if before is None or not (is_whole(folder / _PASSAGES) or is_whole(folder / _WHOLE)):
                self._keep(unit, folder)
                before = open_kept(folder, self.rules)
            self._opened[unit.key] = before
        return self._opened[unit.key]

    def unread(self, unit: TextUnit) -> int:
        """Records of a source that could not be read."""
        return int(self._known(TextUnit(unit.source, self._keys[unit.source]))["unread"])

    def items(self, unit: TextUnit) -> int:
        """The number of topics or documents: several texts may have one id."""
        known = self._known(unit)
        if "items" not in known:
            blocks = [(part, block) for part in self.texts(unit).parts for block in range(len(part.shingles.sizes))]
            ids = [part.shingles.ids(block).alias("id") for part, block in blocks]
            known["items"] = pl.concat([pl.Series("id", [], pl.String), *ids]).n_unique()
            keep_json(self._folder(unit.key) / _PASSAGES, known)
        return int(known["items"])

    def _known(self, unit: TextUnit) -> dict[str, Any]:
        """What is known of the texts of a source beside themselves."""
        if unit.key not in self._about:
            self.texts(unit)
            known = kept_json(self._folder(unit.key) / _PASSAGES)
            self._about[unit.key] = {"unread": 0, "passages": []} if known is None else known
        return self._about[unit.key]

    def _folder(self, key: str) -> Path:
        return self.job.folder / "texts" / key

    def _keep(self, unit: TextUnit, folder: Path) -> None:
        self.read.append(unit.source.spec)
        stream = unit.source.texts()
        formed = ((text_id, _PLAIN(text)) for text_id, text in stream)
        made = keep(formed, self.rules, replace(self.job, folder=folder), self.encoder)
        known = {"unread": stream.unread, "passages": shared_passages(made).to_dicts()}
        keep_json(folder / _PASSAGES, known)

    def _in_form(self, unit: TextUnit, form: ComparedForm) -> TextUnit:
        """The texts of a source in another form: the same ones where this changes none."""
        if not form.passages:
            return unit
        if (unit.key, form) not in self._formed:
            made = TextUnit(unit.source, digest([unit.key, form.passages])[:20])
            folder = self._folder(made.key)
            state = kept_text(folder / _WHOLE)
            if state is None or (state == "1" and kept_before(folder, self.rules) is None):
                changes = holds_any(self.texts(unit), form)
                if changes:
                    self.again.append(unit.source.spec)
                    texts: Iterator[tuple[str, str]] = iter(unit.source.texts())
                    keep_without(self.texts(unit), texts, form, replace(self.job, folder=folder), self.encoder)
                state = str(int(changes))
                keep_text(folder / _WHOLE, state)
            self._formed[unit.key, form] = made if state == "1" else unit
        return self._formed[unit.key, form]
