"""Every command of README.md and docs/ is run, page by page and in the page's order, on small made files.

A page's folder gets the files that its commands name: what a file holds follows from the option that it stands behind,
its format from its name. What an earlier command of the page wrote stays as it is.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import itertools
import json
import random
import re
import shlex
import shutil
import ssl
import subprocess
import threading
import urllib.request
from collections import namedtuple
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ir_datasets
import pytest
from ir_datasets.formats import BaseDocs, BaseQrels, BaseQueries

import archive_server
import transfer_example
from chat_server import Reply, Seen, answered, chat_server, item_of
from places import ROOT
from shortcuts import encoded_once, undrawn
from tls_proxy import write_certificate
from truerank.cli import main
from truerank.cli.commands import COMMANDS
from truerank.judging import Store
from truerank.judging.web.server import Desk
from truerank.sources import read_topics
from truerank.sources.sample import sample_folder

#: What cannot run here, what is run in its place, and why.
REPLACED = (
    (r"--endpoint \S+", "--endpoint {chat}", "a model: a server of the tests answers"),
    (r"^(transfer snapshots .*)", r"\1 --base-url {archive} --search-rate 0 --page-rate 0", "a web archive: a server of the tests has the pages"),
    (r"^(judge serve .*)", r"\1 --port 0", "it waits for people: one asks for the first page, then all have judged"),
    (r"--model monot5\b", "--model bm25:index", "the weights of monoT5 are a download"),
    (r"^(transfer scan .*)", r"\1 --model bm25 --split sliding:30:15", "the same"),
    (r" --engine ray:auto", "", "a cluster"),
)
#: What `…` stands for where the page has no earlier command of that name.
MEANT = {
    "leakage audit": "--train queries.tsv --test topics.trec --encoder packaged",
    "transfer scan": "--version V1=docs-2018.jsonl --version V2=docs-2021.jsonl --qrels train.qrels --topics topics.tsv",
    "survivorship profile": "--log dev=dev_v2.1.json.gz",
    "pool simulate": "--run a.run --run b.run --qrels q.qrels --topics topics.trec --docs docs.trec.gz --trials 1",
    "collection audit": "--qrels q.qrels",
    "judge audit": "--people q.qrels --model gpt=gpt.qrels --run a.run --run b.run",
}
#: Commands that end with another code than 0, as their pages say.
CODES = {
    "truerank check results.csv --system new --baseline old --out check/ --fail-on bad": 3,
    'truerank check check.yaml --fail-on "cannot tell"': 1,
}
#: What a page begins with, where its first commands are on another page.
BEFORE = {
    "depths/": ["survivorship depth --log irds:msmarco-qna/dev --out depths/"],
    "leakage.judged": [
        "judge new leakage.judged --scheme leakage --items audit/ --annotators ann,bob --overlap 100",
        "judge serve leakage.judged --port 0",
    ],
    "audit/": ["leakage audit --train queries.tsv --test topics.trec --encoder packaged --floor 0.5 --out audit/"],
}
#: Pages of more than five seconds of processor time.
SLOW = ()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ITEM = re.compile(r"^```(?!text)\w*\n(.*?)^```|`(truerank [^`]+)`", re.M | re.S)
LINE = re.compile(r"^\s*(?:- run: |run: |\$ )?(truerank .*|printf .*)", re.M)


def commands(page: Path) -> list[str]:
    """What a page lets its readers type: lines of its blocks, and whole commands within its text."""
    listed = []
    for block, inline in ITEM.findall(page.read_text(encoding="utf-8")):
        if block:
            listed += LINE.findall(re.sub(r"\\\n\s*", "", block))
        elif re.search(r"[./]\w|rules?\b|--help\b", inline) and not re.search("…|[A-Z]{5}", inline):
            listed.append(inline)
    return listed


class World:
    """One collection in two versions, with topics, judgments, runs and all that is made of them."""

    def __init__(self, folder: Path) -> None:
        self.kept = folder / "kept"
        files = transfer_example.write(folder / "versions")
        lines = {name: Path(file).read_text().splitlines() for name, file in files.versions.items()}
        self.docs = {name: [json.loads(line) for line in some] for name, some in lines.items()}
        self.topics = dict(line.split("\t") for line in Path(files.topics).read_text().splitlines())
        self.trained = {key: text if int(key) % 3 else f"word{key} 3" for key, text in self.topics.items()}
        self.trained |= {f"{key}00": f"{text} again" for key, text in self.topics.items()}
        # Two documents are copies, and each judged one and its topic are there.
        self.docs["old"] += [row | {"doc_id": f"copy{at}"} for at, row in enumerate(self.docs["old"][:2])]
        judged = [line.split() for line in Path(files.qrels).read_text().splitlines()]
        self.judged = [row for row in judged if row[0] in self.topics and row[2] != "nowhere"]
        more = itertools.product(self.topics, (1, 2, 4, 5), (1, 0))
        self.judged += [[key, "0", f"old{(int(key) + at) % 30}", str(int(at < 3))] for key, at, grade in more if grade]
        self.judged += [["0", "0", "copy0", "0"]]

    def make(self, name: str, role: str) -> None:
        """Writes what a command reads into the current folder."""
        path = Path(name)
        if path.exists() or not (maker := self.maker(name, role)):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        value = maker(name)
        if isinstance(value, bytes):
            path.write_bytes(value)
        elif isinstance(value, str):
            path.write_bytes(gzip.compress(value.encode()) if name.endswith(".gz") else value.encode())

    def maker(self, name: str, role: str) -> Callable[[str], str | bytes | None] | None:
        if name in BEFORE:
            return self.before
        for pattern, maker in NAMED.items():
            if re.fullmatch(pattern, name):
                return lambda name: maker(self, name)
        if role in ROLES and re.search(r"\w[./]", name) and ":" not in name:
            return lambda name: ROLES[role](self, name)
        return None

    def before(self, name: str) -> None:
        """What commands of another page make, made once."""
        kept = self.kept / name
        if not kept.exists():
            self.kept.mkdir(exist_ok=True)
            with contextlib.chdir(self.kept):
                for line in BEFORE[name]:
                    assert not (fault := self.run(line)), fault
        if Path.cwd() == self.kept:
            return
        shutil.copytree(kept, name) if kept.is_dir() else shutil.copy(kept, name)

    def run(self, line: str, code: int = 0) -> str:
        """Runs a command after making what it names; what is wrong with its end."""
        words = self.words = shlex.split(line)
        outputs = {"--out", "--work", "--probe-store"}
        written = 2 if words[:2] == ["judge", "new"] else 3 if words[:2] == ["judge", "export"] else 0
        for place, word in enumerate(words):
            role = words[place - 1] if words[place - 1].startswith("--") else ""
            if place and place != written and role not in outputs and not word.startswith("--"):
                self.make(re.sub(r"^[^=]*=", "", word), role)
        said = io.StringIO(); import time; t0=time.process_time()
        with pytest.raises(SystemExit) as ended, contextlib.redirect_stderr(said):
            main(words)
        open("/tmp/docs_h4/times","a").write(f"{time.process_time()-t0:.2f} {line}\n")
        return "" if ended.value.code == code else f"{line}\n  {ended.value.code}: {said.getvalue()[-600:]}"

    # What a file holds.
    def documents(self, name: str) -> str | None:
        rows = self.docs["new" if re.search("2021|v2", name) else "old"]
        texts = {row["doc_id"]: " ".join(row["body"].split()) for row in rows}
        if name.endswith("/"):
            Path(name).mkdir(parents=True)
            return self.make(f"{name}docs.jsonl", "--docs")
        if size := re.search(r"chunks-(\d+)", name):
            return chunks(texts, int(size[1]))
        if ".tsv" in name:
            return "".join(f"{key}\t{text}\n" for key, text in texts.items())
        if ".trec" in name:
            form = "<DOC>\n<DOCNO>{}</DOCNO>\n<TEXT>\n{}\n</TEXT>\n</DOC>\n"
            return "".join(form.format(*row) for row in texts.items())
        return jsonl(rows)

    def queries(self, name: str) -> str | None:
        if name.endswith("/") or "." not in name:
            folder = name.rstrip("/")
            for part, role in (("corpus.jsonl", "--docs"), ("queries.jsonl", "--topics"), ("qrels/test.tsv", "--qrels")):
                self.make(f"{folder}/{part}", role)
            return None
        if ".trec" in name:
            form = "<top>\n<num> Number: {}\n<title> {}\n<desc> Description:\nWhat is it?\n</top>\n"
            return "".join(form.format(*topic) for topic in self.topics.items())
        if ".jsonl" in name:
            return jsonl({"_id": key, "text": text} for key, text in self.topics.items())
        return "".join(f"{key}\t{text}\n" for key, text in self.topics.items())

    def training(self, name: str) -> str | None:
        rows = list(self.trained.items())
        if name.endswith(".jsonl"):
            rows = rows[:6]
            return jsonl({"anchor": text, "pos" if "suite.yaml" in self.words else "positive": self.docs["old"][int(key)]["body"]} for key, text in rows)
        if "triples" in name:
            return "".join(f"{key}\told{key}\told{(int(key) + 1) % 30}\n" for key in self.topics)
        if name.endswith("/"):
            self.make(f"{name}qrels/train.tsv", "--qrels")
            return self.queries(name)
        return "".join(f"{key}\t{text}\n" for key, text in rows)

    def qrels(self, name: str) -> str:
        if name.endswith(".tsv"):
            rows = [f"{topic}\t{doc}\t{grade}\n" for topic, _, doc, grade in self.judged]
            return "query-id\tcorpus-id\tscore\n" + "".join(rows)
        if "sample-news" in self.words:
            return "".join(f"{topic} 0 old{number % 30} 1\n" for number, topic in enumerate(self.asked))
        return "".join(" ".join(row) + "\n" for row in self.judged)

    def retrieved(self, name: str) -> dict[str, list[str]]:
        """Ten documents for each topic, the right one among the first where the draw wants it."""
        draw, side = random.Random(name), "new" if "v2" in name else "old"
        ids = [row["doc_id"] for row in self.docs[side]]
        lists = {}
        for number, topic in enumerate(self.asked):
            right = f"old{number % 30}" if side == "old" else f"n{30 - number}"
            others = [key for key in draw.sample(ids, 10) if key != right]
            others.insert(draw.randrange(6), right)
            lists[topic] = [key for key in others if key in ids]
        return lists

    @property
    def asked(self) -> list[str]:
        """The topics that runs and judgments are of."""
        sample = str(sample_folder() / "sample-news.trec")
        return [topic.topic_id for topic in read_topics(sample).topics] if "sample-news" in self.words else list(self.topics)

    def ranking(self, name: str) -> str:
        used = "# ir_metadata.start\n# data:\n#   training data:\n#   - ir_datasets: msmarco-document/train\n# ir_metadata.end\n"
        return used * ("--train" in self.words) + "".join(
            f"{topic} Q0 {key} {rank} {30 - rank} {Path(name).stem}\n"
            for topic, keys in self.retrieved(name).items()
            for rank, key in enumerate(keys, start=1)
        )


    def log(self, name: str) -> str:
        """MS MARCO's columns: four passages for each topic, of which every third topic has none that answers."""
        texts, columns = [row["body"] for row in self.docs["old"]], [{} for _ in range(5)]
        for number, (topic, text) in enumerate(self.topics.items()):
            shown = [
                {"passage_text": " ".join(texts[(number + at) % 30].split()), "url": "u", "is_selected": int(at == number % 3 - 1)}
                for at in range(4)
            ]
            row = (int(topic), text, ("ENTITY", "PERSON")[number % 2], ["yes"] if number % 3 else [], shown)
            for column, value in zip(columns, row, strict=True):
                column[str(number)] = value
        names = ("query_id", "query", "query_type", "answers", "passages")
        return json.dumps(dict(zip(names, columns, strict=True)))

    def metadata(self, name: str) -> str:
        """A row for each run of the command, or, where it names none, of three runs."""
        runs = [Path(self.words[at + 1]).stem for at, word in enumerate(self.words) if word == "--run"] or ["a", "b", "c"]
        rows = [("run", "group", "team", "family", "subtask", "category", "task", "evaluation")]
        for number, run in enumerate(runs):
            kind, team = ("trad", "nn")[number % 2], run.partition("_")[0]
            rows.append((run, team, team, team, ("fullrank", "rerank")[number % 2], kind, "docs", "trec_eval"))
        return table(rows, "\t" if name.endswith(".tsv") else ",")

    def means(self, name: str) -> str:
        rows = [("run", "NDCG@10", "MAP", "task", "evaluation")]
        rows += [(run, 0.5 + at / 20, 0.3 + at / 20, "docs", "trec_eval") for at, run in enumerate("abc")]
        return table(rows)

    def results(self, name: str) -> str:
        """A question, the document that it expects, and what systems retrieved: those that the command names, or a, b."""
        systems = [name[:3]] if name in ("old.csv", "new.csv") else ["old", "new"] if "--system" in self.words else "ab"
        lists = [self.retrieved(system) for system in systems]
        rows = [("q", "gold", *systems) if "results" in name else ("question", "expected", *systems)]
        rows += [(text, f"old{key}", *(";".join(ids[key]) for ids in lists)) for key, text in self.topics.items()]
        return table(rows)

    def board(self, name: str) -> str | None:
        """Scores of three systems on eight tasks: MTEB's folder, or a table."""
        draw, rows = random.Random(1), [("system", "task", "score")]
        for system, task in itertools.product(("A", "B", "mine", "baseline"), range(8)):
            rows.append((system, f"Task{task}", draw.uniform(0.3, 0.6)))
        if not name.endswith("/"):
            return table(rows)
        for system, task, score in rows[1:]:
            path = Path(name, system, "r1", f"{task}.json")
            path.parent.mkdir(parents=True, exist_ok=True)
            scores = {"test": [{"main_score": score, "hf_subset": "default"}]}
            path.write_text(json.dumps({"task_name": task, "dataset_revision": "a", "mteb_version": "2.0.0", "scores": scores}))
        return None

    def labelled(self, name: str) -> str:
        """Pairs that one person labelled, as doccano writes them."""
        draw = random.Random(name)
        return jsonl(
            {"id": number, "data": f"{text} {name[:2]}", "label": [draw.choice(LABELS)], "title": text, "topic": key,
             "variant": "", "ms-marco-qid": number, "cosine_similarity": 0.9}
            for number, (key, text) in enumerate(self.topics.items())
        )  # fmt: skip

    def suite(self, name: str) -> str:
        """The file that the page prints, with what it names."""
        text = (ROOT / "docs" / "leakage-matrix.md").read_text().partition("```yaml\n")[2].partition("```")[0]
        for entry, part in re.findall(r"(\w+): \[?([\w./-]+/|[\w.-]+\.[\w.]+|[\w./]+\.\w+)(?=[, \n\]])", text):
            self.make(part, SUITE[entry])
        self.make("terabyte05.tsv.gz", "--train")
        return text


def jsonl(rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def table(rows: Any, between: str = ",") -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=between, lineterminator="\n").writerows(rows)
    return text.getvalue()


def chunks(texts: dict[str, str], size: int) -> str:
    return jsonl(
        {"id": f"{key}-{at}", "doc_id": key, "start": at, "end": min(at + size, len(text)), "text": text[at : at + size]}
        for key, text in texts.items()
        for at in range(0, len(text), size)
    )


def certificate(_: World, name: str) -> None:
    write_certificate(Path(), "judge.example")


def settings(world: World, _: str) -> str:
    """What an earlier check of the same files wrote."""
    return re.sub(r"^out:.*\n", "", Path("check", "check.yaml").read_text().replace("../", ""), flags=re.M)


def task_answers(_: World, name: str) -> str:
    rows = [json.loads(line) for line in Path("tasks.jsonl").read_text().splitlines()]
    return jsonl(row | {"label": ["1"], "username": "eve"} for row in rows)


LABELS = ("Title-Identical", "Title-Generalization", "Title-Reformulation", "Different Topic")
SUITE = {
    "queries": "--train", "examples": "--train", "train_queries": "--train", "train_docs": "--docs",
    "documents": "--docs", "topics": "--topics", "qrels": "--qrels",
}  # fmt: skip
ROLES = {
    **dict.fromkeys(("--docs", "--version", "--collection", "--train-docs", "--spans"), World.documents),
    **dict.fromkeys(("--topics", "--test", "--queries", "--variants"), World.queries),
    **dict.fromkeys(("--train", "--train-queries", "--instances"), World.training),
    **dict.fromkeys(("--qrels", "--previous-qrels", "--expert-qrels", "--sparse-qrels", "--official"), World.qrels),
    **dict.fromkeys(("--people", "--model", "--model-judgments"), World.qrels),
    **dict.fromkeys(("--metadata", "--families"), World.metadata),
    "--run": World.ranking,
    "--items": lambda world, name: world.ranking(name) if name.endswith(".run") else None,
    "--log": World.log,
    "--means": World.means,
}
#: Files whose content follows from their names.
NAMED: dict[str, Callable[[World, str], str | bytes | None]] = {
    r"(results|old|new)\.csv": World.results,
    r"golden\.jsonl": lambda world, _: jsonl(
        {"question": text, "expected": f"old{key}"} for key, text in world.topics.items()
    ),
    r"((agreement|query)-.*|\d\d)\.jsonl": World.labelled,
    r"results/|scores\.csv": World.board,
    r"suite\.yaml": World.suite,
    r"(cert|key)\.pem": certificate,
    r"answers\.jsonl": task_answers,
    r"qrels\.txt|people\.qrels": World.qrels,
    r"check\.yaml": settings,
    r"scifact/": World.queries,
    r"(bm25|dense)\.run": World.ranking,
    r"docs\.(trec\.gz|jsonl)": World.documents,
    r"golden\.qrels": lambda world, _: "".join(f"{key} 0 old{key}-0 1\n" for key in world.topics),
    r"passages\.qrels": lambda world, _: "".join(f"{key} 0 {key}-0 1\n" for key in world.topics),
    r"cast\.qrels": lambda world, _: "".join(f"{key} 0 MARCO_old{key}-0 1\n" for key in world.topics),
    r"passage-to-document\.tsv": lambda world, _: table(
        [("passage", "document"), *((f"{key}-0", f"old{key}") for key in world.topics)], "\t"
    ),
    r"categories\.tsv": lambda world, _: "".join(f"{key}\t{'ab'[int(key) % 2]}\n" for key in world.topics),
    r"dl19-judging\.csv": lambda world, _: table(
        [("topic", "doc_relevant", "doc_judged", "passage_relevant", "passage_judged"), *((key, 4, 9, 5, 9) for key in world.topics)]
    ),
    r"table3\.csv": lambda *_: "set,00,01,10,11,21,12,documents,error\nV1>>V2 FirstP,3,2,9,5,1,1,900,10\n",
    r"pairs\.jsonl": lambda world, _: jsonl(
        {"topic_id": key, "query": text, "doc_id": f"old{n}-{at}", "text": "a text", "stratum": stratum}
        for at, stratum in enumerate(("top grade 0", "top grade 1", "top grades 2-3"))
        for n, (key, text) in enumerate(world.topics.items())
    ),
}


def judged(path: Path) -> None:
    """Everybody in a store judges what they were given, not always alike."""
    with Store.open(path) as store:
        names = [choice.name for choice in store.scheme.choices]
        for person in [one for one in store.annotators() if one.role == "person"]:
            for number, item_id in enumerate(store.assigned(person.name)):
                item = store.item(item_id)
                leaks = "leak" in store.scheme.name
                same = item.title in item.texts[0].text if leaks else number % 2
                label = names[0] if same else names[-leaks or 1] if names[1:] else item.texts[-1].name
                store.record(item_id, person.name, "label", [label])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The collection, with ir_datasets, an endpoint, an archive and people on this machine."""
    made = World(tmp_path_factory.mktemp("world"))

    def visited(desk: Desk) -> None:
        serving = threading.Thread(target=desk._server.run, kwargs={"sockets": [desk._listening]})
        with desk._listening, desk.store:
            serving.start()
            address = re.sub(r"//[^:/]+", "//127.0.0.1", desk.addresses[0])
            unknown = ssl._create_unverified_context() if desk.encrypted else None
            assert urllib.request.urlopen(address, context=unknown, timeout=20).status == 200
            desk.stop()
            serving.join()
        judged(Path(desk.store.path))

    with pytest.MonkeyPatch.context() as patched, contextlib.ExitStack() as open_until:
        patched.setattr(Desk, "run", visited)
        patched.setattr(ir_datasets.registry, "_registered", ir_datasets.registry._registered | data_sets(made))
        for shortcut in (undrawn(), encoded_once()):
            open_until.enter_context(shortcut)
        address, _ = open_until.enter_context(chat_server(answer))
        archive = archive_server.WebArchive()
        for row in made.docs["new"]:
            archive.add(row["url"], archive_server.Snapshot("20150702120000", f"<p>{row['body']}".encode()))
        open_until.enter_context(archive_server.serve(archive))
        made.addresses = {"chat": address, "archive": archive.url}
        yield made


def answer(seen: Seen, _: int) -> Reply:
    """The first label that the prompt lists."""
    return answered({"labels": [re.findall(r"^- (\S.*?):", seen.body["messages"][0]["content"], re.M)[0]]})


def data_sets(world: World) -> dict[str, ir_datasets.Dataset]:
    """For every id of ir_datasets in the docs a data set of that name."""
    document = namedtuple("document", "doc_id title url text")
    query = namedtuple("query", "query_id text")
    judgment = namedtuple("judgment", "query_id doc_id relevance iteration")
    rows = world.docs["old"]

    class Docs(BaseDocs):
        def docs_iter(self) -> Any:
            return iter([document(row["doc_id"], "", row["url"], row["body"]) for row in rows])

        def docs_count(self) -> int:
            return len(rows)

    class Queries(BaseQueries):
        def __init__(self, texts: dict[str, str]) -> None:
            self.texts = texts

        def queries_iter(self) -> Any:
            return itertools.starmap(query, self.texts.items())

    class Qrels(BaseQrels):
        def qrels_iter(self) -> Any:
            return iter([judgment(key, f"old{key}", 1, "0") for key in world.topics])

    names = {name for page in PAGES for line in commands(page) for name in re.findall(r"irds:(\S+)", line)}
    texts = {name: world.trained if re.search("train|orcas", name) else world.topics for name in names}
    return {name: ir_datasets.Dataset(Docs(), Queries(texts[name]), Qrels()) for name in names}


@pytest.mark.parametrize(
    "page", [pytest.param(page, id=page.stem, marks=[pytest.mark.slow] * (page.stem in SLOW)) for page in PAGES if commands(page)]
)
def test_commands_of_a_page(page: Path, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SAMPLE", str(sample_folder()))
    last, faults = dict(MEANT), []
    for line in commands(page):
        if line.startswith("printf"):
            subprocess.run(["bash", "-c", line], check=True)
            continue
        words = shlex.split(re.sub(r" > \S+$", "", line)[9:].replace("$SAMPLE", str(sample_folder())), comments=True)
        name = next((" ".join(words[:n]) for n in (2, 1) if " ".join(words[:n]) in COMMANDS), "")
        given = shlex.join(word for word in words[len(name.split()) :] if word != "…")
        if "…" in words and words[len(name.split())] == "…":
            given = f"{last[name]} {given}"
        last[name] = re.sub(r" ?--(out|floor) \S+", "", given)
        run = f"{name} {given}".strip()
        for pattern, stand_in, _ in REPLACED:
            run = re.sub(pattern, stand_in.format(**world.addresses), run)
        faults.append(world.run(run, CODES.get(line, 0)))
    assert not any(faults), "\n".join(filter(None, faults))
