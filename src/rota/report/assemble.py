"""The page as one file: markup, style, scripts and data in it, and nothing that is fetched from anywhere."""

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from rota import __version__
from rota.report import verdict
from rota.report.blocks import Section

SCRIPTS = (
    "format.js", "unpack.js", "table.js", "chart.js", "shares.js", "heat.js",
    "scene.js", "paint.js", "tell.js", "letters.js", "timeline.js", "page.js",
)  # fmt: skip
"""In this order: they become one script."""


def page(title: str, command: str, sections: Sequence[Section]) -> str:
    """All of it; the policy in its head lets a browser run nothing but our script, and fetch nothing."""
    script = "\n".join(_part(name) for name in SCRIPTS)
    style = _part("page.css")
    values = {
        "TITLE": html.escape(title),
        "POLICY": (
            f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:"
        ),
        "STYLE": style,
        "SCRIPT": script,
        "DATA": embedded(_data(title, command, sections)),
    }
    text = _part("page.html")
    return "".join(values.get(part, part) for part in text.split("@@"))


def embedded(data: Any) -> str:
    """As JSON that cannot end the element it is in, whatever names there are."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _data(title: str, command: str, sections: Sequence[Section]) -> dict[str, Any]:
    return {
        "title": title,
        "command": command,
        "version": __version__,
        "lede": verdict.tally([section.glance.winner for section in sections if section.glance.won]),
        "sections": [section.record() for section in sections],
    }


def _part(name: str) -> str:
    return (files("rota.report") / "page" / name).read_text("utf-8")


def _digest(text: str) -> str:
    """What a browser works out of an element before it trusts it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
