"""Hooks of mkdocs.yml: the site has the pages that README.md leads to, at the paths that they have in git.

Links of a page work as they are written. A script or a notebook that a page links to is shown as a page.
`docs/api.md` lists what `rota/__init__.py` exports; its text comes from the docstrings.
"""

import ast
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
START = ("README.md", "CONTRIBUTING.md")
API = "docs/api.md"
WIDE = ("README.md", API)
"""Pages that are alone in their section: without a list of pages on the left."""
STYLE = """
.md-grid { max-width: 76rem; }
.md-typeset pre > code { font-size: .66rem; }
.md-typeset .language-sh code { white-space: pre-wrap; }
.md-typeset table:not([class]) { font-size: .68rem; }
"""
LINK = re.compile(r"(\]\()([^)#\s:]+)((?:#[^)]*)?\))")
BLOCK = re.compile(r"^```.*?^```$|<!--.*?-->", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"^>>> .*?(?=^\s*$|\Z)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Replace the files of docs_dir by all that can be reached from START."""
    for file in [file for file in files if file.src_dir == config.docs_dir]:
        files.remove(file)
    files.append(File.generated(config, API, content=api_page()))
    files.append(File.generated(config, "assets/site.css", content=STYLE))
    for name in sorted(reachable()):
        if is_shown(name):
            files.append(File.generated(config, f"{name}.md", content=source_page(ROOT / name)))
        else:
            files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Drop comments, which are for tests, and lead links to scripts to the pages that show them."""
    if page.file.src_uri in WIDE:
        page.meta["hide"] = ["navigation"]
    shown = BLOCK.sub(lambda found: "" if found[0].startswith("<!--") else found[0], markdown)
    return LINK.sub(
        lambda found: f"{found[1]}{found[2]}.md{found[3]}" if is_shown(found[2]) else found[0], shown
    )


def reachable() -> set[str]:
    """Return the files that links lead to, by their paths in the repository."""
    found: set[str] = set()
    ahead = list(START)
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            if name.endswith(".md"):
                ahead += [target for target in targets(name) if (ROOT / target).is_file()]
    return found


def targets(name: str) -> Iterator[str]:
    text = BLOCK.sub("", (ROOT / name).read_text())
    for _, target, _ in LINK.findall(text):
        yield os.path.normpath(Path(name).parent / target)


def is_shown(name: str) -> bool:
    return name.endswith((".py", ".ipynb"))


def source_page(file: Path) -> str:
    """Return a script, or the cells of a notebook with their outputs, as Markdown."""
    if file.suffix == ".py":
        return f"# {file.name}\n\n````python\n{file.read_text()}````\n"
    return "\n\n".join(part for cell in json.loads(file.read_text())["cells"] for part in cell_parts(cell))


def cell_parts(cell: dict[str, Any]) -> Iterator[str]:
    text = "".join(cell["source"])
    if cell["cell_type"] != "code":
        yield text
        return
    yield f"````python\n{text}\n````"
    for output in cell["outputs"]:
        data = output.get("data", {"text/plain": output.get("text", "")})
        if "image/png" in data:
            yield f"![A figure](data:image/png;base64,{''.join(data['image/png']).strip()})"
        else:
            yield f"````text\n{''.join(data['text/plain'])}\n````"


def api_page() -> str:
    """Return the page that mkdocstrings fills: functions first, then classes."""
    names = [name for name in exported() if not name.startswith("_")]
    functions = [name for name in names if name.islower()]
    classes = [name for name in names if not name.islower()]
    head = "# API\n\nThe names that scripts and notebooks can rely on; all others may change."
    parts = [f"## {title}\n\n" + "\n\n".join(f"::: rota.{name}" for name in each)
             for title, each in (("Functions", functions), ("Classes", classes))]  # fmt: skip
    return "\n\n".join([head, "How to use them: [use rota from Python](python.md).", *parts]) + "\n"


def exported() -> list[str]:
    tree = ast.parse((ROOT / "src/rota/__init__.py").read_text())
    (names,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    return list(names)


class Examples(griffe.Extension):
    """Shows doctests in docstrings as code: in Markdown, `>>>` is a quotation."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(
                lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", obj.docstring.value
            )
