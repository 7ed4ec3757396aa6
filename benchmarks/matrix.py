"""The leakage matrix on real data, its cost, and that what was kept changes nothing.

    python benchmarks/matrix.py suite     query logs and MIRACL's training topics against all test topics
    python benchmarks/matrix.py more      1% more data after the suite, as a training set and as a test set: time
    python benchmarks/matrix.py again     the same of three logs and eight test sets, and from nothing: time, bytes
    python benchmarks/matrix.py examples  generated training texts against 1,000 tests: time and memory by number
    python benchmarks/matrix.py signs     scripts without blanks: signs for a word, and what counting them so finds

`--first N` takes the first N queries of each log only. All but examples read the folder that TRUERANK_SHARED names (by
default ../shared); the first three write the output where --out says. `signs` reads the translations of the programs of
this machine, too (gettext catalogs in /usr/share/locale).
"""

from __future__ import annotations

import argparse
import gettext
import gzip
import hashlib
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import time
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from shared_data import LOGS, SHARED, log_path, require_shared
from truerank.near_duplicates import shingles as shingling
from truerank.near_duplicates.shingles import shingled
from truerank.overlaps import KeptTexts, OverlapRules, compare, keep
from truerank.overlaps import results as overlap_results
from truerank.overlaps.results import without_parts
from truerank.sources import open_queries
from truerank.work.jobs import Job

SMALL = ("msmarco-dev-test", "nq-dev", "trivia-dev")
LANGUAGES = ("ar", "en", "fi", "ja", "ru", "sw")
OWN = (
    "robust04.trec.txt",
    "core17.trec.txt",
    "core18.trec.txt",
    "dl19-doc.tsv",
    "dl19-passage.tsv",
    "dl20.tsv",
    "web09.xml",
)
OUTPUTS = ("matrix.parquet", "pairs.parquet", "summary.json", "report.html", "manifest.json", "figures/matrix.svg")
#: In the output folder: the processor seconds of the suite from nothing.
COST = "seconds.txt"
#: robust04 stands among the TREC topics already.
BEIR_TWICE = ("robust04",)


def tests() -> dict[str, str]:
    """All test topics by name."""
    topics = SHARED / "topics"
    found = {name.partition(".")[0]: str(topics / name) for name in OWN}
    for file in sorted((topics / "beir").iterdir()):
        name = file.name.partition(".")[0]
        if name not in BEIR_TWICE:
            found[name.replace("cqadupstack", "cqa")] = str(file)
    found |= {f"bright-{file.name.partition('.')[0]}": str(file) for file in sorted((topics / "bright").iterdir())}
    return found | {f"miracl-{code}": str(topics / "miracl" / f"{code}-dev.tsv.gz") for code in LANGUAGES}


def log(folder: Path, name: str, first: int) -> str:
    """A log, or its first queries."""
    if not first:
        return f"queries: {log_path(name)}"
    place = folder / f"{name}.tsv"
    folder.mkdir(parents=True, exist_ok=True)
    rows = [query for query, _ in zip(open_queries(str(log_path(name))), range(first), strict=False)]
    place.write_text("".join(f"{one.query_id}\t{' '.join(one.text.split())}\n" for one in rows), encoding="utf-8")
    return f"queries: {place}"


def small_suite(folder: Path, first: int) -> Path:
    """A suite file of three logs and eight test sets."""
    training = {name: log(folder, name, first) for name in SMALL}
    return written(folder, training, dict(list(tests().items())[:7]) | {"scifact": tests()["scifact"]})


def suite(folder: Path, first: int, without: list[str], rows: list[str]) -> Path:
    """The suite file of the measurement."""
    training = {name: log(folder, name, first) for name in LOGS}
    for code in LANGUAGES:
        training[f"miracl-{code}-train"] = f"queries: {SHARED / 'topics' / 'miracl' / code}-train.tsv.gz"
    chosen = {name: place for name, place in tests().items() if not name.startswith(tuple(without))}
    beir = {name: place for name, place in chosen.items() if "/beir/" in place and (not rows or name in rows)}
    training |= {name: f"topics: {place}" for name, place in beir.items()}
    return written(folder, training, chosen)


def written(folder: Path, training: dict[str, str], test: dict[str, str]) -> Path:
    """Writes a suite file."""
    lines = ["training:", *(f"  {name}:\n    {source}" for name, source in training.items())]
    lines += ["test:", *(f"  {name}:\n    topics: {place}" for name, place in test.items())]
    file = folder / "suite.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def seconds() -> float:
    """Processor seconds of this process and of those that it waited for."""
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def timed(file: Path, out: Path, encoder: str, what: str) -> float:
    """Runs the command in a process of its own, prints what it cost, and gives the processor seconds."""
    begun, wall = seconds(), time.perf_counter()
    command = [sys.executable, "-m", "truerank", "leakage", "matrix", str(file), "--encoder", encoder]
    subprocess.run([*command, "--out", str(out)], check=True, capture_output=True)
    cost = seconds() - begun
    log = [json.loads(line) for line in (out / "run.log").read_text(encoding="utf-8").splitlines()]
    work = [one["event"] for one in log if str(one["event"]).startswith(("read", "compared:"))]
    print(f"{what}: {cost:.1f} s of processor time, {time.perf_counter() - wall:.1f} s of time; {'; '.join(work[-3:])}",
          flush=True)  # fmt: skip
    return cost


def show(out: Path) -> None:
    """Prints the cells that leak most, and the most telling pairs."""
    with pl.Config(tbl_rows=120, tbl_cols=12, fmt_str_lengths=90, tbl_width_chars=200):
        cells = pl.read_parquet(out / "matrix.parquet").drop("reason", "part", "pairs")
        pairs = pl.read_parquet(out / "pairs.parquet")
        print(cells.group_by("verdict").len().sort("verdict"))
        logs = cells.filter(pl.col("training").is_in([*LOGS, *(f"miracl-{code}-train" for code in LANGUAGES)]))
        share = pl.col("leaking") / pl.col("items")
        for title, part in (("logs and MIRACL", logs), ("BEIR", cells.join(logs, on="training", how="anti"))):
            print(title, part.filter(pl.col("leaking") > 0).sort(share, descending=True).head(100))
        print(logs.group_by("training", maintain_order=True).agg(pl.col("leaking", "proposed").sum()))
        telling = pairs.filter(~pl.col("exact") & pl.col("cosine").is_not_null())
        columns = ["training", "test", "test_text", "training_text", "cosine", "evidence"]
        once = telling.sort("cosine", descending=True).unique(["training", "test"], keep="first", maintain_order=True)
        print(once.head(120)[columns])


def drawn(path: Path, queries: Sequence[str], size: int, seed: int) -> str:
    """A file of queries of three words of two others; and it as a source of a suite."""
    draw = random.Random(seed)
    rows = (" ".join(draw.sample(f"{draw.choice(queries)} {draw.choice(queries)}".split(), 3)) for _ in range(2 * size))
    texts = [text for text in rows if text.strip()][:size]
    path.write_text("".join(f"{number}\t{text}\n" for number, text in enumerate(texts)), encoding="utf-8")
    return str(path)


def again(out: Path, made: Path, encoder: str, nothing: bool) -> None:
    """1% more data after a suite: what it costs, and whether the bytes are those from nothing.

    First 1% of the training texts as a training set; then 1% of the test texts as a test set; then a test set with as
    many texts as that training set.

    Args:
        out: where the output of the suite lies, in `suite`; made if it is not there.
        made: the suite file.
        encoder: its name.
        nothing: whether the larger suites are compared from nothing, too.
    """
    base = out / "suite"
    if not (base / "manifest.json").is_file():
        cost = timed(made, base, encoder, "the suite from nothing")
        (out / COST).write_text(str(cost), encoding="utf-8")
    whole = float((out / COST).read_text(encoding="utf-8"))
    counted = json.loads((base / "summary.json").read_text(encoding="utf-8"))
    every = [query.text for name in SMALL for query in open_queries(str(log_path(name)))]
    sides = (counted["training"], counted["tests"])
    size, share = (sum(one["texts"].get("query", 0) for one in side) // 100 for side in sides)
    print(f"{100 * size:,} training texts and {100 * share:,} test texts, or a little more; {whole:.1f} s from nothing")
    head, tests_at, tail = made.read_text(encoding="utf-8").partition("\ntest:\n")
    wanted = {"training": size, "test": share, "large-test": size}
    for seed, (name, count) in enumerate(wanted.items()):
        added = drawn(out / f"new-{name}.tsv", every, count, seed)
        text = f"{head}{tests_at}{tail}  newtest:\n    topics: {added}\n"
        if name == "training":
            text = f"{head}\n  more:\n    queries: {added}{tests_at}{tail}"
        file = out / f"with-{name}.yaml"
        file.write_text(text, encoding="utf-8")
        shutil.rmtree(out / name, ignore_errors=True)
        shutil.copytree(base, out / name)
        cost = timed(file, out / name, encoder, f"a further {name} set of {count:,} texts")
        print(f"{100 * cost / whole:.1f}% of the time from nothing")
        if nothing:
            timed(file, out / f"{name}-nothing", encoder, "the same from nothing")
            for each in OUTPUTS:
                kinds = {
                    hashlib.sha256((out / f"{name}{way}" / each).read_bytes()).hexdigest() for way in ("", "-nothing")
                }
                print(f"{each}: {'the same bytes' if len(kinds) == 1 else 'OTHER BYTES'}")


#: Of the generated training texts, each so many holds a test text.
PLANTED_EACH = 1000


def generated(number: int, seed: int, planted: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """Texts of 8 to 60 words of a vocabulary with Zipf's law; each thousandth holds one of some others."""
    draw = random.Random(seed)
    vocabulary = [f"{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{n}" for n in range(30_000)]
    weights = [1 / (rank + 10) for rank in range(len(vocabulary))]
    bag = draw.choices(vocabulary, weights, k=1 << 20)
    for at in range(number):
        start, length = draw.randrange(len(bag) - 60), draw.randint(8, 60)
        text = " ".join(bag[start : start + length])
        yield str(at), f"{text} {draw.choice(planted)}" if planted and at % PLANTED_EACH == 0 else text


def peak() -> float:
    """The most memory that this process has held, in MB."""
    with Path("/proc/self/status").open(encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def examples(out: Path, numbers: list[int]) -> None:
    """Time and memory by the number of training texts, each in a process of its own."""
    for number in numbers:
        child = os.fork()
        if not child:
            begun = seconds()
            folder = out / f"generated-{number}"
            test = keep(generated(1000, 1), OverlapRules(), Job(folder / "test"))
            planted = [text for _, text in generated(1000, 1)]
            training: KeptTexts = keep(generated(number, 2, planted), OverlapRules(), Job(folder / "training"))
            kept = seconds() - begun
            found = compare(test, training, job=Job(folder / "work"))
            whole = seconds() - begun
            disk = sum(file.stat().st_size for file in (folder / "training").rglob("*") if file.is_file())
            cost = f"{1e6 * kept / number:.0f} µs each to keep, {1e6 * (whole - kept) / number:.0f} µs to compare"
            missed = -(-number // PLANTED_EACH) - found.frame["training_id"].n_unique()
            print(
                f"{number:,} texts: {cost}, {disk / number:.0f} bytes each, peak {peak():.0f} MB, "
                f"{missed} of {-(-number // PLANTED_EACH):,} planted ones not found",
                flush=True,
            )
            shutil.rmtree(folder)
            os._exit(0)
        os.waitpid(child, 0)


#: Languages of translations, and what plants put behind and before a text.
UNSPACED = {
    "ja": (
        ("か？", "ですか？", "のですか", "でしょうか。", "教えて"),
        ("教えてください、", "では、", "ところで", "質問："),
    ),
    "zh_CN": (("吗？", "呢", "是什么"), ("请问", "那么，")),
    "th": (("หรือไม่", "ครับ", "อย่างไร"), ("ขอถามว่า", "แล้ว")),
}
SCRIPTS = {"Han": (0x3400, 0x9FFF), "kana": (0x3040, 0x30FF), "Thai": (0xE00, 0xE7F), "Khmer": (0x1780, 0x17FF),
           "Burmese": (0x1000, 0x109F)}  # fmt: skip
#: Texts that are changed, and evidence that does not count here.
SIGNS_SAMPLE = 300
WEAK = ("words", "letters", "words+letters")


def messages(language: str) -> dict[str, str]:
    """Translations of messages of programs by the English message."""
    found: dict[str, str] = {}
    for file in sorted(Path("/usr/share/locale", language, "LC_MESSAGES").glob("*.mo")):
        if "iso_" in file.name:
            continue
        with file.open("rb") as stream:
            catalog = gettext.GNUTranslations(stream)._catalog  # type: ignore[attr-defined]
        for english, text in catalog.items():
            whole = isinstance(english, str) and isinstance(text, str) and english not in ("", text)
            if whole and len(re.findall(r"[^\x00-\x7f]", text)) >= 4:
                found.setdefault(english, text)
    return found


def without_code(message: str) -> str:
    """A message without variables, options, markup and quoted code."""
    code = r"<[^>]*>|%[-0-9.]*[a-zA-Z]+|%\([a-z_]+\)[sd]|[_&]|\{[^}]*\}|--?[a-z-]+|`[^']*'"
    return re.sub(code, " ", message)


def script_counts(text: str) -> Counter[str]:
    """The signs of each script in a text, and its words in other scripts."""
    counts: Counter[str] = Counter()
    before = ""
    for sign in text:
        script = ""
        if unicodedata.category(sign)[0] in "LNM":
            script = next((name for name, (first, end) in SCRIPTS.items() if first <= ord(sign) <= end), "words")
        counts[script] += bool(script) and (script != "words" or before != "words")
        before = script
    return counts


def sign_plants(texts: Sequence[tuple[str, str]], language: str, draw: random.Random) -> Iterator[tuple[str, str]]:
    """Changed copies of texts, with the id of the text and the kind of change as their id."""
    endings, beginnings = UNSPACED[language]
    for text_id, text in texts:
        whole = text.rstrip("？?。 ")
        place = draw.randrange(len(whole))
        made = {
            "another ending": whole + draw.choice(endings),
            "another beginning": draw.choice(beginnings) + whole,
            "inside": draw.choice(beginnings) + whole + draw.choice(endings) + draw.choice(texts)[1],
            "three quarters": whole[: max(4, len(whole) * 3 // 4)],
            "another sign": whole[:place] + draw.choice("".join(endings)) + whole[place + 1 :],
        }
        yield from ((f"{text_id}|{kind}", changed) for kind, changed in made.items())


def signs() -> None:
    """Signs for an English word by language, and what is found with signs as words and as parts of words."""
    for language in ("zh_CN", "zh_TW", "ja", "th", "km", "my"):
        counts, used, number = Counter[str](), 0, 0
        for english, text in messages(language).items():
            plain = without_code(english)
            if len(re.findall(r"[A-Za-z]{2,}", plain)) >= 5:
                counts.update(script_counts(without_code(text)))
                number, used = number + script_counts(plain)["words"], used + 1
        shares = {name: round(count / max(1, number), 3) for name, count in counts.items() if count}
        print(f"{language}: {used:,} messages, {number:,} English words; for each of these {shares}", flush=True)
    topics = {}
    for code in LANGUAGES:
        for part in ("dev", "train"):
            with gzip.open(SHARED / "topics" / "miracl" / f"{code}-{part}.tsv.gz", "rt", encoding="utf-8") as lines:
                topics[code, part] = [(one, text.strip()) for one, _, text in (line.partition("\t") for line in lines)]
        every = shingled([text for _, text in topics[code, "train"]], OverlapRules().shingles)
        print(f"MIRACL {code}: {every.measured.mean():.2f} words in a question of train", flush=True)
    parts = shingling._UNSPACED, overlap_results._UNSPACED_SHARE
    for way in ("a word", "a part of a word"):
        whole = way == "a word"
        shingling._UNSPACED = tuple((*one[:2], 100) for one in parts[0]) if whole else parts[0]  # type: ignore[misc, assignment]
        overlap_results._UNSPACED_SHARE = 1.0 if whole else parts[1]  # type: ignore[misc]
        shingling._kinds.cache_clear()
        japanese = without_parts(compare(topics["ja", "dev"], topics["ja", "train"]).frame)
        strong = japanese.filter(~pl.col("evidence").is_in(WEAK))
        print(f"each sign {way}: {strong['test_id'].n_unique()} of {len(topics['ja', 'dev'])} MIRACL topics leak")
        for language in UNSPACED:
            planted_signs(language, topics["ja", "dev"])


def planted_signs(language: str, topics: Sequence[tuple[str, str]]) -> None:
    """Prints the shares of planted texts that are found, and pairs among texts that were not planted."""
    draw = random.Random(language)
    texts = list(topics)
    if language != "ja":
        plain = [(one, text) for one, text in messages(language).items() if not re.search(r"[%<\n]", one)]
        english = {text: one for one, text in plain if 20 < len(one) < 90}
        drawn_texts = draw.sample(sorted(english), min(2000, len(english)))
        texts = [(str(number), text) for number, text in enumerate(drawn_texts[:500])]
        others = [(str(number), text) for number, text in enumerate(drawn_texts[500:])]
        sides = [[(number, english[text]) for number, text in side] for side in (texts, others)]
        pairs, in_english = (
            set(frame.filter(~pl.col("evidence").is_in(weak)).select("test_id", "training_id").iter_rows())
            for frame, weak in ((compare(texts, others).frame, WEAK), (compare(sides[0], sides[1]).frame, ()))
        )
        print(f"  {language}: {len(pairs)} pairs of other messages, {len(pairs & in_english)} of them in English, too")
        texts = [(number, text) for number, text in texts if 6 <= len(text) <= 60]
    some = draw.sample(texts, min(SIGNS_SAMPLE, len(texts)))
    frame = compare(some, list(sign_plants(some, language, draw))).frame
    for name, weak in (("without words and letters", WEAK), ("all evidence", ())):
        found = frame.filter(~pl.col("evidence").is_in(weak)).select("test_id", "training_id").iter_rows()
        kinds = Counter(
            kind for test, (own, _, kind) in ((one, two.partition("|")) for one, two in found) if own == test
        )
        shares = {kind: round(count / len(some), 3) for kind, count in sorted(kinds.items())}
        print(f"  {language}, {len(some)} texts, {name}: {shares}", flush=True)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("suite", "more", "again", "examples", "signs"))
    parser.add_argument("--out", type=Path, default=Path("matrix-benchmark"))
    parser.add_argument("--encoder", default="packaged")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--without", nargs="*", default=[], help="beginnings of names of test sets to leave out")
    parser.add_argument("--rows", nargs="*", default=[], help="BEIR sets that are training sets too; by default all")
    parser.add_argument("--number", type=int, nargs="*", default=[100_000, 1_000_000, 10_000_000])
    given = parser.parse_args()
    if given.what != "examples":
        require_shared()
    if given.what == "examples":
        examples(given.out, given.number)
        return
    if given.what == "signs":
        signs()
        return
    made = (
        small_suite(given.out, given.first)
        if given.what == "again"
        else suite(given.out, given.first, given.without, given.rows)
    )
    if given.what == "suite":
        cost = timed(made, given.out / "suite", given.encoder, "the suite")
        (given.out / COST).write_text(str(cost), encoding="utf-8")
        show(given.out / "suite")
    else:
        again(given.out, made, given.encoder, given.what == "again")


if __name__ == "__main__":
    main()
