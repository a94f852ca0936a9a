"""How a run is doing, from its journal alone; whoever owns it is not disturbed."""

from pathlib import Path

from rota.core.errors import InputError
from rota.execution.controller import BEGAN, ENDED
from rota.execution.entries import DECIDED, INSTANT, parse_decisions, parse_events
from rota.execution.journal import has_owner, read_journal
from rota.execution.picture import Picture, parse_frame


def read_picture(file: Path) -> tuple[Picture, str]:
    """The run so far, and whether it is `running`, `complete` or `stopped`."""
    picture, phase = None, "stopped"
    for entry in read_journal(file):
        if entry.kind == BEGAN:
            picture = Picture(parse_frame(entry.body))
        elif picture is None:
            break
        elif entry.kind == INSTANT:
            picture.see(parse_events(entry.body["events"]))
        elif entry.kind == DECIDED:
            picture.decide(parse_decisions(entry.body["decisions"]))
        elif entry.kind == ENDED:
            phase = "complete"
    if picture is None:
        raise InputError(f"{file}: not the journal of a population; name the folder of a run")
    return picture, "running" if phase == "stopped" and has_owner(file) else phase
