"""Errors that any package may raise; errors of one package are defined where they are raised.

RotaError
├── InputError        wrong user input; the message says what, where and how to fix it
│   ├── ConfigError   … in a TOML file or a flag
│   └── TraceError    … in a trace or cluster file
├── IllegalPlan       a policy planned what the cluster cannot do: a bug in the policy
└── Stuck             jobs are left that can never run, or a policy keeps changing its plan
"""

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path


class RotaError(Exception):
    """Base class of all errors that rota raises deliberately."""


class InputError(RotaError):
    """Wrong user input."""


class ConfigError(InputError):
    """A mistake in a TOML file or a flag."""


class TraceError(InputError):
    """A mistake in a trace or cluster file."""

    @classmethod
    def at(
        cls, path: Path, line: int, field: str, found: object, expected: str, each: str = "line"
    ) -> "TraceError":
        """Return an error that says where which value was found, and what was expected."""
        return cls(f"{path}: {each} {line}: {field}: {found!r} is not {expected}")


class IllegalPlan(RotaError):
    """A plan that the cluster cannot carry out."""


class Stuck(RotaError):
    """A simulation that cannot make progress."""


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """Return a message like `unknown scheduler 'srft'. Did you mean 'srtf'? Known: …`."""
    names = list(known)
    close = get_close_matches(name, names, n=1)
    guess = f" Did you mean {close[0]!r}?" if close else ""
    return f"unknown {what} {name!r}.{guess} Known: {', '.join(names)}"
