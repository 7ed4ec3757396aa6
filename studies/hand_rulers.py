"""Rulers planted by hand: folders such as a user would give, with what is wrong, and by how much, written beside.

    python studies/hand_rulers.py CASE COLLECTION OUT --seed N

CASE is one of the names below or `all`; COLLECTION is cacm or vaswani (or, where the case needs no documents, a set of
published judgments: see QRELS_ONLY in hand_rulers_base). A line a folder says what the plant does to the scores.
The planter does not use truerank and does not know its rules.

Files of every folder, where the case has them:

- docs.jsonl: `_id`, `title`, `text`, a document a line; topics.tsv: `id TAB text`;
- judgments.qrels: `topic 0 document grade`; runs/NAME.run: `topic Q0 document rank score tag`, 100 a topic, no ties;
- truth.json: what was planted (null where the folder is clean), how strong, and what is true. Scores are trec_eval's.

`null`: rulers/VARIANT: truth.json has the scores of lists that do not read the query (`popular_held_out` does not see
the topic that it is scored on; `popular` does), of the runs, and by measure the best list and its share of the median
run. Where topics have candidates of their own (haystack-*, candidates-*), a run ranks these and nothing else.
claims/CLAIM: runs/A.run, runs/B.run; truth.json has the difference as judged and without the documents of the list.

`labels`: ceilings/VARIANT: truth.json has the score of the best ranking that docs.jsonl allows, over all topics (one
without relevant documents scores 0) and over the topics that have some; with copies also where a text may be returned
once. wrong-labels/VARIANT: rejudged-N.qrels hold the true grades of N rows drawn at random from judgments.qrels;
truth.json has the wrong rows (topic, document, given, true), every run's true and given scores, and for each pair of
runs the true and the given difference with a 95% normal interval. `favour`: the errors help one run.

`suspects`: truth.json has the wrong rows of judgments.qrels (and the rows that were lost), and how well a plain score
made of the ranks tells them. A pooled document that the collection does not judge relevant counts as not relevant.

`echo`: VARIANT-STRENGTH: topics made by rule from one document each, which is their judgment; mixture-0.3-VARIANT: 30%
of these among the collection's own topics with one relevant document each, drawn at random; people, people-single,
people-nearest (one relevant document each, the one that shares most words: chosen, not generated): clean; log-NAME:
topics.tsv of real queries only. truth.json has the generated topics and each part's scores.

`corpus`: the full corpus with its runs, and in small/ the smaller one with runs made again (the rows of documents that
are gone are out, and so are topics without a relevant document left). truth.json has the removed documents by judged
state (relevant to a topic, judged and relevant to none, without a row), and for each run and for their mean the change
of nDCG@10, taken by removing documents from the full rankings, against 60 draws of as many random documents of each
judged state. `changed_otherwise_than_random`: p is .05 at most and the mean change is more than .005 from that of the
draws; `changed_more_than_random`: and it is larger in size. `any_state`: the same against as many documents of any
state. `drawn_as_the_comparison_is`: the removed documents are such a draw, so that the truth is no by construction, and
a yes is chance.

`chunks`: docs.jsonl, judgments.qrels and runs/ of one cutting; new-docs.jsonl and new-runs/ of another. VARIANT-offsets
has `article`, `start`, `end` (characters of the article's text, words joined by a blank) a chunk. truth/overlaps.tsv:
every new and judged chunk that share text, and the shares by words; truth/expected.qrels: the best grade of the judged
chunks of which the new chunk holds half, or which hold half of it; truth/true.qrels: what the rule that graded the
first cutting (a whole relevant record 2; half of one, or half the chunk, 1) gives on the new one.

`panels`: people.qrels (the true grades) and judges/NAME.qrels. truth.json has the effective number of judges,
n / (1 + (n - 1) c), where c is the mean correlation of two judges' error indicators at the same true grade, as measured
on the folder's own files, beside the c that was planted (`rho`; with unequal judges the measured one is lower), another
definition by eigenvalues, and accuracies. llmjudge-*: published judges; nothing is planted, the same is measured.
"""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import hand_rulers_chunks
import hand_rulers_corpus
import hand_rulers_echo
import hand_rulers_labels
import hand_rulers_null
import hand_rulers_panels

CASES: dict[str, Callable[[str, Path, int], Iterator[str]]] = {
    "null": hand_rulers_null.write,
    "labels": hand_rulers_labels.write_labels,
    "suspects": hand_rulers_labels.write_suspects,
    "echo": hand_rulers_echo.write,
    "corpus": hand_rulers_corpus.write,
    "chunks": hand_rulers_chunks.write,
    "panels": hand_rulers_panels.write,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("case", choices=[*CASES, "all"])
    parser.add_argument("collection")
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for case in CASES if options.case == "all" else [options.case]:
        print(f"# {case} {options.collection} seed {options.seed}")
        for line in CASES[case](
            options.collection, options.out / case / options.collection / str(options.seed), options.seed
        ):
            print(line, flush=True)


if __name__ == "__main__":
    main()
