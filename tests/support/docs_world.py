"""One small collection under every name that the docs give to a file: documents, topics, judgments, runs, labels.

What a file holds follows from its name, or else from the option that it stands behind; its format from its ending.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import importlib
import io
import itertools
import json
import random
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tiny_models
import transfer_example
from truerank.cli import main
from truerank.judging import Store
from truerank.sources import read_topics
from truerank.sources.sample import sample_folder

__all__ = ["World", "judged"]

#: What commands of other pages make, where a page begins with it.
BEFORE = {
    "audit/": ["leakage audit --train queries.tsv --test topics.trec --encoder packaged --floor 0.8 --out audit/"],
    **{
        name: [f"evaluate --qrels test.qrels --run bm25.run --run monot5.run --out {name}"]
        for name in ("evaluation/", "without-leakage/", "with-leakage/", "depth-1/", "full/")
    },
    "depths/": ["survivorship depth --log irds:msmarco-qna/dev --out depths/"],
    "leakage.judged": [
        "judge new leakage.judged --scheme leakage --items audit/ --annotators ann,bob --overlap 100",
        "judge serve leakage.judged --port 0",
    ],
}
OUTPUTS = ("--out", "--work", "--probe-store")
LABELS = ("Title-Identical", "Title-Generalization", "Title-Reformulation", "Different Topic")
TREC_TOPIC = "<top>\n<num> Number: {}\n<title> {}\n<desc> Description:\nWhat is it?\n</top>\n"
TREC_DOCUMENT = "<DOC>\n<DOCNO>{}</DOCNO>\n<TEXT>\n{}\n</TEXT>\n</DOC>\n"
HEADER = "# ir_metadata.start\n# data:\n#   training data:\n#   - ir_datasets: orcas\n# ir_metadata.end\n"
BOARD = {"dataset_revision": "a", "mteb_version": "2.0.0"}


def jsonl(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def table(rows: Iterable[Iterable[object]], between: str = ",") -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=between, lineterminator="\n").writerows(rows)
    return text.getvalue()


def tabbed(rows: Iterable[Iterable[object]]) -> str:
    return table(rows, "\t")


class World:
    """The collection of `transfer_example` in two versions, and what is made of it; commands run on it."""

    def __init__(self, folder: Path) -> None:
        self.kept = folder / "kept"
        self.kept.mkdir(parents=True)
        files = transfer_example.write(folder / "versions")
        lines = {name: Path(file).read_text().splitlines() for name, file in files.versions.items()}
        self.docs = {name: [json.loads(line) for line in some] for name, some in lines.items()}
        self.docs["old"] += [row | {"doc_id": f"copy{at}"} for at, row in enumerate(self.docs["old"][:2])]
        self.topics = {str(topic): transfer_example.query(topic) for topic in range(transfer_example.TOPICS)}
        # Of three topics two leak.
        self.trained = {key: text if int(key) % 3 else f"word{key} 3" for key, text in self.topics.items()}
        self.trained |= {f"{key}00": f"{text} again" for key, text in self.topics.items() if int(key)}
        # For each topic three relevant documents of six; a copy is judged in another way.
        grades = ((0, 2), (1, 1), (2, 1), (3, 0), (4, 0), (5, 0))
        self.judged = [(key, f"old{(int(key) + at) % 30}", grade) for key in self.topics for at, grade in grades]
        self.judged.append(("0", "copy0", 0))
        self.words: list[str] = []

    def run(self, line: str, code: int = 0) -> str:
        """Runs a command after making what it names; says what is wrong with its end."""
        self.words = shlex.split(line)
        written = {("judge", "new"): 2, ("judge", "export"): 3}.get((*self.words[:2],), 0)
        for place, (before, word) in enumerate(itertools.pairwise(self.words), start=1):
            if place != written and before not in OUTPUTS and not word.startswith("--"):
                self.make(word.partition("=")[2] or word, before)
        said = io.StringIO()
        with pytest.raises(SystemExit) as ended, contextlib.redirect_stderr(said):
            main(self.words)
        return "" if ended.value.code == code else f"{line}\n  {ended.value.code}: {said.getvalue()[-600:]}"

    def make(self, name: str, option: str) -> None:
        """Writes what a command reads into the current folder, if it is not there."""
        maker = next((maker for pattern, maker in NAMED.items() if re.fullmatch(pattern, name)), OPTIONS.get(option))
        path, is_file = Path(name), re.search("[./]", name) and not re.match(r"irds:|https?:", name)
        # What an earlier command should have written stays missing.
        written = any((folder / "manifest.json").exists() for folder in [*path.parents][:-1])
        if path.exists() or written or not is_file or not (maker or name in BEFORE):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        if name in BEFORE:
            self._before(name)
        elif isinstance(text := maker(self, name), str):
            path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())

    def _before(self, name: str) -> None:
        kept = self.kept / name
        if not kept.exists():
            with contextlib.chdir(self.kept):
                faults = [self.run(line) for line in BEFORE[name]]
            assert not any(faults), faults
        if Path.cwd() != self.kept:
            shutil.copytree(kept, name) if kept.is_dir() else shutil.copy(kept, name)

    def loaded(self, name: str) -> SimpleNamespace:
        """A data set of ir_datasets, of whatever name."""
        row, rows = SimpleNamespace, self.docs["old"]
        texts = self.trained if re.search("train|orcas", name) else self.topics
        return row(
            has=lambda entity: True,
            docs_count=lambda: len(rows),
            docs_iter=lambda: (row(doc_id=doc["doc_id"], url=doc["url"], text=doc["body"]) for doc in rows),
            queries_iter=lambda: (row(query_id=key, text=text) for key, text in texts.items()),
            qrels_iter=lambda: (row(query_id=key, doc_id=f"old{key}", relevance=1) for key in self.topics),
        )

    def documents(self, name: str) -> str | None:
        rows = self.docs["new" if re.search("2021|v2", name) else "old"]
        texts = [(row["doc_id"], " ".join(row["body"].split())) for row in rows]
        if name.endswith("/"):
            return self.make(f"{name}docs.jsonl", "--docs")
        if size := int((re.findall(r"chunks-(\d+)", name) or [0])[0]):
            return jsonl(
                {"id": f"{key}-{at}", "doc_id": key, "start": at, "end": at + len(text[at : at + size]),
                 "text": text[at : at + size]}
                for key, text in texts for at in range(0, len(text), size)
            )  # fmt: skip
        if "msmarco-docs" in name:
            return tabbed((key, f"http://x.org/{key}", key, text) for key, text in texts)
        if ".trec" in name:
            return "".join(TREC_DOCUMENT.format(*row) for row in texts)
        return tabbed(texts) if ".tsv" in name else jsonl(rows)

    def queries(self, name: str) -> str | None:
        """Topics; a folder is BEIR's."""
        if "." not in name:
            self.make(f"{name.rstrip('/')}/corpus.jsonl", "--docs")
            self.make(f"{name.rstrip('/')}/queries.jsonl", "--topics")
            return self.make(f"{name.rstrip('/')}/qrels/test.tsv", "--qrels")
        if ".trec" in name:
            return "".join(TREC_TOPIC.format(*topic) for topic in self.topics.items())
        if ".jsonl" in name:
            return jsonl({"_id": key, "text": text} for key, text in self.topics.items())
        return tabbed(self.topics.items())

    def training(self, name: str) -> str | None:
        """Training queries; examples with their texts in JSONL, of ids in triples, in BEIR's folder."""
        if name.endswith(".run"):
            return HEADER + self.ranking(name)
        if "triples" in name:
            return tabbed((key, f"old{key}", f"old{(int(key) + 1) % 30}") for key in self.topics)
        if name.endswith("/"):
            self.make(f"{name}qrels/train.tsv", "--qrels")
            return self.queries(name)
        if ".jsonl" not in name:
            return tabbed(self.trained.items())
        rows = list(self.topics.items())[:5]
        return jsonl({"anchor": text, "positive": self.docs["old"][int(key)]["body"]} for key, text in rows)

    @property
    def asked(self) -> list[str]:
        """The topics that runs and judgments are of."""
        if "sample-news" in self.words:
            return [topic.topic_id for topic in read_topics(str(sample_folder() / "sample-news.trec")).topics]
        return list(self.topics)

    def qrels(self, name: str) -> str:
        if name.endswith(".tsv"):
            return tabbed([("query-id", "corpus-id", "score"), *self.judged])
        topics = dict(zip(self.asked, self.topics, strict=False)).items()
        return "".join(
            f"{asked} 0 {doc} {grade}\n" for asked, key in topics for of, doc, grade in self.judged if of == key
        )

    def retrieved(self, name: str) -> dict[str, list[str]]:
        """Ten documents for each topic, the right one among the first six."""
        draw, side = random.Random(name), "new" if "v2" in name else "old"
        ids, lists = [row["doc_id"] for row in self.docs[side]], {}
        for number, topic in enumerate(self.asked):
            right = f"old{number % 30}" if side == "old" else f"n{30 - number}"
            lists[topic] = [key for key in draw.sample(ids, 10) if key != right]
            lists[topic][(place := draw.randrange(6)) : place] = [right] * (right in ids)
        return lists

    def ranking(self, name: str) -> str:
        lists = self.retrieved(name).items()
        return "".join(
            f"{topic} Q0 {key} {at} {30 - at} x\n" for topic, keys in lists for at, key in enumerate(keys, 1)
        )

    def log(self, name: str) -> str:
        """MS MARCO's columns: four passages for each topic, of which none answers every third topic."""
        texts = [" ".join(row["body"].split()) for row in self.docs["old"]]
        columns: dict[str, Any] = {
            "query_id": {},
            "query": self.topics,
            "query_type": {},
            "answers": {},
            "passages": {},
        }
        for number, topic in enumerate(self.topics):
            columns["query_id"][topic], columns["query_type"][topic] = number, ("ENTITY", "PERSON")[number % 2]
            columns["answers"][topic] = ["yes"] * (number % 3)
            columns["passages"][topic] = [
                {"passage_text": texts[(number + at) % 30], "url": "u", "is_selected": int(at == number % 3 - 1)}
                for at in range(4)
            ]
        return json.dumps(columns)

    def metadata(self, name: str) -> str:
        """A row for each run of the command, or, where it names none, of three runs."""
        runs = [Path(file).stem for option, file in itertools.pairwise(self.words) if option == "--run"] or list("abc")
        rows = [("run", "group", "team", "family", "subtask", "category", "task", "evaluation")]
        for number, run in enumerate(runs):
            team, kind, subtask = run.partition("_")[0], ("trad", "nn")[number % 2], ("fullrank", "rerank")[number % 2]
            rows.append((run, team, team, team, subtask, kind, "docs", "trec_eval"))
        return table(rows, "\t" if name.endswith(".tsv") else ",")

    def means(self, _: str) -> str:
        rows = ((run, 0.5 + at / 20, 0.3 + at / 20, "docs", "trec_eval") for at, run in enumerate("abc"))
        return table([("run", "NDCG@10", "MAP", "task", "evaluation"), *rows])

    def results(self, name: str) -> str:
        """A question, the document that it expects, and what systems retrieved: those that are named, or a and b."""
        named = [name[:3]] if name in ("old.csv", "new.csv") else ["old", "new"] if "--system" in self.words else "ab"
        lists = [self.retrieved(system) for system in named]
        head = ("q", "gold") if name == "results.csv" else ("question", "expected")
        rows = ((text, f"old{key}", *(";".join(of[key]) for of in lists)) for key, text in self.topics.items())
        return table([(*head, *named), *rows])

    def board(self, name: str) -> str | None:
        """Scores of four systems on eight tasks: MTEB's folder, or a table."""
        draw = random.Random(1)
        pairs = itertools.product(("A", "B", "mine", "baseline"), range(8))
        rows = [(system, f"Task{task}", draw.uniform(0.3, 0.6)) for system, task in pairs]
        if not name.endswith("/"):
            return table([("system", "task", "score"), *rows])
        for system, task, score in rows:
            path = Path(name, system, "r1", f"{task}.json")
            path.parent.mkdir(parents=True, exist_ok=True)
            scores = {"test": [{"main_score": score, "hf_subset": "default"}]}
            path.write_text(json.dumps({"task_name": task, "scores": scores, **BOARD}))
        return None

    def labelled(self, name: str) -> str:
        """Pairs that one person labelled, as doccano writes them."""
        draw = random.Random(name)
        return jsonl(
            {"id": number, "data": f"{text} {name[:2]}", "label": [draw.choice(LABELS)], "title": text, "topic": key,
             "variant": "", "ms-marco-qid": number, "cosine_similarity": 0.9}
            for number, (key, text) in enumerate(self.topics.items())
        )  # fmt: skip

    def beside(self, name: str) -> str:
        """Grades of a person and of another one, or of a model, in columns beside each other."""
        head = ("answer", "ann", "bob") if name == "labels.csv" else ("topic", "passage", "ann", "gpt")
        keys = ((f"{key}-{doc}",) if name == "labels.csv" else (key, doc) for key, doc, _ in self.judged)
        rows = (
            (*own, grade, grade and at % 3) for at, (own, (*_, grade)) in enumerate(zip(keys, self.judged, strict=True))
        )
        return table([head, *rows])

    def answered(self, _: str) -> str:
        """The tasks that the page exported, with answers."""
        rows = map(json.loads, Path("tasks.jsonl").read_text().splitlines())
        return jsonl(row | {"label": ["1"], "username": "eve"} for row in rows)

    def settings(self, _: str) -> str:
        """What an earlier check of the page wrote, for the folder above."""
        text = Path("check", "check.yaml").read_text().replace("../", "")
        return re.sub(r"^out:.*\n", "", text, flags=re.MULTILINE)

    def certificate(self, _: str) -> None:
        pytest.importorskip("cryptography")
        importlib.import_module("tls_proxy").write_certificate(Path(), "judge.example")

    def weights(self, name: str) -> None:
        pytest.importorskip("transformers")
        kind, _, folder = name.partition(":")
        tiny_models.save_t5(Path(folder)) if kind == "monot5" else tiny_models.save_bert(Path(folder), labels=2)

    def judgments_of(self, form: str) -> str:
        """For each topic one relevant id of another form."""
        return "".join(f"{key} 0 {form.format(key)} 1\n" for key in self.topics)


def judged(path: Path) -> None:
    """Everybody in a store judges what they were given, not always alike."""
    with Store.open(path) as store:
        names, leaks = [choice.name for choice in store.scheme.choices], "leak" in store.scheme.name
        for person in [annotator.name for annotator in store.annotators() if annotator.role == "person"]:
            for number, item in enumerate(map(store.item, store.assigned(person))):
                first = item.title in item.texts[0].text if leaks else number % 2
                other = names[-1 if leaks else 1] if names[1:] else item.texts[-1].name
                store.record(item.item_id, person, "label", [names[0] if first else other])


Maker = Callable[[World, str], str | None]
#: What stands in a file by the option that it is given to.
OPTIONS: dict[str, Maker] = {
    **dict.fromkeys(("--docs", "--version", "--collection", "--train-docs", "--spans"), World.documents),
    **dict.fromkeys(("--topics", "--test", "--queries", "--variants"), World.queries),
    **dict.fromkeys(("--train", "--train-queries", "--instances"), World.training),
    **dict.fromkeys(("--qrels", "--previous-qrels", "--expert-qrels", "--sparse-qrels", "--official"), World.qrels),
    **dict.fromkeys(("--people", "--model", "--model-judgments"), World.qrels),
    **dict.fromkeys(("--metadata", "--families"), World.metadata),
    "--run": World.ranking,
    "--repeats": lambda world, name: [world.make(name.replace("*", number), "--run") for number in "12"] and None,
    "--log": World.log,
    "--means": World.means,
}
#: Files whose names say what they hold.
NAMED: dict[str, Maker] = {
    r"(results|old|new)\.csv": World.results,
    r"results/|scores\.csv": World.board,
    r"((agreement|query)-.*|\d\d)\.jsonl": World.labelled,
    r"answers\.jsonl": World.answered,
    r"check\.yaml": World.settings,
    r"(cert|key)\.pem": World.certificate,
    r"mono(bert|t5):models/\w+": World.weights,
    r"qrels\.txt|people\.qrels": World.qrels,
    r"scifact/": World.queries,
    r"(bm25|dense)\.run": lambda world, name: HEADER * ("--train" in world.words) + world.ranking(name),
    r"docs\.(trec\.gz|jsonl)": World.documents,
    r"golden\.qrels": lambda world, _: world.judgments_of("old{}-0"),
    r"passages\.qrels": lambda world, _: world.judgments_of("{}-0"),
    r"cast\.qrels": lambda world, _: world.judgments_of("MARCO_old{}-0"),
    r"passage-to-document\.tsv": lambda world, _: tabbed(
        [("passage", "document"), *((f"{key}-0", f"old{key}") for key in world.topics)]
    ),
    r"golden\.jsonl": lambda world, _: jsonl(
        {"question": text, "expected": f"old{key}"} for key, text in world.topics.items()
    ),
    r"categories\.tsv": lambda world, _: tabbed((key, "ab"[int(key) % 2]) for key in world.topics),
    r"(labels|grades)\.csv": World.beside,
    r"dl19-judging\.csv": lambda *_: "topic,doc_relevant,doc_judged,passage_relevant,passage_judged\n1,4,9,5,9\n",
    r"table3\.csv": lambda *_: "set,00,01,10,11,21,12,documents,error\nV1>>V2 FirstP,3,2,9,5,1,1,900,10\n",
    r"pairs\.jsonl": lambda world, _: jsonl(
        {"topic_id": key, "query": text, "doc_id": stratum, "text": "a text", "stratum": stratum}
        for stratum in ("top grade 0", "top grade 1", "top grades 2-3")
        for key, text in world.topics.items()
    ),
}
