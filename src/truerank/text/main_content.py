"""Title and main content of a web page, as plain text."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from truerank.errors import needed_for

#: Content types that are read, by what is done with them.
_HTML: Final = frozenset(("text/html", "application/xhtml+xml", "application/xml", "text/xml"))
_PLAIN: Final = frozenset(("text/plain", "text/markdown"))
#: Types that servers send for want of a better one.
_VAGUE: Final = frozenset(("", "application/octet-stream", "unk", "text/unknown", "content/unknown"))
_CHARSET: Final = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_META: Final = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_TAG: Final = re.compile(rb"<(?:!doctype\s+html|html|head|body|title|meta|div|p|table|h1|a|span)\b", re.IGNORECASE)
_MARKS: Final = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
#: What is looked at to tell a text from other data, and how much of it may be control characters.
_LOOKED_AT: Final = 1 << 16
_CONTROLS: Final = 0.05
#: Resiliparse takes the square of the depth, and pages that are nested deeper are not pages that people read.
_DEEPEST: Final = 500
_OPENED: Final = re.compile(r"<(/?)([A-Za-z][\w-]*)")
#: Elements that hold nothing, or that end where the next of their kind begins.
_SHALLOW: Final = frozenset((
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
    "p", "li", "dt", "dd", "td", "th", "tr", "tbody", "thead", "tfoot", "option", "optgroup", "html", "head", "body",
))  # fmt: skip
_TITLE: Final = re.compile(r"<title[^>]*>([^<]*)", re.IGNORECASE)
_UNSEEN: Final = re.compile(r"<(script|style)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)", re.IGNORECASE | re.DOTALL)
_TAGS: Final = re.compile(r"<[^<>]*>")
_CONTROL: Final = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufffd]")
_BLANKS: Final = re.compile(r"[ \t\u00a0]+")


@dataclass(frozen=True)
class ContentOptions:
    """What of a page is taken.

    Args:
        main_content: leave out navigation, headers, footers, sidebars; otherwise all visible text.
        paragraphs: keep line breaks between paragraphs and list items.
        alt_texts: take the alternative texts of images too.
        repair: mend wrongly decoded characters and escapes that were escaped twice (ftfy).
        max_bytes: of a longer page nothing is read.
    """

    main_content: bool = True
    paragraphs: bool = True
    alt_texts: bool = False
    repair: bool = True
    max_bytes: int = 10 << 20


class PageText(NamedTuple):
    """What was read of a page; `reason` says why there is no text, and is empty where there is one."""

    title: str
    body: str
    reason: str = ""
    encoding: str = ""


_DEFAULT: Final = ContentOptions()


def page_text(content: bytes, content_type: str = "", options: ContentOptions = _DEFAULT) -> PageText:
    """The title and the main content of a page; never fails because of what the page holds.

    The encoding is that of the byte order mark, of the header, of the page's `meta`, or else guessed, the first of them
    in which the page can be read without a fault.

    Args:
        content: the bytes of the page, without transfer or content encoding.

    Returns:
        The texts; the same for the same bytes.
    """
    if len(content) > options.max_bytes:
        return PageText("", "", f"larger than {options.max_bytes:,d} bytes")
    if not content.strip():
        return PageText("", "", "empty page")
    kind = content_type.partition(";")[0].strip().lower()
    if kind not in _HTML | _PLAIN | _VAGUE:
        if not _TAG.search(content[:_LOOKED_AT]) or _is_binary(content):
            return PageText("", "", f"content type {kind}")
        kind = "text/html"
    text, encoding = _decoded(content, content_type)
    if _is_noise(text):
        return PageText("", "", "not a text", encoding)
    plain = kind in _PLAIN or (kind in _VAGUE and not _TAG.search(content[:_LOOKED_AT]))
    title, body = ("", text) if plain else _of_html(text, options)
    title, body = (_tidied(part, options) for part in (title, body))
    reason = "" if title or body else "no text in it"
    return PageText(" ".join(title.split()), body, reason, encoding)


def _of_html(text: str, options: ContentOptions) -> tuple[str, str]:
    if text.count("<") > _DEEPEST and _is_deep(text):
        title = _TITLE.search(text)
        return ("" if title is None else title[1]), html.unescape(_TAGS.sub(" ", _UNSEEN.sub(" ", text)))
    extract_plain_text, tree_of = _resiliparse()
    chosen = {"preserve_formatting": options.paragraphs, "alt_texts": options.alt_texts}
    try:
        tree = tree_of.parse(text)
        body = extract_plain_text(tree, main_content=options.main_content, **chosen)
        if not body.strip() and options.main_content:
            # Some old pages are a table of tables, in which no main content is found.
            body = extract_plain_text(tree, main_content=False, **chosen)
        return tree.title or "", body
    except (ValueError, RuntimeError):
        return "", ""


def _is_deep(text: str) -> bool:
    """Whether elements stand within elements so often that a tree of them takes forever to be read."""
    depth = 0
    for end, name in _OPENED.findall(text):
        if name.lower() not in _SHALLOW:
            depth = max(0, depth - 1) if end else depth + 1
            if depth > _DEEPEST:
                return True
    return False


def _tidied(text: str, options: ContentOptions) -> str:
    if options.repair:
        text = _ftfy()(text)
    text = html.unescape(text) if options.repair and "&" in text else text
    text = _CONTROL.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = text.encode("utf-8", "replace").decode("utf-8")
    lines = [_BLANKS.sub(" ", line).strip() for line in text.split("\n")]
    if not options.paragraphs:
        return " ".join(line for line in lines if line)
    return re.sub("\n{3,}", "\n\n", "\n".join(lines)).strip()


def _decoded(content: bytes, content_type: str) -> tuple[str, str]:
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return content[len(mark) :].decode(encoding, "replace"), encoding
    named = [match[1] for match in (_CHARSET.search(content_type),) if match]
    named += [match[1].decode("ascii", "replace") for match in (_META.search(content[:4096]),) if match]
    for name in named:
        encoding = _web_encoding(name)
        try:
            return content.decode(encoding), encoding
        except (UnicodeDecodeError, LookupError):
            continue
    encoding = _guessed(content)
    try:
        return content.decode(encoding, "replace"), encoding
    except LookupError:
        return content.decode("windows-1252", "replace"), "windows-1252"


def _web_encoding(name: str) -> str:
    """The encoding that browsers read a name as: pages that say latin-1 or ASCII hold Windows' characters."""
    with needed_for("reading web pages", "pages"):
        from resiliparse.parse.encoding import map_encoding_to_html5
    return str(map_encoding_to_html5(name, fallback_utf8=False) or name)


def _guessed(content: bytes) -> str:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as fault:
        # Cut off in the midst of a character is still UTF-8.
        if fault.start > len(content) - 4 and fault.start > 0:
            return "utf-8"
        with needed_for("reading web pages", "pages"):
            from resiliparse.parse.encoding import detect_encoding
        return str(detect_encoding(content, from_html_meta=False) or "windows-1252")
    return "utf-8"


def _is_binary(content: bytes) -> bool:
    return b"\x00" in content[:_LOOKED_AT]


def _is_noise(text: str) -> bool:
    looked_at = text[:_LOOKED_AT]
    return len(_CONTROL.findall(looked_at)) > _CONTROLS * max(1, len(looked_at))


def _resiliparse() -> tuple[Any, Any]:
    with needed_for("reading web pages", "pages"):
        from resiliparse.extract.html2text import extract_plain_text
        from resiliparse.parse.html import HTMLTree
    return extract_plain_text, HTMLTree


def _ftfy() -> Any:
    with needed_for("mending the characters of web pages", "pages"):
        from ftfy import fix_text
    return fix_text
