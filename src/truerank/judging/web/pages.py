"""The pages' templates and files; everything is part of the package."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from http import HTTPStatus
from importlib import resources
from typing import Any, Final, NamedTuple

import jinja2
from markupsafe import Markup

from truerank.judging.web.layout import PAGE_KEYS
from truerank.judging.web.showing import safe
from truerank.reports.pages import templates
from truerank.reports.tables import escape_html

_STATIC: Final = {
    "page.css": ("truerank.reports", "templates", "text/css"),
    "judge.css": ("truerank.judging.web", "static", "text/css"),
    "judge.js": ("truerank.judging.web", "static", "text/javascript"),
    "icon.svg": ("truerank.judging.web", "static", "image/svg+xml"),
}


class StaticFile(NamedTuple):
    """A file that pages ask for; `version` is made of its content and stands in its address."""

    body: bytes
    media_type: str
    version: str


@functools.cache
def static_file(name: str) -> StaticFile | None:
    """A file by its name; None if there is none of that name."""
    if name not in _STATIC:
        return None
    package, folder, media_type = _STATIC[name]
    body = resources.files(package).joinpath(folder, name).read_bytes()
    return StaticFile(body, media_type, hashlib.sha256(body).hexdigest()[:12])


def render(template: str, values: Mapping[str, Any]) -> str:
    """A page as HTML; every value is escaped where it is not safe markup."""
    return _environment().get_template(f"{template}.html.j2").render(values)


def reason(status: int) -> str:
    """A status in words."""
    return HTTPStatus(status).phrase


@functools.cache
def _environment() -> jinja2.Environment:
    environment = templates("truerank.judging.web")
    environment.filters["safe_text"] = safe
    # For attributes and text fields, where no element can stand.
    environment.filters["attribute"] = lambda text: Markup(escape_html(str(text)))
    environment.globals["page_keys"] = PAGE_KEYS
    environment.globals["versions"] = {name: found.version for name in _STATIC if (found := static_file(name))}
    return environment
