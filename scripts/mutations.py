"""Ways to damage a file: without looking (bytes, lines), and where it hurts (a value, a column, an array).

Each is a function of a random generator and the content; the same generator gives the same damage.
"""

import csv
import io
import json
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import tomli_w

LONG = "x" * 5000
WORDS = (
    "", " ", LONG, "$\\frac$", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "a\nb", "\x00", "\x85\x9b",
    "\u202eabc", "é\u0301", "\ud800", "../../x", "a/b", "nan", "inf", "-1", "0", "1e308", "{}", "%s", "%(x)s",
    "<b>", "a,b", '"',
)  # fmt: skip
NUMBERS = (
    0, 1, -1, 2, 0.5, -0.0, 1e-300, 5e-324, 1e308, -1e308, float("nan"), float("inf"), -float("inf"),
    2**31, 2**32, 2**53 + 1, 2**62, 2**63, -(2**63), 2**64, 10**30, 10**400, 1_000_001,
)  # fmt: skip
ODD = (None, True, False, [], {}, [[]], [[[[[0]]]]], {"a": {"b": []}}, [None], [1, "a"], {"": 0}, [0] * 50)
HOSTILE: tuple[Any, ...] = (*WORDS, *NUMBERS, *ODD)

UNAWARE = (
    ValueError, TypeError, AttributeError, LookupError, OSError, EOFError, RecursionError, OverflowError,
    csv.Error, zipfile.BadZipFile,
)  # fmt: skip
"""What comes of looking for the format of what has none any more."""

Damage = Callable[[Random, bytes], bytes]
Tree = Any
"""Tables, lists and plain values, as JSON and TOML have them."""


def mutated(random: Random, path: Path) -> bytes:
    """The content of a file, damaged once or a few times: mostly in the way of its format."""
    content = path.read_bytes()
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        aware = AWARE.get(path.suffix)
        damage = aware if aware and random.random() < 0.85 else blind
        try:
            content = damage(random, content)
        except UNAWARE:
            content = blind(random, content)  # earlier damage may have left nothing to be aware of
    return content


def blind(random: Random, content: bytes) -> bytes:
    """One of the ways that need no format."""
    return random.choice((flip, cut_out, twice, cut_short, scribble, lines_changed, lines_changed))(
        random, content
    )


def flip(random: Random, content: bytes) -> bytes:
    found = bytearray(content or b"\x00")
    for _ in range(random.choice((1, 1, 3, 20))):
        found[random.randrange(len(found))] ^= 1 << random.randrange(8)
    return bytes(found)


def cut_out(random: Random, content: bytes) -> bytes:
    begin, end = _stretch(random, content)
    return content[:begin] + content[end:]


def twice(random: Random, content: bytes) -> bytes:
    begin, end = _stretch(random, content)
    return content[:end] + content[begin:end] * random.choice((1, 1, 30)) + content[end:]


def cut_short(random: Random, content: bytes) -> bytes:
    return content[: random.randrange(len(content) + 1)]


def scribble(random: Random, content: bytes) -> bytes:
    at = random.randrange(len(content) + 1)
    new = random.choice((random.randbytes(random.randint(1, 8)), _bytes(random.choice(WORDS)), b"[" * 3000))
    return content[:at] + new + content[at + random.choice((0, len(new))) :]


def lines_changed(random: Random, content: bytes) -> bytes:
    lines = content.split(b"\n")
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    match random.randrange(3):
        case 0:
            lines[one], lines[other] = lines[other], lines[one]
        case 1:
            del lines[one]
        case _:
            lines.insert(one, lines[other])
    return b"\n".join(lines)


def json_changed(random: Random, content: bytes) -> bytes:
    return _json(tree_changed(random, json.loads(content)))


def json_lines_changed(random: Random, content: bytes) -> bytes:
    lines = content.splitlines()
    at = random.randrange(len(lines))
    lines[at] = _json(tree_changed(random, json.loads(lines[at])))
    return b"\n".join(lines) + b"\n"


def toml_changed(random: Random, content: bytes) -> bytes:
    return _bytes(tomli_w.dumps(tree_changed(random, tomllib.loads(content.decode()))))


def csv_changed(random: Random, content: bytes) -> bytes:
    """In a cell, in the header, in the number of fields; what has no commas has tabs."""
    text = content.decode("utf-8", "surrogatepass")
    mark = "," if "," in text.partition("\n")[0] else "\t"
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=mark))
    row = random.randrange(len(rows))
    column = random.randrange(len(rows[row]))
    match random.randrange(8):
        case 0:
            for each in rows:
                del each[column : column + 1]
        case 1:
            rows[0][column] = random.choice((*rows[0], *WORDS))
        case 2:
            rows[row].insert(column, _cell(random))
        case 3:
            rows.insert(row, list(rows[random.randrange(len(rows))]))
        case 4:
            rows = rows[: random.randrange(len(rows))]
        case _:
            rows[row][column] = _cell(random)
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=mark, lineterminator="\n", escapechar="\\").writerows(rows)
    return _bytes(stream.getvalue())


def arrays_changed(random: Random, content: bytes) -> bytes:
    """In a value, the type, the shape or the name of one of the arrays."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
    except (RuntimeError, OSError, zipfile.BadZipFile):  # damaged before, beyond that
        return content[: len(content) // 2]
    name = random.choice(sorted(arrays))
    array = arrays[name].copy()
    match random.randrange(7):
        case 0:
            del arrays[name]
        case 1:
            arrays[name] = array.reshape(-1)[: random.randrange(array.size + 1)]
        case 2:
            arrays[name] = array.astype(random.choice(("f8", "i8", "i1", "u1", "U3", "c16", "?")))
        case 3:
            arrays[name] = random.choice((array[None], array.reshape(-1), np.array(0), np.zeros((0, 3))))
        case 4:
            arrays[random.choice(("x", "slots", "kinds"))] = array
        case _:
            if array.size:
                with np.errstate(all="ignore"):  # what does not fit is infinite
                    array.reshape(-1)[random.randrange(array.size)] = random.choice(
                        (0, 1, -1, 127, 1e308, np.nan)
                    )
            arrays[name] = array
    stream = io.BytesIO()
    with np.errstate(all="ignore"):
        np.savez(stream, **arrays)
    return stream.getvalue()


def tree_changed(random: Random, tree: Tree) -> Tree:
    """With one thing in it replaced, taken away, renamed or doubled."""
    tree = json.loads(json.dumps(tree)) if isinstance(tree, dict | list) else tree
    places = list(_places(tree))
    if not places:
        return random.choice(HOSTILE)
    holder, key = random.choice(places)
    match random.randrange(8):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[random.choice((*holder, *WORDS))] = holder.pop(key)
        case 1 | 2 if isinstance(holder, list):
            holder.insert(key, holder[key])
        case 2:
            holder[key] = [holder[key]]
        case 3:
            other, name = random.choice(places)
            holder[key] = json.loads(json.dumps(other[name])) if name in _keys(other) else None
        case _:
            holder[key] = random.choice(HOSTILE)
    return tree


def _keys(holder: Any) -> Any:
    return holder if isinstance(holder, dict) else range(len(holder))


def _places(tree: Tree) -> Iterator[tuple[Any, Any]]:
    """Every table or list with every key in it."""
    if isinstance(tree, dict | list):
        for key in list(_keys(tree)):
            yield tree, key
            yield from _places(tree[key])


def _json(tree: Tree) -> bytes:
    return json.dumps(tree, ensure_ascii=True).encode()


def _cell(random: Random) -> str:
    return str(random.choice((*WORDS, *NUMBERS)[:-2]))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _stretch(random: Random, content: bytes) -> tuple[int, int]:
    begin = random.randrange(len(content) + 1)
    return begin, min(len(content), begin + random.choice((1, 4, 40, len(content))))


AWARE: dict[str, Damage] = {
    ".json": json_changed,
    ".jsonl": json_lines_changed,
    ".toml": toml_changed,
    ".csv": csv_changed,
    ".trace": csv_changed,
    ".npz": arrays_changed,
}
