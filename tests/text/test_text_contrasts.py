"""What a pair of alike texts differs in, where that decides that they ask for other things."""

from __future__ import annotations

import pytest

from truerank.text.contrasts import contrast

OTHERS = [
    ("number", "Who won the cup in 1998?", "Who won the cup in 2002?"),
    ("number", "1,000 cases of measles", "2,000 cases of measles"),
    ("number", "the twenty-first century", "the 20th century"),
    ("number", "returns within 30 days", "returns within two weeks"),
    ("number", "league table 2015/16", "league table 2014/15"),
    ("number", "सन ११९१ में क्या हुआ", "सन ११९२ में क्या हुआ"),
    ("numbers", "population of Malta in 2011", "inflation of Malta in 2015 and 2016"),
    ("code", "BRCA1 mutation carriers", "BRCA2 mutation carriers"),
    ("code", "vitamin c and colds", "vitamin d and colds"),
    ("code", "error 0x8007000e", "error 0x8007000d"),
    ("name", "ValueError in pandas", "AttributeError in pandas"),
    ("opposite", "Zinc increases bone density", "Zinc decreases bone density"),
    ("opposite", "the longest river of the world", "the shortest river of the world"),
    ("opposite", "the capital of france", "the capital of spain"),
    ("opposite", "salary of a baker per month", "annual salary of a baker"),
    ("negation", "Zinc does not increase bone density", "Zinc increases bone density"),
    ("negation", "is the herb legal", "is the herb illegal"),
    ("direction", "night trains from lyon to turin", "night trains from turin to lyon"),
    ("direction", "new york to los angeles by train", "los angeles to new york by train"),
    ("opposite", "how to turn on airplane mode", "how to turn off airplane mode"),
    ("direction", "BRAF activates ERK signalling", "ERK activates BRAF signalling"),
    ("direction", "are wolves faster than bears", "are bears faster than wolves"),
    ("direction", "can a landlord sue a tenant", "can a tenant sue a landlord"),
    ("direction", "how did rome conquer greece", "how did greece conquer rome"),
    ("direction", "liters in a gallon", "gallons in a liter"),
    ("opposite", "zinc delays wound healing", "zinc speeds wound healing"),
    ("opposite", "zinc raises body temperature", "zinc lowers body temperature"),
    ("opposite", "what to eat before a workout", "what to eat during a workout"),
    ("opposite", "full size violin price", "half size violin price"),
    ("name", "How old is Ada Lovelace now?", "How old is Grace Hopper now?"),
]
SAME = [
    ("1,000 cases", "one thousand cases"),
    ("returns within 30 days", "returns within one month"),
    ("returns within 30 days", "returns within a month"),
    ("सन ११९१ में", "सन 1191 में"),
    ("vitamin b-12", "vitamin b12"),
    ("three hundred twenty-five ships", "325 ships"),
    ("1.5 million people", "1,500,000 people"),
    ("the 2nd amendment", "the second amendment"),
    ("the twentieth century", "the 20th century"),
    ("world war ii", "world war two"),
    ("5% of people", "five per cent of people"),
    ("music of the 1990s", "music of the 90s"),
    ("population of iceland 2020", "population of iceland"),
    ("Zinc lowers the risk", "Zinc reduces the risk"),
    ("not safe for dogs", "dangerous for dogs"),
    ("lack of sleep and memory", "sleep loss and memory"),
    ("papers on kites, not on drums or looms", "papers on kites"),
    ("whether or not zinc works", "whether zinc works"),
    ("BRAF activates ERK signalling", "ERK signalling is activated by BRAF"),
    ("pruning apple trees", "apple trees pruning"),
    ("black bear attacks", "attacks bear black"),
    ("difference between cats and dogs", "difference between dogs and cats"),
    ("camping without a tent", "camping witout a tent"),
    ("why does my dog not eat", "why does my dog nto eat"),
    ("why don't cats swim", "why do n't cats swim"),
    ("why don't cats swim", "why don t cats swim"),
    ("why don&#x27;t cats swim", "why don't cats swim"),
    ("best way to travel to rome", "travel to rome best way to"),
    ("keeping mold off walls", "how to keep walls free of mold on them"),
    ("convert celsius to fahrenheit", "celsius to fahrenheit conversion"),
    ("WHO rules for measles", "World Health Organization rules for measles"),
    ("the salt march of Gandhi in short", "the salt march of Ghandi in short"),
    ("car insurance for students", "automobile insurance for students"),
]


@pytest.mark.parametrize(("what", "left", "right"), OTHERS)
def test_what_decides_is_named_either_way(what: str, left: str, right: str) -> None:
    assert (contrast(left, right), contrast(right, left)) == (what, what)


@pytest.mark.parametrize(("left", "right"), SAME)
def test_one_need_in_other_words_has_no_contrast(left: str, right: str) -> None:
    assert (contrast(left, right), contrast(right, left), contrast(left, left)) == ("", "", "")
