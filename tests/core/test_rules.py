"""The rules of all audits: codes that nobody else has, and texts for people."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from truerank.core.rules import PACKAGES, SEVERITIES, Rule, rules_of


class AnyRule(Rule):
    """A rule whatever else its audit says of it."""

    def __init__(self, name: str, **about: object) -> None:
        fields = ("code", "title", "severity", "effect", "remedy")
        super().__init__(name, **{field: about[field] for field in fields})  # type: ignore[arg-type]


@pytest.mark.parametrize("package", PACKAGES)
def test_rules_have_all_that_is_shown(package: str) -> None:
    for name, rule in rules_of(package, AnyRule).items():
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", name)
        assert re.fullmatch(r"[A-Z]{4,5}\d\d", rule.code)
        assert rule.severity in SEVERITIES
        assert not rule.title.endswith(".")
        for sentence in (rule.effect, rule.remedy):
            assert sentence.endswith(".")


def test_codes_are_given_once() -> None:
    codes = Counter(rule.code for package in PACKAGES for rule in rules_of(package, AnyRule).values())
    assert [code for code, times in codes.items() if times > 1] == []
