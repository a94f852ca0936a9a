"""The page as one file: nothing is fetched, and names are only ever names."""

import base64
import hashlib
import json
import re
import zlib
from html.parser import HTMLParser

import pytest

from rota.figures.groups import groups
from rota.report.assemble import SCRIPTS, embedded, page
from rota.report.jobs import jobs_section

HOSTILE = "</script><script>alert(1)</script>\"'&<!--\u2028"


class Elements(HTMLParser):
    """What a browser would find: elements, and the text in those that hold text only."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, list[str]] = {}
        self._in = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self._in = tag

    def handle_data(self, data):
        self.text.setdefault(self._in, []).append(data)

    def handle_endtag(self, tag):
        self._in = ""


@pytest.fixture
def hostile(make_run) -> str:
    run = make_run("srtf", ids=(HOSTILE, "b", "c"), models=(HOSTILE, "x"))
    return page(HOSTILE, HOSTILE, [jobs_section(0, groups([run])[0])])


def test_names_cannot_end_what_they_are_in(hostile):
    found = Elements(hostile)
    scripts = [attributes.get("type") for tag, attributes in found.found if tag == "script"]
    assert scripts == ["application/json", "module"]
    assert found.text["title"] == [HOSTILE]
    data = json.loads(found.text["script"][0])
    timeline = next(block for block in data["sections"][0]["blocks"] if block["type"] == "timeline")
    assert json.loads(zlib.decompress(base64.b64decode(timeline["items"]["ids"]))) == [HOSTILE, "b", "c"]
    assert timeline["legend"][0] == HOSTILE


def test_a_browser_may_run_our_script_only_and_fetch_nothing(hostile):
    found = Elements(hostile)
    (policy,) = [
        attributes["content"]
        for tag, attributes in found.found
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none';")
    digest = base64.b64encode(hashlib.sha256(found.text["script"][1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy
    assert "unsafe" not in policy


def test_there_is_nothing_to_fetch(hostile):
    found = Elements(hostile)
    addresses = [
        value
        for _, attributes in found.found
        for name, value in attributes.items()
        if name in ("src", "href")
    ]
    assert addresses == ["data:,", "#content"]
    assert set(re.findall(r"https?://[^\"'\s]+", hostile)) == {"http://www.w3.org/2000/svg"}


def test_json_is_read_back_whatever_it_is():
    assert json.loads(embedded({"a": HOSTILE})) == {"a": HOSTILE}
    assert "<" not in embedded({"a": HOSTILE})


def test_text_is_never_read_as_markup():
    from importlib.resources import files

    for name in SCRIPTS:
        source = (files("rota.report") / "page" / name).read_text("utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", source), name
