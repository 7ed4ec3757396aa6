"""The groups of options of a check: what is given, and what the claim is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from truerank.errors import OptionError
from truerank.options import Columns, Flag, Options, Range

#: The heading of what the content of a file says as a rule.
_SAID: Final = "If a file is not recognised"


@dataclass(frozen=True)
class ClaimSources(Options):
    """What else you have; what is not given stays UNKNOWN.

    Attributes:
        system: the one that should be better; by default the best.
        baseline: the one that it is compared with; by default the second best.
        train: training queries; repeat the option for several sources.
        docs: the documents.
        run: a run of each system, named by its file without the ending; repeat the option, and give the other runs of
            the experiment too. In Python also runs by name.
        qrels: relevance judgments, where the test set does not bring them. In Python also a frame, records, or grades
            by topic and document.
        test: the test set: a BEIR folder, an ir_datasets id or a file of topics. A BEIR folder brings judgments and
            documents, an id brings judgments.
        columns: what the columns of a table of questions are, such as question=q,expected=gold,retrieved=a+b. A column
            can be id, question, expected, grade, retrieved, scores, system, document, rank, score, repeat or measure.
        tried: runs of all settings that the system was chosen from on these topics, as files or a folder; repeat the
            option for several. In Python also runs by name.
        repeats: runs that are repetitions of the system or the baseline, such as a=a.*.run; repeat the option for the
            other one. In Python also runs by name, by system.
        judged_again: pairs of these judgments that people judged again, drawn at random; judgments, label files or
            judging stores. In Python as the judgments.
        previous: the documents as they were judged, where `docs` is a later version of them.
        model_judgments: judgments of a model, as NAME=SRC; repeat the option for several. In Python also by name.
        judged_by: who gave the judgments in `qrels`; with model, the conclusion holds for these judgments only.
    """

    system: Annotated[str | None, Flag(metavar="NAME", panel="")] = None
    baseline: Annotated[str | None, Flag(metavar="NAME", panel="")] = None
    train: Annotated[tuple[str, ...], Flag(metavar="SRC", reads=list[str], panel="")] = ()
    docs: Annotated[str | None, Flag(metavar="SRC", panel="")] = None
    run: Annotated[Any, Flag(metavar="FILE", reads=list[str], panel=_SAID)] = ()
    qrels: Annotated[Any, Flag(metavar="SRC", reads=str, panel=_SAID)] = None
    test: Annotated[str | None, Flag(metavar="SRC", panel=_SAID)] = None
    columns: Annotated[Columns, Flag(metavar="ROLE=COLUMN,…", panel=_SAID)] = ""
    tried: Annotated[Any, Flag(metavar="DIR", reads=list[str])] = ()
    repeats: Annotated[Any, Flag(metavar="NAME=FILES", reads=list[str])] = ()
    judged_again: Annotated[Any, Flag(metavar="[NAME=]SRC", reads=list[str], rare=True)] = ()
    previous: Annotated[str | None, Flag(metavar="SRC", rare=True)] = None
    model_judgments: Annotated[Any, Flag(metavar="NAME=SRC", reads=list[str], rare=True)] = ()
    judged_by: Annotated[Literal["people", "model"], Flag(rare=True)] = "people"

    def has(self, name: str) -> bool:
        """Whether an input is there."""
        value = getattr(self, name)
        return value is not None and not (isinstance(value, list | tuple | dict) and not value)


@dataclass(frozen=True)
class ClaimOptions(Options):
    """What is compared, and what is asked.

    Attributes:
        measure: the measure, in the notation of ir_measures.
        measures: other measures to compare by, separated by blanks.
        comparisons: how many comparisons this one was chosen from; by default those that the runs allow: all with the
            baseline where it is named, otherwise all pairs.
        variants: the file of the topics' query variants, which are looked for in the training data too.
        select: the questions that are asked, such as collection or its code CLAIM04, beside those that the conclusion
            needs; by default all.
        ignore: questions to leave out, by their names or codes; their answers stay unknown.
    """

    measure: str = "nDCG@10"
    measures: Annotated[str, Flag(rare=True)] = "AP RR@10 P@10 R@100"
    comparisons: Annotated[int | None, Range(at_least=1), Flag(rare=True)] = None
    variants: Annotated[str | None, Flag(metavar="FILE", rare=True)] = None
    select: Annotated[tuple[str, ...], Flag(metavar="QUESTION", reads=list[str], commas=True, rare=True)] = ()
    ignore: Annotated[tuple[str, ...], Flag(metavar="QUESTION", reads=list[str], commas=True, rare=True)] = ()


@dataclass(frozen=True)
class ClaimKnowledge(Options):
    """What no data show and somebody knows: keys of check.yaml, each yes or no. A yes forbids a plain HOLDS.

    Attributes:
        labels_from_one_system: the labels, or the expected answers, were written from one system's output.
        judge_saw_names: whoever judged saw which system a result was of.
        questions_from_one_retriever: the questions were made with, or chosen by, one of the systems.
        tuned_on_questions: questions of the test were looked at while a system was made.
        best_of_several: the system is the best of several tries on these questions.
    """

    labels_from_one_system: bool | None = None
    judge_saw_names: bool | None = None
    questions_from_one_retriever: bool | None = None
    tuned_on_questions: bool | None = None
    best_of_several: bool | None = None

    def __post_init__(self) -> None:
        for name in KNOWN:
            if not isinstance(value := getattr(self, name), bool | None):
                raise OptionError(name, f"'{value}' is neither yes nor no", "write yes or no")
        super().__post_init__()

    def told(self) -> tuple[str, ...]:
        """What a yes says against a claim."""
        return tuple(text for name, text in _KNOWN.items() if getattr(self, name))


_KNOWN: Final = {
    "labels_from_one_system": "The labels were written from one system's output, as check.yaml says.",
    "judge_saw_names": "Whoever judged saw the names of the systems, as check.yaml says.",
    "questions_from_one_retriever": "The questions were made with one of the systems, as check.yaml says.",
    "tuned_on_questions": "Questions of the test were seen while a system was made, as check.yaml says.",
    "best_of_several": "The system is the best of several tries on these questions, as check.yaml says.",
}
#: The keys of check.yaml, by name.
KNOWN: Final = tuple(_KNOWN)
