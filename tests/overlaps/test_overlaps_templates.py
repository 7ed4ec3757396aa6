"""Texts of the same template, and copies that were changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from truerank.near_duplicates import Shingles, keep
from truerank.overlaps.templates import same_templates
from truerank.work.jobs import Job

CLAUSE = (
    "This lease shall be governed by the laws of {} and any dispute shall be settled by the courts of that country "
    "within thirty days after written notice to {} has been received"
)
NEWS = "{}. Reporting by the desk for the north; editing by the night team. Our rules of work are open to all readers"
OPTIONS = "{}? A. Only the first is right. B. Only the second is right. C. Both are right. D. Neither of them is right"


def same(tmp_path: Path, one: str, other: str, *further: str) -> bool:
    side = keep([(str(at), text) for at, text in enumerate((one, other, *further))], Shingles(), Job(tmp_path))
    (found,) = same_templates([("t", "x")], ({"t": one}, {"x": other}), [side], Shingles())
    return found


@pytest.mark.parametrize(
    ("frame", "facts"),
    [
        (CLAUSE, [("Peru", "Ostrava Steel"), ("Ghana", "Lund Paper"), ("Malta", "Brno Glass")]),
        (NEWS, [("Fog closed the port of Esbjerg for hours",), ("A strike ended at the mill in Kolding",),
                ("Skiers left Lillehammer as the snow melted",)]),
        (OPTIONS, [("What does the liver store",), ("Which gas do plants take in",), ("Where are red cells made",)]),
    ],
)  # fmt: skip
def test_a_frame_of_three_texts_is_a_template_and_a_damaged_copy_is_none(
    tmp_path: Path, frame: str, facts: list[tuple[str, ...]]
) -> None:
    texts = [frame.format(*one) for one in facts]
    assert same(tmp_path / "other", texts[0], texts[1], texts[2])
    damaged = texts[0].replace("or", "ro").replace("right. C", "rihgt; C")
    assert not same(tmp_path / "damaged", texts[0], damaged, texts[1], texts[2])
    # Other copies of the same text say nothing of a frame.
    assert not same(tmp_path / "copies", texts[0], f"{damaged} indeed", f"Note: {texts[0]}", texts[0].upper())


def test_where_only_two_texts_have_the_frame_names_and_numbers_decide(tmp_path: Path) -> None:
    text = CLAUSE.format("Peru", "Ostrava Steel")
    assert same(tmp_path / "names", text, CLAUSE.format("Ghana", "Lund Paper"))
    edited = text.replace("settled by", "brought before").replace("received", "accepted")
    assert not same(tmp_path / "edited", text, edited)
    assert not same(tmp_path / "part", text, text[: len(text) // 2])
    assert not same(tmp_path / "inside", text, f"Page 4 of 9. {text} Print this page. Back to Oslo")


def test_a_text_without_its_words_is_no_template(tmp_path: Path) -> None:
    side = keep([("0", "a b c d")], Shingles(), Job(tmp_path))
    assert same_templates([("t", "x")], ({}, {}), [side], Shingles()) == [False]


def test_words_exchanged_one_for_one_at_several_places_fill_in_a_form(tmp_path: Path) -> None:
    frame = (
        "Statement one: every {} {} reflects. Statement two: the {} of {} is shut. Say whether both of these are true, "
        "both are false, or only one of them is, and give reasons for what you say about each in your own words"
    )
    text = frame.format("magnetic", "xylophone", "napkin", "Yamamoto")
    assert same(tmp_path / "form", text, frame.format("coastal", "bobbin", "flute", "Moreau"))
    assert not same(tmp_path / "reworded", text, frame.format("attracting", "instrument", "serviette", "Yamamoto"))
