"""The command line: parses, calls, prints; no logic."""

from truerank.cli.app import main

__all__ = ["main"]
