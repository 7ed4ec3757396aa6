"""Judging in the browser: pages made by the server, one item at a time, with the keyboard."""

from truerank.judging.web.server import Desk, open_desk, serve

__all__ = ["Desk", "open_desk", "serve"]
