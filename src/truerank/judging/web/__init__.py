"""Judging in the browser: pages made by the server, one item at a time, with the keyboard."""

from truerank.judging.web.server import Desk, Serving, open_desk

__all__ = ["Desk", "Serving", "open_desk"]
