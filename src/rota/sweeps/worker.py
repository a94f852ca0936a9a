"""The process of a trial: `python -m rota.sweeps.worker`, with its assignment on standard input."""

import os
import sys
import traceback
from pathlib import Path
from typing import Any

from rota.core.errors import InputError
from rota.sweeps.inside import Connection, connect, rank
from rota.sweeps.parcel import Parcel, Printed, from_plain, read, things_of
from rota.sweeps.trial import TrialPruned


def main() -> int:
    """Carry out the assignment; return 0 if the trial was completed."""
    connection = Connection(os.dup(0), os.dup(1))
    assignment = connection.hear()
    connection.end_with_sweep()
    _turn_output_to(Path(assignment["output"]))
    sys.path[:] = assignment["path"]
    connect(connection)
    ended = _train(assignment)
    sys.stdout.flush()
    sys.stderr.flush()
    if rank() == 0:
        connection.say(ended)
    return int(ended["ended"] != "completed")


def _turn_output_to(file: Path) -> None:
    """Redirect output to a file, one for each rank: the pipes are for messages alone."""
    if rank() != 0:
        file = file.with_suffix(f".{rank()}{file.suffix}")
    output = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.close(nothing)


def _train(assignment: dict[str, Any]) -> dict[str, Any]:
    try:
        parcel = read(Path(assignment["train"]), assignment["sha256"])
        parcel.train(_cfg(assignment["cfg"], parcel))
    except TrialPruned:
        return {"ended": "pruned", "failure": None}
    except SystemExit as error:
        if not error.code:
            return {"ended": "completed", "failure": None}
        return _failed()
    except BaseException:
        return _failed()
    return {"ended": "completed", "failure": None}


def _cfg(plain: Any, parcel: Parcel) -> Any:
    """Return the configuration of the trial; raise InputError if an object in it is missing."""
    cfg = from_plain(plain, parcel.things)
    absent = [thing for thing in things_of(cfg) if isinstance(thing, Printed)]
    if absent:
        raise InputError(
            f"{absent[0]} was in the configuration when this trial was drawn, and is not now; put it back"
        )
    return cfg


def _failed() -> dict[str, Any]:
    text = traceback.format_exc()
    sys.stderr.write(text)
    return {"ended": "failed", "failure": text}


if __name__ == "__main__":
    sys.exit(main())
