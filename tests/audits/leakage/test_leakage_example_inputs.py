"""Training data as people write it: prompts before texts, and files at fault."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from truerank.audits.leakage.documents.texts import prompts
from truerank.errors import InputError, OptionError
from truerank.sources import open_examples
from truerank.sources.columns import Roles

INSTRUCTION = "Instruct: Given a question, find passages that answer it\nQuery: "


def texts_with(prompt: str, every: int) -> list[str]:
    draw = random.Random(7)
    words = [f"word{number}" for number in range(900)]
    asked = [" ".join(draw.sample(words, 4)) for _ in range(600)]
    return [f"{prompt}{text}" if at % every == 0 else text for at, text in enumerate(asked)]


@pytest.mark.parametrize("prompt", ["query: ", "search_query:", INSTRUCTION])
def test_a_prompt_of_many_texts_is_left_out(prompt: str) -> None:
    pattern = prompts(texts_with(prompt, 4))
    assert pattern.sub("", f"{prompt}why is the sky blue: a guide", count=1) == "why is the sky blue: a guide"
    assert pattern.sub("", "no prompt: here", count=1) == "no prompt: here"
    assert pattern.sub("", prompt.strip(), count=1)


def test_what_few_texts_begin_with_is_no_prompt() -> None:
    pattern = prompts(texts_with("define: ", 60))
    assert pattern.sub("", "define: hubris", count=1) == "define: hubris"
    # A label of embedding models is one wherever it stands.
    assert pattern.sub("", "query: hubris", count=1) == "hubris"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("twice.csv", "query,query,positive\na b,c d,e f\n", "twice.csv:1: column 'query' appears twice."),
        ("header.csv", "query,positive\n", "header.csv: no examples in it."),
        ("empty.jsonl", json.dumps({"query": "", "positive": ""}), "hold nothing in query and positive."),
    ],
)
def test_a_fault_of_the_file_is_named(tmp_path: Path, name: str, content: str, said: str) -> None:
    path = tmp_path / name
    path.write_text(f"{content}\n", encoding="utf-8")
    with pytest.raises(InputError) as fault:
        _ = open_examples(str(path)).roles
    assert said in str(fault.value)
    assert fault.value.remedy


def test_a_column_has_one_role() -> None:
    with pytest.raises(OptionError, match="column 'text' is query and positive"):
        Roles.parse("query=text,positive=text")
    assert Roles.parse("positive=a,positive=b").of("positive") == ("a", "b")
