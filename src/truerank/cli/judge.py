"""`truerank judge …`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from truerank import judging
from truerank.audits import leakage
from truerank.audits.leakage.options import CALIBRATED_FOR, DEFAULT_THRESHOLD
from truerank.cli.console import JsonFlag, VotesOption, emit, note, progress
from truerank.cli.serving import AllowHosts, Annotators, Certificate, Host, Key, NewTokens, Port
from truerank.errors import InputError
from truerank.judging import web
from truerank.judging.agreement import Resample
from truerank.judging.endpoints import Patience
from truerank.judging.events import Role
from truerank.judging.exchange import Format, Which
from truerank.judging.models import Only
from truerank.judging.samples import Order
from truerank.judging.tables import Form, show

__all__ = ["app"]

app = typer.Typer(help="People, or models, judge what the audits propose.", no_args_is_help=True)

_NEW_EXAMPLES = """
Makes a store of items that are to be judged, and says who judges which.

Examples:

    truerank judge new leakage.judged --scheme leakage --items audit/ --sample top:5@0.91
    --annotators ann,bob --overlap 100

    truerank judge new threshold.judged --scheme leak --items audit/ --sample strata:0.8-1:100

    truerank judge new versions.judged --scheme transfer --items pairs.jsonl --sample per:dataset:100
    --checkers carl,dora --spot-check 60

    truerank judge new graded.judged --scheme relevance-passages --items bm25.run --topics topics.tsv
    --docs passages.jsonl --sample top:10
"""

StorePath = Annotated[Path, typer.Argument(metavar="STORE", help="The store, one file.")]


@app.command("new", help=_NEW_EXAMPLES)
def new(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="The file to make; never overwritten.")],
    scheme: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE",
            help="leakage, leak, transfer, transfer:N, survivorship, answerability, relevance-documents, "
            "relevance-passages, or a TOML or JSON file.",
        ),
    ],
    items: Annotated[
        list[str],
        typer.Option("--items", metavar="SRC", help="The folder of an audit, a table, or a run; repeat for several."),
    ],
    sample: Annotated[
        list[str],
        typer.Option(
            metavar="PLAN",
            help="all, random:N, strata:0.8-1:N, top:N@0.91 (per topic), per:dataset:N or "
            "per:dataset:A=N,B=N; steps joined by 'then'; repeat to add another sample to the first.",
        ),
    ] = ["all"],  # noqa: B006
    annotators: Annotated[str, typer.Option(metavar="A,B", help="Who judges; the items are shared out.")] = "annotator",
    overlap: Annotated[
        int,
        typer.Option(help="Items that all annotators judge first, at least so many; whole topics."),
    ] = 0,
    spot_check: Annotated[int, typer.Option(help="Further items that a second person looks at.")] = 0,
    checkers: Annotated[
        str, typer.Option(metavar="A,B", help="Who does the spot check; without it the other annotators.")
    ] = "",
    adjudicators: Annotated[str, typer.Option(metavar="A,B", help="Who settles disagreements.")] = "",
    topics: Annotated[
        list[str],
        typer.Option(metavar="[NAME=]SRC", help="Test sets whose titles and descriptions complete the items."),
    ] = [],  # noqa: B006
    docs: Annotated[
        list[str], typer.Option(metavar="SRC", help="Tables of documents (doc_id, text), where the items are a run.")
    ] = [],  # noqa: B006
    order: Annotated[Order, typer.Option(help="The order of work: shuffled, by topic, or as given.")] = "shuffled",
    seed: Annotated[int, typer.Option(help="Seed of the sample and of the order of work.")] = 0,
    as_json: JsonFlag = False,
) -> None:
    """Makes a store."""
    people = judging.People(_names(annotators), overlap, _names(checkers), spot_check, _names(adjudicators), order)
    made = judging.new(store, scheme, items, sample=sample, people=people, topics=topics, docs=docs, seed=seed)
    emit(made.text(), made.json(), as_json)
    note(f"judge it: truerank judge serve {store}")


_SERVE_EXAMPLES = """
Serves the pages on which people judge, until Ctrl-C.

On this machine a name is enough. On any other address everybody needs an access token; new ones are printed once, and
only their hashes are kept.

Examples:

    truerank judge serve leakage.judged

    truerank judge serve leakage.judged --port 0 --adjudicator carol

    truerank judge serve leakage.judged --host 0.0.0.0 --certificate cert.pem --key key.pem

    truerank judge serve leakage.judged --host 0.0.0.0 --new-token ann
"""


@app.command("serve", help=_SERVE_EXAMPLES)
def serve(
    store: StorePath,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    annotator: Annotators = [],  # noqa: B006
    adjudicator: Annotated[
        list[str], typer.Option(metavar="NAME", help="A person who settles disagreements; added if new; repeat.")
    ] = [],  # noqa: B006
    new_token: NewTokens = [],  # noqa: B006
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Ask for access tokens on this machine too: shared, or behind a proxy.")
    ] = False,
    allow_host: AllowHosts = [],  # noqa: B006
    certificate: Certificate = None,
    key: Key = None,
    as_json: JsonFlag = False,
) -> None:
    """Serves a store."""
    desk = web.open_desk(
        store, host=host, port=port, annotators=annotator, adjudicators=adjudicator, new_tokens=new_token,
        tokens=tokens, allow_hosts=allow_host, certificate=certificate, key=key,
    )  # fmt: skip
    emit(desk.text(), desk.json(), as_json)
    sys.stdout.flush()
    desk.run()
    note("ended; every confirmed label is kept")


_IMPORT_EXAMPLES = """
Adds the labels of files to a store.

JSONL, CSV, TSV, Parquet, doccano, Label Studio, and TREC qrels for relevance. A record is matched to an item by its
item id, or by topic and text; what does not match is listed. Importing a file twice adds nothing.

Examples:

    truerank judge import leakage.judged annotated-by-ann.jsonl --annotator ann

    truerank judge import leakage.judged label-studio.json agreed.csv

    truerank judge import graded.judged nist.qrels --annotator nist
"""

_EXPORT_EXAMPLES = """
Writes the labels of a store to a file.

What is written: every standing label (standing), the whole history (events), or one answer per item: the adjudicated
one, or else the one on which all agree (adjudicated) or which more than half gave (majority).

Examples:

    truerank judge export leakage.judged labels.jsonl

    truerank judge export leakage.judged history.jsonl --which events

    truerank judge export leakage.judged pairs.jsonl --format doccano

    truerank judge export graded.judged graded.qrels --which majority
"""


@app.command("import", help=_IMPORT_EXAMPLES)
def import_(
    store: StorePath,
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Files of labels.")],
    annotator: Annotated[str, typer.Option(metavar="NAME", help="Who judged, where a file does not say.")] = "",
    role: Annotated[
        Role, typer.Option(help="What new annotators are; an adjudicator's labels settle disagreements.")
    ] = "person",
    votes: Annotated[
        Literal["majority", "first", "last"],
        typer.Option(help="Which label counts where somebody contradicts himself; majority: that is an error."),
    ] = "majority",
    form: Annotated[Format | None, typer.Option("--format", help="Without it what the file looks like.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Bytes that are not UTF-8 are an error.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Adds the labels of files to a store."""
    result = judging.import_labels(store, files, annotator=annotator, role=role, votes=votes, form=form, strict=strict)
    emit(result.text(), result.json(), as_json)


@app.command("export", help=_EXPORT_EXAMPLES)
def export(
    store: StorePath,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")],
    form: Annotated[Format | None, typer.Option("--format", help="Without it what the ending of FILE says.")] = None,
    which: Annotated[Which, typer.Option(help="Everything that stands, the history, or one answer per item.")] = (
        "standing"
    ),
    annotator: Annotated[
        list[str], typer.Option(metavar="NAME", help="Only what this annotator said; repeat for several.")
    ] = [],  # noqa: B006
    models: Annotated[
        bool | None,
        typer.Option(
            "--include-models/--no-models",
            help="Labels of models beside those of people. Without it: yes in standing and events, where they are "
            "marked; no in adjudicated and majority.",
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Writes the labels of a store to a file."""
    result = judging.export_labels(store, file, form=form, which=which, annotators=annotator, include_models=models)
    emit(result.text(), result.json(), as_json)


MaybeStore = Annotated[Path | None, typer.Argument(metavar="[STORE]", help="The store; or give --labels.")]
LabelFiles = Annotated[
    list[str],
    typer.Option(
        "--labels",
        metavar="[NAME=]SRC",
        help="Label files in place of a store; NAME is the annotator of a file that names none. Repeat for several.",
    ),
]
Scheme = Annotated[
    str | None,
    typer.Option(metavar="NAME|FILE", help="The scheme of label files; without it, told from the labels."),
]
IncludeModels = Annotated[
    bool, typer.Option("--include-models", help="Count labels of models like those of people; the output says so.")
]
OutputForm = Annotated[Form, typer.Option("--format", help="text, markdown, latex or csv.")]

_AGREEMENT_EXAMPLES = """
Measures how far annotators agree, with bootstrap intervals.

What is compared is a definition with a name. Without --definition every one that the scheme has is printed; with one,
also its labels, each two annotators, and the confusion matrix. What models labelled is compared with people in a table
of its own.

For the scheme leakage: title-type, title-type-by-rule, leak, variant-type, variant-type-by-rule,
variant-type-and-topic. For leak: leak. For transfer: V1, V2. For relevance: grade (ordinal). For every scheme:
label-set, mean-label.

Examples:

    truerank judge agreement leakage.judged

    truerank judge agreement leakage.judged --definition title-type --annotators ann,bob --resample topics

    truerank judge agreement --labels ann=first.jsonl --labels bob=second.jsonl --definition mean-label --json
"""


@app.command("agreement", help=_AGREEMENT_EXAMPLES)
def agreement(
    store: MaybeStore = None,
    labels: LabelFiles = [],  # noqa: B006
    definition: Annotated[str | None, typer.Option(metavar="NAME", help="What is compared; every one without.")] = None,
    annotators: Annotated[str, typer.Option(metavar="A,B", help="Only these annotators.")] = "",
    votes: VotesOption = "majority",
    include_models: IncludeModels = False,
    bootstrap: Annotated[int, typer.Option(help="Resamples behind the intervals; 0 for none.")] = 1000,
    resample: Annotated[Resample, typer.Option(help="Draw items, or whole topics.")] = "items",
    confidence: Annotated[float, typer.Option(help="Confidence of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.")] = 0,
    scheme: Scheme = None,
    form: OutputForm = "text",
    as_json: JsonFlag = False,
) -> None:
    """Measures how far annotators agree."""
    result = judging.agreement(
        _source(store, labels),
        definition=definition,
        annotators=_names(annotators),
        votes=votes,
        include_models=include_models,
        bootstrap=bootstrap,
        resample=resample,
        confidence=confidence,
        seed=seed,
        scheme=scheme,
    )
    emit(show(result.tables(), form), result.json(), as_json)


_TABLE_EXAMPLES = """
Counts labels as the papers print them.

leakage: true and false candidates with their topics, and the reformulation types (the leakage paper's Table 2).
survivorship: reasons by split, with intervals (the survivorship paper's Table 1). transfer: which version is relevant,
by query set (the transfer paper's Table 3). Other schemes: how often each label holds.

An item counts by its adjudication, or by the answer of more than half of its annotators (--votes has other rules);
where there is none it is left out and counted.

Examples:

    truerank judge table --scheme leakage --labels annotations.jsonl --topics Robust04=robust04.trec
    --topics 'Core 2017=core17.trec'

    truerank judge table versions.judged --format latex
"""


@app.command("table", help=_TABLE_EXAMPLES)
def table(
    store: MaybeStore = None,
    scheme: Scheme = None,
    labels: LabelFiles = [],  # noqa: B006
    topics: Annotated[
        list[str],
        typer.Option(metavar="[NAME=]SRC", help="Topic sets by which pairs are filed, in the order of the rows."),
    ] = [],  # noqa: B006
    by: Annotated[
        str, typer.Option(metavar="KEY", help="Form rows by this column or key in place of the data set.")
    ] = "",
    votes: VotesOption = "majority",
    include_models: IncludeModels = False,
    confidence: Annotated[float, typer.Option(help="Confidence of the intervals.")] = 0.95,
    form: OutputForm = "text",
    as_json: JsonFlag = False,
) -> None:
    """Counts labels as the papers print them."""
    result = judging.label_tables(
        _source(store, labels),
        scheme=scheme,
        topics=topics,
        by=by,
        votes=votes,
        include_models=include_models,
        confidence=confidence,
    )
    emit(show(result.tables(), form), result.json(), as_json)


_MODEL_EXAMPLES = """
Lets a model label items, as one annotator among others.

With --endpoint and --model a chat model behind an OpenAI-compatible address is asked, by a prompt made of the scheme;
whatever is not exactly an answer is a skip with the reason. Without them a sentence encoder labels the pairs of a
leakage store by its similarity. Items that the model has looked at before are not asked again, so the same command
continues what was stopped. The labels are a model's everywhere; 'judge agreement' compares them with people's.

Examples:

    truerank judge model leakage.judged --endpoint http://127.0.0.1:8000/v1 --model NAME

    truerank judge model leakage.judged --endpoint https://HOST/v1 --model NAME --key-env MODEL_KEY
    --only labelled --max-items 100 --per-minute 60

    truerank judge model leakage.judged --encoder packaged --threshold 0.8
"""


@app.command("model", help=_MODEL_EXAMPLES)
def model_(
    store: StorePath,
    endpoint: Annotated[
        str, typer.Option(metavar="URL", help="Base address of an OpenAI-compatible endpoint, such as https://HOST/v1.")
    ] = "",
    model: Annotated[str, typer.Option(metavar="NAME", help="The model's name at the endpoint.")] = "",
    key_env: Annotated[str, typer.Option(metavar="VAR", help="Environment variable that holds the key.")] = "",
    temperature: Annotated[float, typer.Option(help="Below 0: leave it to the endpoint.")] = 0.0,
    prompt: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Own instructions, with the places $question, $choices, $guideline, $title, $skip_reasons and "
            "$answer_format.",
        ),
    ] = None,
    concurrency: Annotated[int, typer.Option(help="Items asked about at the same time.")] = 4,
    per_minute: Annotated[float, typer.Option(help="Most requests a minute; 0 for no limit.")] = 0.0,
    retries: Annotated[int, typer.Option(help="Further attempts after a failed one.")] = 6,
    timeout: Annotated[float, typer.Option(help="Seconds for one attempt.")] = 120.0,
    encoder: Annotated[
        str, typer.Option(metavar="NAME", help="Without an endpoint: a Hugging Face id, a local folder, or 'packaged'.")
    ] = CALIBRATED_FOR,
    threshold: Annotated[float, typer.Option(help="A higher cosine of the encoder is a leak.")] = DEFAULT_THRESHOLD,
    backend: Annotated[
        Literal["auto", "onnx", "openvino", "torch"], typer.Option(help="What runs the encoder.")
    ] = "auto",
    name: Annotated[str, typer.Option(metavar="NAME", help="The annotator's name, if not the model's.")] = "",
    only: Annotated[Only, typer.Option(help="All items, or those that a person has labelled.")] = "all",
    max_items: Annotated[int | None, typer.Option(help="At most so many items now.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Ask again about items that the model skipped.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Lets a model label items, as one annotator among others."""
    with progress() as shown:
        if endpoint or model:
            result = judging.ask_model(
                store,
                endpoint,
                model,
                key_env=key_env,
                temperature=temperature,
                prompt=prompt,
                concurrency=concurrency,
                patience=Patience(retries=retries, timeout=timeout, per_minute=per_minute),
                name=name,
                only=only,
                max_items=max_items,
                again=again,
                progress=shown,
            )
        else:
            result = leakage.judge_with_encoder(
                store,
                encoder,
                threshold=threshold,
                backend=backend,
                name=name,
                only=only,
                max_items=max_items,
                progress=shown,
            )
    emit(result.text(), result.json(), as_json)


def _source(store: Path | None, labels: list[str]) -> Path | list[str]:
    if (store is None) == (not labels):
        fault = "neither a store nor label files" if store is None else "a store and label files"
        raise InputError(fault, "give STORE, or --labels SRC")
    return labels if store is None else store


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
