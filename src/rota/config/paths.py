"""Where paths in a configuration start: in a file at its folder, in flags where the user is."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from rota.config.grid import leaves
from rota.config.load import parse_assignment
from rota.config.notation import Table, put
from rota.core.outside import is_outside, placed_name
from rota.core.shipped import located

Keys = tuple[str, ...]


def placed(
    table: Table,
    keys: Iterable[str],
    folder: Path,
    assignments: Iterable[str] = (),
    here: Path = Path(),
    names: Iterable[str] = (),
) -> dict[str, object]:
    """A copy in which the values of these keys are paths from where the user is; in keys, `*` is any name.

    `assignments` are the flags that were put over the file, `folder` is that of the file. `names` are keys of
    what is named, one or several, and may be in a file: `path/to/file.py:Class`. A key of both has either.
    What rota ships is found from any folder that has no file of that name.
    """
    flags = [key for text in assignments for key in _keys_set(text)]
    found = dict(table)

    def start(path: Keys) -> Path:
        return here if any(path[: len(flag)] == flag for flag in flags) else folder

    named = dict(_all_given(table, names))
    for path, value in _all_given(table, keys):
        if isinstance(value, str) and not (path in named and is_outside(value)):
            found = put(found, path, str(located(start(path) / value)))
    for path, value in named.items():
        if isinstance(value, str) and is_outside(value):
            found = put(found, path, placed_name(value, start(path)))
        elif isinstance(value, list):
            several = [placed_name(each, start(path)) if isinstance(each, str) else each for each in value]
            found = put(found, path, several)
    return found


def _keys_set(assignment: str) -> list[Keys]:
    """What a flag sets: its key, or those that it lets a grid vary."""
    key, value = parse_assignment(assignment)
    grid = put({}, key, value).get("grid")
    return [varied for varied, _ in leaves(grid)] if isinstance(grid, Mapping) else [key]


def _all_given(table: Table, keys: Iterable[str]) -> list[tuple[Keys, object]]:
    return [each for key in keys for each in _given(table, tuple(key.split(".")))]


def _given(value: object, pattern: Keys, before: Keys = ()) -> Iterator[tuple[Keys, object]]:
    """Keys that fit, with their values."""
    if not pattern:
        yield before, value
    elif isinstance(value, Mapping):
        for name in value if pattern[0] == "*" else [pattern[0]]:
            if name in value:
                yield from _given(value[name], pattern[1:], (*before, name))
