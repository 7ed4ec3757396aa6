"""Every command of README.md and docs/ is run, page by page and in the page's order, on a small made collection."""

from __future__ import annotations

import re
import shlex
import ssl
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import ir_datasets
import pytest

import archive_server
from chat_server import Reply, Seen, answered, chat_server
from docs_world import World, judged
from places import ROOT
from shortcuts import encoded_once, undrawn
from truerank.cli.commands import COMMANDS
from truerank.judging.web.server import Desk
from truerank.sources.sample import sample_folder

#: What cannot run here, what runs in its place, and why. Sources `irds:…` are data sets of the small collection.
REPLACED = (
    (r"--endpoint \S+", "--endpoint {chat}", "a model: a server on this machine answers"),
    (r"^transfer snapshots", r"\g<0> --base-url {archive} --search-rate 0 --page-rate 0", "the same of an archive"),
    (r"^judge serve \S+", r"\g<0> --port 0", "it waits for people: one gets the first page, then all have judged"),
    (r"--model monot5\b", "--model monot5:models/t5", "a download of weights: small ones without training"),
    (r"^transfer scan", r"\g<0> --model bm25 --split sliding:30:15", "a download of weights"),
    (r" --engine ray:auto", "", "a cluster"),
    (r" -n 52\b", " -n 5", "the collection has 30 topics"),
)
#: What `…` stands for where the page has no earlier command of that name.
MEANT = {
    "leakage audit": "--train queries.tsv --test topics.trec --encoder packaged",
    "transfer scan": "--version V1=docs-2018.jsonl --version V2=docs-2021.jsonl --qrels q.qrels --topics topics.tsv",
    "survivorship profile": "--log dev=dev_v2.1.json.gz",
    "pool simulate": "--run a.run --run b.run --qrels q.qrels --topics topics.trec --docs docs.trec.gz --trials 1",
    "collection audit": "--qrels q.qrels",
    "judge audit": "--people q.qrels --model gpt=gpt.qrels --run a.run --run b.run",
}
#: Commands that end with another code than 0, as their pages say.
CODES = {
    "collection audit --qrels qrels/test.qrels --docs corpus.jsonl --fail-on faulty --out collection/": 1,
    "leakage audit --train train-queries.tsv --test queries.jsonl --fail-on contaminated --out leakage/": 1,
    "check results.csv --system new --baseline old --out check/ --fail-on bad": 3,
    "check check.yaml --fail-on 'cannot tell'": 1,
    "track validate --run mine.run --topics topics.tsv --candidates top100.run.gz --max-results 100": 1,
}
#: Pages of more than five seconds of processor time.
SLOW = ("README", "tour", "tutorial-check", "tutorial-leakage")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```|^    (truerank [^\n]+)|`(truerank [^`]+)`", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"^\s*(?:(?:- )?run: |\$ )?(truerank .*|printf .*)", re.MULTILINE)


def commands(page: Path) -> list[str]:
    """What a page lets its readers type: lines of its blocks, and commands with all that they need within its text."""
    listed = []
    for language, block, indented, inline in BLOCK.findall(re.sub(r"\\\n\s*", "", page.read_text(encoding="utf-8"))):
        if block and language != "text":
            listed += LINE.findall(block)
        elif indented:
            listed.append(indented)
        elif re.search(r"[./]\w|rules?\b|--help\b", inline) and not re.search("…|COMMAND", inline):
            listed.append(inline)
    return listed


PAGES = {page.stem: commands(page) for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))}


def first_label(seen: Seen, _: int) -> Reply:
    """What the model says: the first label that the prompt lists."""
    return answered({"labels": re.findall(r'^- "(.*?)":', seen.body["messages"][0]["content"], re.MULTILINE)[:1]})


def visited(desk: Desk) -> None:
    """In place of `Desk.run`."""
    serving = threading.Thread(target=desk._server.run, kwargs={"sockets": [desk._listening]})
    with desk._listening, desk.store:
        serving.start()
        address = re.sub(r"//[^:/]+", "//127.0.0.1", desk.addresses[0])
        unverified = ssl._create_unverified_context() if desk.encrypted else None
        with urllib.request.urlopen(address, context=unverified, timeout=20) as page:
            assert page.status == 200
        desk.stop()
        serving.join()
    judged(Path(desk.store.path))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The collection; ir_datasets, a model, an archive and people are on this machine."""
    made, archive = World(tmp_path_factory.mktemp("world")), archive_server.WebArchive()
    for row in made.docs["new"]:
        archive.add(row["url"], archive_server.Snapshot("20150702120000", f"<p>{row['body']}".encode()))
    with pytest.MonkeyPatch.context() as patched, ExitStack() as stack:
        patched.setattr(Desk, "run", visited)
        patched.setattr(ir_datasets, "load", made.loaded)
        stack.enter_context(undrawn())
        stack.enter_context(encoded_once())
        address, _ = stack.enter_context(chat_server(first_label))
        made.addresses = {"chat": address, "archive": stack.enter_context(archive_server.serve(archive)).url}
        yield made


def meant(line: str, last: dict[str, str]) -> str:
    """A command with what `…` stands for and what is run in its place."""
    line = re.sub(r" > [\w.]+$", "", line.replace("$SAMPLE", str(sample_folder())))
    words = shlex.split(line, comments=True)[1:]
    name = next(known for known in (" ".join(words[:2]), words[0]) if known in COMMANDS)
    rest = words[len(name.split()) :]
    given = shlex.join(word for word in rest if word != "…")
    if rest[:1] == ["…"]:
        given = f"{last[name]} {given}"
    last[name] = re.sub(r" ?--(out|floor) \S+", "", given)
    return f"{name} {given}".strip()


@pytest.mark.parametrize(
    "page", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in PAGES if PAGES[name]]
)
def test_commands_of_a_page(page: str, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    last, faults = dict(MEANT), []
    for line in PAGES[page]:
        if line.startswith("printf"):
            subprocess.run(["bash", "-c", line], check=True)
            continue
        command = meant(line, last)
        code = CODES.get(command, 0)
        for pattern, stand_in, _ in REPLACED:
            command = re.sub(pattern, stand_in.format(**world.addresses), command)
        faults.append(world.run(command, code))
    assert not any(faults), "\n".join(filter(None, faults))


def test_no_command_is_forgotten() -> None:
    """Each command of the command line is run by some page."""
    run = {meant(line, dict(MEANT)) for lines in PAGES.values() for line in lines if line.startswith("truerank")}
    assert not [name for name in COMMANDS if not any(f"{line} ".startswith(f"{name} ") for line in run)]
