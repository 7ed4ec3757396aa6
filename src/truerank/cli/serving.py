"""Options of the commands that serve a store in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["AllowHosts", "Annotators", "Certificate", "Host", "Key", "NewTokens", "Port"]

Host = Annotated[str, typer.Option(help="The address to listen at; 0.0.0.0 for all of this machine's.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for a free one.")]
Annotators = Annotated[
    list[str],
    typer.Option("--annotator", metavar="NAME", help="Who may enter (default: everybody in the store); repeat."),
]
NewTokens = Annotated[
    list[str],
    typer.Option("--new-token", metavar="NAME", help="Make a new access token and end the old one; repeat."),
]
AllowHosts = Annotated[
    list[str],
    typer.Option("--allow-host", metavar="NAME", help="A host name by which a proxy reaches this server; repeat."),
]
Certificate = Annotated[Path | None, typer.Option(metavar="FILE", help="A TLS certificate chain in PEM.")]
Key = Annotated[Path | None, typer.Option(metavar="FILE", help="Its private key in PEM.")]
