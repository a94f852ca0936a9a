"""Keys and flags that were renamed: the old names are still read, with a warning that says the new ones."""

import warnings
from collections.abc import Mapping
from typing import Any

from rota.core.errors import ConfigError

Key = tuple[str, ...]

RENAMED: dict[Key, Key] = {
    ("besides",): ("overhead",),
    ("weather",): ("noise",),
    ("weather", "noise"): ("noise", "sigma"),
    ("resident",): ("opportunistic",),
    ("curves", "beside"): ("curves", "copies"),
    ("options", "hrfs", "foresee"): ("options", "hrfs", "predict_stops"),
    ("told",): ("external_allocation",),
    ("site",): ("job",),
    ("slice_s",): ("assignment_s",),
}
"""Old key → new key, of any configuration; no key means something else in another one. Both are as long."""


class RenamedWarning(FutureWarning):
    """An old name of a key or a flag is used."""


def warn_renamed(old: str, new: str) -> None:
    """Warn that a name is an old one."""
    warnings.warn(f"{old} is now called {new}; write that instead", RenamedWarning, stacklevel=2)


def new_key(key: Key, *, warn: bool = True) -> Key:
    """Return what a key is called now."""
    for length in range(len(key), 0, -1):
        if new := RENAMED.get(key[:length]):
            if warn:
                warn_renamed(".".join(key[:length]), ".".join(new))
            return (*new, *key[length:])
    return key


def with_new_keys(table: Mapping[str, Any], above: Key = (), *, warn: bool = True) -> dict[str, Any]:
    """Return a copy of a table in which keys have their new names; `above` is the key of the table.

    A `[grid]` is left as it is: its keys name the points. Raises ConfigError if both names are given.
    """
    found: dict[str, Any] = {}
    for name, value in table.items():
        key = (*above, name)
        new = new_key(key, warn=warn and key in RENAMED)[-1]
        if new in found or (new != name and new in table):
            raise ConfigError(f"{'.'.join(key)} is the old name of a key that is also given; leave it out")
        found[new] = value if key == ("grid",) else _inside(value, key, warn)
    return found


def renewed(key: Key, value: Any) -> tuple[Key, Any]:
    """Return a key and its value with new names; those of a `[grid]` are left as they are."""
    return (key, value) if key[0] == "grid" else (new_key(key), _inside(value, key, True))


def _inside(value: Any, key: Key, warn: bool) -> Any:
    if isinstance(value, Mapping):
        return with_new_keys(value, key, warn=warn)
    if isinstance(value, list):
        return [_inside(each, key, warn) for each in value]
    return value
