"""The rules of all audits: codes that nobody else has, and texts for people."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from truerank.core.rules import PACKAGES, SEVERITIES, Rule, rules_of


@pytest.mark.parametrize("package", PACKAGES)
def test_rules_have_all_that_is_shown(package: str) -> None:
    for name, rule in rules_of(package, Rule).items():
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", name)
        assert re.fullmatch(r"[A-Z]{4,5}\d\d", rule.code)
        assert rule.severity in SEVERITIES
        assert not rule.title.endswith(".")
        for sentence in (rule.effect, rule.remedy):
            assert sentence.endswith(".")


def test_codes_are_given_once() -> None:
    codes = Counter(rule.code for package in PACKAGES for rule in rules_of(package, Rule).values())
    assert [code for code, times in codes.items() if times > 1] == []
