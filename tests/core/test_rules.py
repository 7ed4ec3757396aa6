"""The rules of all audits: codes that nobody else has, and texts for people."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from truerank.core.rules import PACKAGES, SEVERITIES, Rule, rules_of
from truerank.judging.schemes import load_scheme
from truerank.text.page_faults import REASONS


@pytest.mark.parametrize("package", PACKAGES)
def test_rules_have_all_that_is_shown(package: str) -> None:
    for name, rule in rules_of(package, Rule).items():
        assert re.fullmatch(r"[a-z0-9]+(-[a-z]+)*", name)
        assert re.fullmatch(r"[A-Z]{4,5}\d\d", rule.code)
        assert rule.severity in SEVERITIES
        assert not rule.title.endswith(".")
        for sentence in (rule.effect, rule.remedy):
            assert sentence.endswith(".")


def test_codes_are_given_once() -> None:
    codes = Counter(rule.code for package in PACKAGES for rule in rules_of(package, Rule).values())
    assert [code for code, times in codes.items() if times > 1] == []


def test_what_people_and_texts_name_has_a_rule() -> None:
    assert [name.replace("-", " ") for name in rules_of("truerank.audits.transfer", Rule)] == list(REASONS)
    choices = [choice.name.replace("_", "-") for choice in load_scheme("survivorship").choices]
    assert list(rules_of("truerank.audits.survivorship", Rule)) == choices
