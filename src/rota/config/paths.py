"""Where paths in a configuration start: in a file at its folder, in flags where the user is."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from rota.config.grid import leaves
from rota.config.load import parse_assignment
from rota.config.notation import Table, put

Keys = tuple[str, ...]


def placed(
    table: Table, keys: Iterable[str], folder: Path, assignments: Iterable[str] = (), here: Path = Path()
) -> dict[str, object]:
    """A copy in which the values of these keys are paths from where the user is; in keys, `*` is any name.

    `assignments` are the flags that were put over the file, `folder` is that of the file.
    """
    flags = [key for text in assignments for key in _keys_set(text)]
    found = dict(table)
    for path, value in [each for key in keys for each in _given(table, tuple(key.split(".")))]:
        from_flag = any(path[: len(flag)] == flag for flag in flags)
        found = put(found, path, str((here if from_flag else folder) / value))
    return found


def _keys_set(assignment: str) -> list[Keys]:
    """What a flag sets: its key, or those that it lets a grid vary."""
    key, value = parse_assignment(assignment)
    grid = put({}, key, value).get("grid")
    return [varied for varied, _ in leaves(grid)] if isinstance(grid, Mapping) else [key]


def _given(value: object, pattern: Keys, before: Keys = ()) -> Iterator[tuple[Keys, str]]:
    """Keys that fit and have a text, with it."""
    if not pattern:
        if isinstance(value, str):
            yield before, value
    elif isinstance(value, Mapping):
        for name in value if pattern[0] == "*" else [pattern[0]]:
            if name in value:
                yield from _given(value[name], pattern[1:], (*before, name))
