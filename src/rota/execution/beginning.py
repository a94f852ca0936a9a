"""The first entry of a journal: what the run is. A run that goes on must be the one that was begun."""

import json
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rota.core.errors import InputError
from rota.execution.folder import Books
from rota.execution.journal import Journal

BEGAN, RESUMED, STOPPED, ENDED = "began", "resumed", "stopped", "ended"
"""Kinds of entries besides those of the loop: at the beginning and the end of each process of a run."""

Record = dict[str, Any]
"""What a run is, as plain values; its name is under `run`, the digest of its configuration under `config`."""


def begin_or_resume(journal: Journal, books: Books, described: Callable[[str], Record]) -> Record:
    """What the journal says the run is; written there if it is new. `described` takes the name of the run."""
    entries = journal.read()
    first = next(entries, None)
    if first is None:
        books.check_nothing_was_made()
        record = described(secrets.token_hex(8))
        journal.append(BEGAN, record)
        journal.settle()
        return record
    check_config(journal.file, first.body, described(first.body.get("run", "")))
    for _ in entries:  # nothing is added to a journal of which something is damaged
        pass
    journal.append(RESUMED, {})
    return first.body


def check_config(file: Path, found: Record, described: Record) -> None:
    """Raise InputError if a journal is of another run than the configuration says."""
    described = json.loads(json.dumps(described))  # lists, as they are read back
    known = {"config": described["config"], **found}  # older journals do not say
    if known == described:
        return
    if {**known, "config": described["config"]} == described:
        what = "the configuration has been changed since this run began; bring back what it was"
    else:
        what = "of another run than the configuration says; bring back the configuration that it began with"
    raise InputError(f"{file}: {what}, or choose another folder")
