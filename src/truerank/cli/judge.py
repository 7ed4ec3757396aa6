"""`truerank judge …`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from truerank import judging
from truerank.cli.console import JsonFlag, emit, note
from truerank.judging import web
from truerank.judging.events import Role
from truerank.judging.exchange import Format, Which
from truerank.judging.samples import Order

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
            help="all, random:N, strata:0.8-1:N, top:N@0.91 (per topic), per:dataset:N; steps joined by 'then'; "
            "repeat to add another sample to the first.",
        ),
    ] = ["all"],  # noqa: B006
    annotators: Annotated[str, typer.Option(metavar="A,B", help="Who judges; the items are shared out.")] = "annotator",
    overlap: Annotated[
        int, typer.Option(help="Items that all annotators judge, at least; all items of a topic that is touched.")
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
    host: Annotated[
        str, typer.Option(help="The address to listen at; 0.0.0.0 for all of this machine's.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for a free one.")] = 8000,
    annotator: Annotated[
        list[str], typer.Option(metavar="NAME", help="Who may enter (default: everybody in the store); repeat.")
    ] = [],  # noqa: B006
    adjudicator: Annotated[
        list[str], typer.Option(metavar="NAME", help="A person who settles disagreements; added if new; repeat.")
    ] = [],  # noqa: B006
    new_token: Annotated[
        list[str], typer.Option(metavar="NAME", help="Make a new access token and end the old one; repeat.")
    ] = [],  # noqa: B006
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Ask for access tokens on this machine too: shared, or behind a proxy.")
    ] = False,
    allow_host: Annotated[
        list[str], typer.Option(metavar="NAME", help="A host name by which a proxy reaches this server; repeat.")
    ] = [],  # noqa: B006
    certificate: Annotated[Path | None, typer.Option(metavar="FILE", help="A TLS certificate chain in PEM.")] = None,
    key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its private key in PEM.")] = None,
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
    form: Annotated[Format | None, typer.Option("--format", help="Without it what the file looks like.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Bytes that are not UTF-8 are an error.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Adds the labels of files to a store."""
    result = judging.import_labels(store, files, annotator=annotator, role=role, form=form, strict=strict)
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


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
