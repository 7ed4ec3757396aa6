"""The judging pages over a real socket: what they keep, what they refuse, and that a refusal writes nothing."""

from __future__ import annotations

import html.parser
import json
import re
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the extra [web] is not installed: judging pages are not tried")
pytest.importorskip("uvicorn", reason="the extra [web] is not installed: judging pages are not tried")

import judging_load
from judging_example import Queue
from judging_web_sample import HOSTILE, Browser, make_store, pairs, served
from truerank import judge
from truerank.errors import InputError, MissingExtraError
from truerank.judging.items import Item, Text
from truerank.judging.schemes import load_scheme
from truerank.judging.store import Store
from truerank.judging.web.access import host_of
from truerank.judging.web.pages import LARGEST_BODY, safe


@pytest.fixture
def desk(tmp_path):
    make_store(tmp_path / "store", pairs(5)).close()
    with served(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def ann(desk):
    browser = Browser(desk.addresses[0])
    yield browser.enter("ann")
    browser.close()


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    """A desk for requests that must all be refused: in the end, as at any time, its store has no event."""
    path = tmp_path_factory.mktemp("untouched") / "store"
    make_store(path, pairs(5)).close()
    with served(path) as opened:
        yield opened
        assert events(opened) == []


@pytest.fixture
def refused(untouched):
    browser = Browser(untouched.addresses[0])
    yield browser.enter("ann")
    browser.close()


def events(desk):
    return [(e.item_id, e.annotator, e.kind, e.labels, e.comment, e.reason) for e in desk.store.events()]


def test_labels_skips_comments_and_undo_are_kept(desk, ann):
    assert ann.at == "/judge/1"
    ann.label("title-identical", comment="  same\r\nwords ")
    assert ann.at == "/judge/2?after=1"
    assert "Item 1: Title-Identical. Saved." in ann.text
    ann.post("/judge/2", {**ann.fields("skip"), "act": "skip", "reason": "the topic is unclear"})
    ann.post("/judge/3", {**ann.fields("skip"), "act": "skip", "reason": "the topic is unclear", "other": "too long"})
    ann.post("/undo", ann.fields("undo"))
    assert ann.at == "/judge/3?undone=1"
    ann.label("Title-Reformulation", "Variant-Identical")
    assert events(desk) == [
        ("pair <0>", "ann", "label", ("Title-Identical",), "same\nwords", ""),
        ("pair <1>", "ann", "skip", (), "", "the topic is unclear"),
        ("pair <2>", "ann", "skip", (), "", "too long"),
        ("pair <2>", "ann", "undo", (), "", ""),
        ("pair <2>", "ann", "label", ("Title-Reformulation", "Variant-Identical"), "", ""),
    ]


def test_an_annotator_goes_on_where_they_left_and_can_change_an_answer(desk, ann):
    ann.label("Title-Identical")
    ann.label("Different Topic")
    again = Browser(desk.addresses[0]).enter("ann")
    assert again.at == "/judge/3"
    again.get("/judge/1")
    assert "You said: Title-Identical." in again.text
    assert re.search(r'value="Title-Identical"[^>]* checked', again.text)
    again.label("Title-Generalization")
    assert again.at == "/judge/3?after=1"
    assert [s.labels for s in desk.store.standing(annotator="ann")] == [("Title-Generalization",), ("Different Topic",)]


def test_the_end_is_told_and_lists_show_what_was_said(desk, ann):
    for _ in range(5):
        ann.label("Title-Identical")
    assert ann.at == "/judge?after=5"
    assert "Nothing is left" in ann.text
    ann.get("/mine")
    assert ann.text.count("Title-Identical") == 5
    ann.get("/overview")
    assert "as soon as two people" in ann.text
    bob = Browser(desk.addresses[0]).enter("bob")
    bob.label("Title-Identical")
    bob.label("Different Topic")
    assert "Cohen&#x27;s kappa" in bob.get("/overview").text


def test_a_form_counts_once_however_often_it_is_sent(desk, ann):
    fields = {**ann.fields(), "label": "Title-Identical"}
    for _ in range(3):
        assert ann.post("/judge/1", fields).at == "/judge/2?after=1"
    assert len(events(desk)) == 1
    ann.post("/judge/1", {**fields, "label": "Different Topic"})
    assert ann.status == 409
    assert "sent before with another answer" in ann.text
    assert len(events(desk)) == 1
    ann.label("Different Topic")
    assert [event[3] for event in events(desk)] == [("Title-Identical",), ("Different Topic",)]
    assert ann.post("/judge/1", fields).status == 409
    assert "changed since" in ann.text
    for _ in range(2):
        ann.get("/judge/1")
        ann.post("/undo", ann.fields("undo"))
    assert ann.post("/judge/1", fields).status == 409
    assert desk.store.standing() == ()
    ann.label("Title-Identical")
    assert [standing.labels for standing in desk.store.standing()] == [("Title-Identical",)]


def test_seconds_are_what_the_page_measured_or_the_time_since_it_was_made(desk, ann):
    ann.label("Title-Identical", seconds="7.25")
    ann.label("Title-Identical", seconds="1e9")
    ann.label("Title-Identical", seconds="", shown=str(time.time() - 60))
    measured, bounded, counted = (event.seconds for event in desk.store.events())
    assert (measured, bounded) == (7.2, 3600.0)
    assert 60 <= counted < 65


REFUSED_FORMS = {
    "unknown label": ({"label": "Nonsense"}, 422, "no label &#x27;Nonsense&#x27;"),
    "labels that exclude each other": ({"label": ["Different Topic", "Title-Identical"]}, 422, "excludes"),
    "no label": ({}, 422, "No label"),
    "only the optional group": ({"label": "Variant-Identical"}, 422, "Against the title"),
    "skip without a reason": ({"act": "skip"}, 422, "Say why"),
    "comment too long": ({"label": "Title-Identical", "comment": "x" * 4001}, 422, "4,001 characters"),
    "token too long": ({"label": "Title-Identical", "token": "x" * 101}, 422, "incomplete"),
    "time that is none": ({"label": "Title-Identical", "seconds": "soon"}, 422, "not a number"),
    "seen at no time": ({"label": "Title-Identical", "seconds": "", "shown": "nan"}, 422, "not a number"),
    "a button of another page": ({"label": "Title-Identical", "act": "adjudicate"}, 422, "no such button"),
    "too many fields": ({"label": ["Title-Identical"] * 500}, 422, "cannot be read"),
    "another item": ({"label": "Title-Identical", "item": "0" * 20}, 409, "Look again"),
    "forged form": ({"label": "Title-Identical", "form": "0" * 64}, 403, "not one that this page gave you"),
    "key with other letters": ({"label": "Title-Identical", "form": "é\u202e"}, 403, "not one that this page gave you"),
}


@pytest.mark.parametrize("name", REFUSED_FORMS)
def test_a_form_that_cannot_be_taken_writes_nothing(untouched, refused, name):
    more, status, message = REFUSED_FORMS[name]
    refused.post("/judge/1", {**refused.fields(), **more})
    assert refused.status == status
    assert message in refused.text
    assert events(untouched) == []


def test_what_was_typed_into_a_refused_form_is_shown_again(refused):
    refused.label("Title-Identical", "Different Topic", comment="why <not>")
    assert "why &lt;not&gt;</textarea>" in refused.text
    assert len(re.findall(r'name="label[^>]* checked', refused.text)) == 2


def test_a_form_of_another_visitor_is_refused(untouched, refused):
    bob = Browser(untouched.addresses[0]).enter("bob")
    assert refused.post("/judge/1", {**bob.fields(), "label": "Title-Identical"}).status == 403
    assert events(untouched) == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example:80"}, 421),
        ({"Host": "127.0.0.1, evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Content_Type": "application/json"}, 415),
        ({"Cookie": ""}, 401),
        ({"Cookie": "truerank=ann:guess"}, 401),
    ],
    ids=str,
)
def test_a_request_from_elsewhere_writes_nothing(untouched, refused, headers, status):
    refused.post("/judge/1", {**refused.fields(), "label": "Title-Identical"}, **headers)
    assert refused.status == status
    assert events(untouched) == []


def test_an_oversized_body_is_refused_whether_or_not_its_size_is_announced(untouched, refused):
    fields = refused.fields()
    assert refused.post("/judge/1", {**fields, "label": "Title-Identical", "comment": "x" * LARGEST_BODY}).status == 413
    with socket.create_connection(
        (untouched.addresses[0].split(":")[1][2:], int(untouched.addresses[0].split(":")[2][:-1]))
    ) as raw:
        head = f"POST /judge/1 HTTP/1.1\r\nHost: {refused.host}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        cookie = "; ".join(f"{name}={value}" for name, value in refused.cookies.items())
        raw.sendall(f"{head}Cookie: {cookie}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        for _ in range(LARGEST_BODY // 4096 + 1):
            raw.sendall(b"1000\r\n" + b"x" * 4096 + b"\r\n")
        raw.sendall(b"0\r\n\r\n")
        assert b" 413 " in raw.recv(100)
    assert events(untouched) == []


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd", "/static/../server.py", "/static/..%2fserver.py", "/static/%2e%2e/%2e%2e/app.py",
        "/static//etc/passwd", "/static/judge.js/", "/static/item.html.j2", "/judge/0", "/judge/6", "/judge/-1",
        "/judge/1.5", "/judge/" + "9" * 5000, "/judge/%D9%A3", "/judge/1/", "/judge/1;x", "/mine?page=0",
        "/mine?page=2", "/mine?page=x", "/judge/1?after=x", "/docs", "/openapi.json", "/adjudicate/1/x",
    ],
    ids=lambda path: ascii(path)[:40],
)  # fmt: skip
def test_a_path_outside_is_not_found(refused, path):
    assert refused.get(path).status == 404


def test_other_methods_are_not_allowed(untouched, refused):
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert refused.ask(method, "/judge/1").status == 405
    assert refused.ask("POST", "/overview", "").status == 405
    assert events(untouched) == []


def test_items_of_others_are_not_there(tmp_path):
    items = pairs(4)
    work = {"ann": [items[0].item_id], "bob": [item.item_id for item in items[1:]]}
    Store.create(tmp_path / "store", load_scheme("leakage"), items, work).close()
    with served(tmp_path / "store") as desk:
        ann = Browser(desk.addresses[0]).enter("ann")
        assert ann.at == "/judge/1"
        assert ann.get("/judge/2").status == 404
        assert "1 item" in ann.get("/mine").text


def test_only_an_adjudicator_sees_what_others_said(untouched, refused):
    for path in ("/adjudicate", "/adjudicate/1"):
        assert refused.get(path).status == 403
    refused.get("/judge/1")
    assert refused.post("/adjudicate/1", {**refused.fields(), "label": "Title-Identical"}).status == 403
    assert events(untouched) == []


def test_adjudication_shows_only_disagreements_and_marks_models(desk):
    store = desk.store
    for item, (one, other) in enumerate(
        [("Title-Identical", "Title-Identical"), ("Title-Identical", "Different Topic")]
    ):
        store.record(f"pair <{item}>", "ann", "label", [one], comment="sure <b>")
        store.record(f"pair <{item}>", "bob", "label", [other])
    store.record("pair <0>", "tiny-model", "label", ["Different Topic"])
    judy = Browser(desk.addresses[0]).enter("judy")
    assert judy.at == "/adjudicate"
    assert "1 item on which labels differ: 0 settled, 1 open." in judy.text
    assert judy.get("/adjudicate/1").status == 404
    assert "bob" in judy.get("/adjudicate/2").text
    assert "sure &lt;b&gt;" in judy.text
    assert judy.label("Nonsense").status == 422
    assert judy.get("/adjudicate/2").label("Title-Reformulation", comment="the narrative says so").at == "/adjudicate"
    assert "1 settled, 0 open" in judy.text
    last = list(store.events())[-1]
    assert (last.kind, last.item_id, last.labels) == ("adjudicate", "pair <1>", ("Title-Reformulation",))
    judy.get("/adjudicate/2")
    judy.post("/undo", judy.fields("undo"))
    assert judy.at == "/adjudicate/2?undone=1"
    assert "tiny-model (model): Different Topic" in judy.get("/adjudicate?models=1").text
    assert '<span class="role">model</span>' in judy.get("/adjudicate/1?models=1").text


def test_models_do_not_enter(untouched):
    browser = Browser(untouched.addresses[0])
    assert "tiny-model" not in browser.get("/enter").text
    assert browser.enter("tiny-model").status == 401
    assert browser.enter("nobody").status == 401
    assert browser.get("/judge").status == 401


def test_leaving_ends_the_visit(refused):
    assert refused.post("/leave", refused.fields("x")).at == "/enter"
    assert refused.get("/judge/1").status == 401


class Elements(html.parser.HTMLParser):
    """The elements of a page, and what could run."""

    def __init__(self):
        super().__init__()
        self.names, self.live = [], []

    def handle_starttag(self, tag, attributes):
        self.names.append(tag)
        self.live += [name for name, _ in attributes if name.startswith("on") or name == "style"]
        self.live += [value for name, value in attributes if name in ("src", "href", "action") and ":" in (value or "")]


def test_no_text_of_others_is_live(tmp_path):
    items = pairs(len(HOSTILE), HOSTILE)
    items = [
        Item(
            f"<i>{n}</i>", f"<u>{text}", text, text, text, text, (Text("<b>query</b>", text, text, text),), dataset=text
        )
        for n, text in enumerate(HOSTILE)
    ]
    store = make_store(tmp_path / "store", items)
    for item in items:
        for name, label in (("ann", "Title-Identical"), ("bob", "Different Topic")):
            store.record(item.item_id, name, "label", [label], comment=item.title)
        store.record(item.item_id, "tiny-model", "skip", reason=item.title)
    store.close()
    plain = make_store(
        tmp_path / "plain", [Item("1", "1", "a", "b", "c", "d", (Text("query", "e", "f", "g"),), dataset="h")]
    )
    plain.record("1", "ann", "label", ["Title-Identical"], comment="x")
    plain.record("1", "bob", "label", ["Different Topic"], comment="x")
    plain.close()
    seen = {}
    for name in ("store", "plain"):
        with served(tmp_path / name) as desk:
            ann, judy = Browser(desk.addresses[0]).enter("ann"), Browser(desk.addresses[0]).enter("judy")
            for browser, pages in (
                (ann, ["judge/1", "judge/2", "judge/6", "mine", "overview"]),
                (judy, ["adjudicate", "adjudicate/1", "adjudicate/6"]),
            ):
                for page in pages:
                    elements = Elements()
                    elements.feed(browser.get(f"/{page}").text)
                    if browser.status == 200:
                        assert elements.live == []
                        seen.setdefault(page, []).append(sorted(set(elements.names) - {"mark", "span", "small", "p"}))
                        shown = re.sub(r"<textarea.*?</textarea>", "", browser.text, flags=re.S)
                        assert not re.search("[\u202a-\u202e\u200f]", shown)
    assert seen["judge/1"][0] == seen["judge/1"][1]
    assert seen["adjudicate/1"][0] == seen["adjudicate/1"][1]
    assert {"script"} == {
        name
        for pages in seen.values()
        for page in pages
        for name in page
        if name in ("script", "img", "svg", "b", "i", "u")
    }


def test_every_answer_is_sealed(refused):
    for path in ("/judge/1", "/overview", "/nowhere", "/static/judge.js", "/help"):
        headers = refused.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        if path.startswith("/static"):
            assert "immutable" in headers["cache-control"]
        else:
            assert headers["cache-control"] == "no-store"
    refused.get("/judge/1", Host="evil.example")
    assert "default-src 'none'" in refused.headers["content-security-policy"]


def test_tokens_open_the_door_and_nothing_else_does(tmp_path):
    make_store(tmp_path / "store").close()
    with served(tmp_path / "store", no_tokens=False) as desk:
        tokens = dict(desk.new_tokens)
        assert sorted(tokens) == ["ann", "bob", "judy"]
        assert all(token in repr(desk) for token in tokens.values())
        browser = Browser(desk.addresses[0])
        assert browser.get("/judge").status == 401
        assert "tiny-model" not in browser.text
        assert "bob" not in browser.text
        for name, token in (
            ("ann", tokens["bob"]),
            ("ann", ""),
            ("nobody", tokens["ann"]),
            ("ann", "é"),
            ("tiny-model", ""),
        ):
            assert browser.enter(name, token).status == 401
        browser.get("/enter")
        browser.cookies = dict.fromkeys(browser.cookies, f"ann:{tokens['bob']}")
        assert browser.get("/judge/1").status == 401
        browser.enter("ann", tokens["ann"])
        assert browser.at == "/judge/1"
        browser.label("Title-Identical")
        assert [event[1] for event in events(desk)] == ["ann"]
        assert not [t for t in tokens.values() if any(t.encode() in p.read_bytes() for p in tmp_path.iterdir())]
    with served(tmp_path / "store", new_tokens=["ann"]) as desk:
        assert [name for name, _ in desk.new_tokens] == ["ann"]
        shown = desk.json()
        assert (shown["new_tokens"], shown["links"]) == (dict(desk.new_tokens), dict(desk.links))
        old = Browser(desk.addresses[0]).enter("ann", tokens["ann"])
        assert old.status == 401
        assert Browser(desk.addresses[0]).enter("ann", desk.new_tokens[0][1]).at == "/judge/2"
        assert Browser(desk.addresses[0]).enter("bob", tokens["bob"]).at == "/judge/1"


def test_the_cookie_is_out_of_reach(desk):
    browser = Browser(desk.addresses[0])
    cookie = browser.get("/enter").headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "secure" not in cookie
    browser.cookies.clear()
    assert "secure" not in browser.get("/enter", X_Forwarded_Proto="https").headers["set-cookie"].lower()


@pytest.mark.parametrize(
    ("header", "host"),
    [
        ("LocalHost:8000", "localhost"),
        ("127.0.0.1", "127.0.0.1"),
        ("[0:0::1]:80", "::1"),
        ("a_b.example.:443", ""),
        ("ann@127.0.0.1", ""),
        ("evil.example#@127.0.0.1", ""),
        ("127.0.0.1:99999", ""),
        ("::1", ""),
        ("[::1", ""),
        ("[::g]", ""),
        ("a b", ""),
        ("a\n", ""),
        ("\u0661.example", ""),
        ("a:\u0661", ""),
        ("a" * 300, ""),
        ("x?y", ""),
    ],
)
def test_a_host_header_is_taken_strictly(header, host):
    assert host_of(header) == host


def test_this_machine_too_asks_for_a_token_and_prints_a_link(tmp_path):
    make_store(tmp_path / "store").close()
    desk = judge.serve(tmp_path / "store", port=0)
    assert desk.tokens
    assert "unencrypted" not in repr(desk)
    for (name, link), (_, token) in zip(desk.links, desk.new_tokens, strict=True):
        assert link == f"{desk.addresses[0]}enter#name={name}&token={token}"
        assert link in repr(desk)
    desk.close()
    desk = judge.serve(tmp_path / "store", port=0)
    assert not desk.links
    assert "the tokens of ann, bob, judy. For a new link: --new-tokens NAME" in repr(desk)
    desk.close()


def test_a_link_of_another_site_takes_nobody_in_by_itself(tmp_path):
    make_store(tmp_path / "store").close()
    with served(tmp_path / "store", no_tokens=False) as desk:
        browser = Browser(desk.addresses[0])
        assert "data-straight" in browser.get("/enter").text
        assert "data-straight" in browser.get("/enter", Sec_Fetch_Site="none").text
        assert "data-straight" not in browser.get("/enter", Sec_Fetch_Site="cross-site").text
        browser.enter("ann", dict(desk.new_tokens)["ann"])
        assert "data-straight" not in browser.get("/enter").text


def test_no_tokens_is_for_this_machine_only(tmp_path):
    path = tmp_path / "store"
    make_store(path).close()
    for wrong in ({"host": "0.0.0.0"}, {"allow_hosts": ["judge.example"]}, {"new_tokens": ["ann"]}):
        with pytest.raises(InputError, match="no_tokens"):
            judge.serve(path, port=0, no_tokens=True, **wrong)
    for name in ("http://x", "x:80", "x/y", "", "::1"):
        with pytest.raises(InputError, match="allow_hosts"):
            judge.serve(path, port=0, allow_hosts=[name])


def test_any_other_address_needs_tokens(tmp_path):
    make_store(tmp_path / "store").close()
    for expected in (["ann", "bob", "judy"], []):
        desk = judge.serve(tmp_path / "store", host="0.0.0.0", port=0)
        assert desk.tokens
        assert "unencrypted" in repr(desk)
        assert [name for name, _ in desk.new_tokens] == expected
        desk.close()


def test_a_named_host_is_answered(tmp_path):
    make_store(tmp_path / "store").close()
    with served(tmp_path / "store", allow_hosts=["Judge.Example"]) as desk:
        browser = Browser(desk.addresses[0])
        assert desk.tokens
        assert [name for name, _ in desk.new_tokens] == ["ann", "bob", "judy"]
        assert browser.get("/enter", Host="judge.example").status == 200
        assert browser.get("/enter", Host="evil.example").status == 421


def test_only_the_named_enter(tmp_path):
    make_store(tmp_path / "store").close()
    with served(tmp_path / "store", annotators=["ann"], adjudicators=["carol"]) as desk:
        assert desk.names == ("ann", "carol")
        assert Browser(desk.addresses[0]).enter("bob").status == 401
        assert Browser(desk.addresses[0]).enter("carol").at == "/adjudicate"


def test_faults_at_the_start_are_told(tmp_path, monkeypatch):
    path = tmp_path / "store"
    make_store(path).close()
    with pytest.raises(InputError, match="no annotator 'zoe'"):
        judge.serve(path, port=0, annotators=["zoe"])
    with pytest.raises(InputError, match="is a model"):
        judge.serve(path, port=0, annotators=["tiny-model"])
    with pytest.raises(InputError, match="is a model"):
        judge.serve(path, port=0, new_tokens=["tiny-model"])
    with pytest.raises(InputError, match="is there as person"):
        judge.serve(path, port=0, adjudicators=["ann"])
    with pytest.raises(InputError, match="belong together"):
        judge.serve(path, port=0, certificate="cert.pem")
    with pytest.raises(InputError, match="PEM"):
        judge.serve(path, port=0, certificate=path, key=path)
    with pytest.raises(InputError, match=r"no address|cannot be taken"):
        judge.serve(path, port=0, host="203.0.113.7")
    with pytest.raises(InputError, match="no store there"):
        judge.serve(tmp_path / "nothing", port=0)
    desk = judge.serve(path, port=0)
    taken = int(desk.addresses[0].rsplit(":", 1)[1].strip("/"))
    with pytest.raises(InputError, match=f"port {taken} of 127.0.0.1 cannot be taken"):
        judge.serve(path, port=taken)
    desk.close()
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingExtraError, match=r"truerank\[web\]"):
        judge.serve(path, port=0)


def test_a_store_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path):
    path = tmp_path / "store"
    make_store(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(InputError, match="version 99"):
        judge.serve(path, port=0, new_tokens=["ann"])
    assert path.read_bytes() == before


def test_a_store_that_cannot_be_written_is_told_and_the_answer_can_be_sent_again(desk, ann, monkeypatch):
    fields = {**ann.fields(), "label": "Title-Identical"}

    def full(work):
        raise InputError("the store cannot be written (disk is full)", "free some space")

    with monkeypatch.context() as patched:
        patched.setattr(desk.store._writer, "run", full)
        assert ann.post("/judge/1", fields).status == 503
        assert "Nothing was kept" in ann.text
    assert ann.post("/judge/1", fields).at == "/judge/2?after=1"
    assert len(events(desk)) == 1


def test_the_command_serves_until_it_is_interrupted(tmp_path):
    path = tmp_path / "store"
    make_store(path).close()
    process = subprocess.Popen(
        [sys.executable, "-m", "truerank", "judge", "serve", str(path), "--port", "0", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    printed = json.loads(process.stdout.readline())
    assert printed["tokens_required"]
    browser = Browser(printed["addresses"][0]).enter("ann", printed["new_tokens"]["ann"])
    browser.label("Title-Identical")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "", "")
    with Store.open(path) as store:
        assert [event.labels for event in store.events()] == [("Title-Identical",)]


def test_no_acknowledged_label_is_lost_or_doubled_when_the_server_is_killed(tmp_path):
    found = judging_load.run(annotators=4, labels=200, folder=tmp_path)
    assert (found.acknowledged, found.lost, found.doubled, found.ended_with) == (200, 0, 0, 0)
    assert found.sent_again >= 1


def test_whoever_feeds_the_store_is_asked_for_more(tmp_path):
    items = pairs(5)
    Store.create(tmp_path / "store", load_scheme("leakage"), items[:1], {"ann": ["pair <0>"], "bob": []}).close()
    with served(tmp_path / "store", proposer=Queue(items), batch=2) as desk:
        ann = Browser(desk.addresses[0]).enter("ann").label("Title-Identical")
        assert ann.at == "/judge/2?after=1"
        assert "Item 2 of 3" in ann.text
        bob = Browser(desk.addresses[0]).enter("bob")
        assert bob.at == "/judge/1"
        assert "Item 1 of 2" in bob.text
        bob.label("Title-Identical")
        bob.label("Title-Identical")
        assert bob.at == "/judge?after=2"
        assert desk.store.assigned("bob") == ("pair <3>", "pair <4>")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl: TLS is not tried")
def test_with_a_certificate_it_is_served_over_tls(tmp_path):
    make_store(tmp_path / "store").close()
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    with served(tmp_path / "store", host="localhost", certificate=certificate, key=key) as desk:
        assert desk.encrypted
        assert desk.addresses[0].startswith("https://localhost:")
        context = ssl.create_default_context(cafile=certificate)
        with urllib.request.urlopen(desk.addresses[0], context=context) as answer:
            assert answer.status == 200
            assert "secure" in answer.headers["set-cookie"].lower()


def test_invisible_signs_are_seen():
    assert str(safe("a\u202eb\u200f<\x00\u200d")) == (
        'a<span class="sign">U+202E</span>b<span class="sign">U+200F</span>&lt;\ufffd\u200d'
    )
