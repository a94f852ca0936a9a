"""What can go wrong anywhere, by name; errors of one part alone are where they are raised.

RotaError
├── InputError        what the user gave is wrong; the message says what, where and how to fix it
│   ├── ConfigError   … in a TOML file or a flag
│   └── TraceError    … in a trace or cluster file
├── IllegalPlan       a policy asked for what the cluster cannot do: a bug in the policy
└── Stuck             jobs are left that can never run, or a policy keeps changing its mind
"""

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path


class RotaError(Exception):
    """The root of every error that rota raises on purpose."""


class InputError(RotaError):
    """What the user gave is wrong."""


class ConfigError(InputError):
    """A TOML file or a flag is wrong."""


class TraceError(InputError):
    """A trace or cluster file is wrong."""

    @classmethod
    def at(
        cls, path: Path, line: int, field: str, found: object, expected: str, each: str = "line"
    ) -> "TraceError":
        return cls(f"{path}: {each} {line}: {field}: {found!r} is not {expected}")


class IllegalPlan(RotaError):
    """A policy asked for something the cluster cannot do."""


class Stuck(RotaError):
    """The simulation cannot go on."""


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """`unknown scheduler 'srft'. Did you mean 'srtf'? Known: …`."""
    names = list(known)
    close = get_close_matches(name, names, n=1)
    guess = f" Did you mean {close[0]!r}?" if close else ""
    return f"unknown {what} {name!r}.{guess} Known: {', '.join(names)}"
