"""How a run is doing, from its journal alone; whoever owns it is not disturbed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rota.core.errors import InputError
from rota.execution.beginning import BEGAN, ENDED
from rota.execution.entries import DECIDED, INSTANT, LOST, parse_decisions, parse_events
from rota.execution.journal import Entry, has_owner, read_journal
from rota.execution.picture import Picture, parse_frame


@contextmanager
def taken_in(file: Path, entry: Entry) -> Iterator[None]:
    """While an entry is understood: one that names what the run does not have is an error that says so."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        what = f"entry {entry.number} ({entry.kind}) is not what a run writes"
        raise InputError(f"{file}: {what} ({error!r}); {LOST}") from None


def _see(picture: Picture, entry: Entry) -> None:
    if entry.kind == INSTANT:
        picture.see(parse_events(entry.body["events"]))
    elif entry.kind == DECIDED:
        picture.decide(parse_decisions(entry.body["decisions"]))


def read_picture(file: Path) -> tuple[Picture, str]:
    """The run so far, and whether it is `running`, `complete` or `stopped`."""
    picture, phase = None, "stopped"
    for entry in read_journal(file):
        if entry.kind == BEGAN:
            picture = Picture(parse_frame(entry.body))
        elif picture is None:
            break
        elif entry.kind == ENDED:
            phase = "complete"
        else:
            with taken_in(file, entry):
                _see(picture, entry)
    if picture is None:
        raise InputError(f"{file}: not the journal of a population; name the folder of a run")
    return picture, "running" if phase == "stopped" and has_owner(file) else phase
