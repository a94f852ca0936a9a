"""The best checkpoint of a run, found from its journal."""

from pathlib import Path

from rota.core.errors import InputError
from rota.core.population.fleet import Fleet, Slot
from rota.execution.beginning import BEGAN
from rota.execution.checkpoints import Damaged, Kept
from rota.execution.entries import DECIDED, INSTANT, parse_decisions, parse_events
from rota.execution.folder import Books
from rota.execution.journal import read_journal
from rota.execution.ledger import Ledger
from rota.execution.orders import Made
from rota.execution.picture import parse_frame
from rota.execution.reading import taken_in


def best_checkpoint(journal: Path) -> Made:
    """Return the checkpoint of the best report, the first of equals.

    Raises InputError if no trial has reported a number.
    """
    ledger = None
    for entry in read_journal(journal):
        if entry.kind == BEGAN:
            frame = parse_frame(entry.body)
            fleet = Fleet(tuple(Slot(node) for node in frame.slots), tuple(frame.nodes))
            ledger = Ledger(frame.run, fleet, frame.hypers, frame.terms.target)
        elif ledger is not None:
            with taken_in(journal, entry):
                if entry.kind == INSTANT:
                    ledger.note(parse_events(entry.body["events"]))
                elif entry.kind == DECIDED:
                    ledger.take(parse_decisions(entry.body["decisions"]))
    if ledger is None or ledger.best is None:
        raise InputError(f"{journal}: no trial has reported how good it is, so none is best")
    return ledger.best


def read_best(books: Books) -> Kept:
    """Return what is in the best checkpoint of a run; an error if it cannot be read."""
    try:
        return books.checkpoints.read(best_checkpoint(books.journal))
    except Damaged as error:
        raise InputError(f"{error}; bring it back, or train it again: rota run --replay DIR") from None
