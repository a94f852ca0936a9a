"""The timeline of a population as a file, and the logs of its trials."""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple, get_args, get_type_hints

from rota.config.bind import facts
from rota.core.errors import InputError
from rota.core.files import LARGEST, parsed
from rota.core.population.events import Event, Hyper, Reported, name_in_files
from rota.results.folder import AGAIN

KINDS: dict[str, Any] = {name_in_files(kind): kind for kind in get_args(Event)}
ENCODE = json.JSONEncoder(allow_nan=False).encode


def write_event(stream: IO[bytes], event: Event) -> None:
    """Write an event; numbers are read back exactly, and what was not measured is null."""
    stream.write(f"{ENCODE(_record(event))}\n".encode())


def read_events(path: Path, slots: int | None = None) -> list[Event]:
    """Read a timeline. Raises InputError if it names other slots than there are."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error}); {AGAIN}") from None
    events = [_parsed(line, f"{path}: line {number}") for number, line in enumerate(lines, start=1)]
    for number, event in enumerate(events, start=1):
        if slots is not None and getattr(event, "slot", 0) >= slots:
            raise InputError(f"{path}: line {number}: slot {getattr(event, 'slot', 0)} of {slots}; {AGAIN}")
    return events


def _parsed(line: str, where: str) -> Event:
    try:
        return _event(parsed(line))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{where}: not an event of a population ({error!r}); {AGAIN}") from None


def _record(event: Event) -> dict[str, object]:
    fields: dict[str, Any] = event._asdict()
    if not fields.get("ended", True):  # as it mostly is
        del fields["ended"]
    return {"event": name_in_files(type(event)), **{name: _plain(value) for name, value in fields.items()}}


def _plain(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return None
    return dict(value) if hasattr(value, "items") else value


def _event(record: dict[str, Any]) -> Event:
    kind = KINDS[record.pop("event")]
    if record.get("metric", 0.0) is None:
        record["metric"] = math.nan
    if "changes" in record:
        record["changes"] = tuple(record["changes"])
    event: Event = kind(**record)
    return checked(event)


def checked(event: Event) -> Event:
    """Return the event. Raises ValueError if one of its values is impossible."""
    checks = SOUND[type(event)]
    for name, value in zip(event._fields, event, strict=True):
        if not checks[name](value):
            raise ValueError(f"{name} cannot be {str(value)[:60]!r}")
    return event


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= LARGEST


def _is_measured(value: Any) -> bool:
    return type(value) in (int, float) and not abs(value) > LARGEST


def _is_time(value: Any) -> bool:
    return _is_measured(value) and bool(value >= 0.0)


def _are_changes(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(each, str) for each in value)


def _is_hyper(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(each, int | float | str) for each in value.values())


CHECKS: dict[Any, Callable[[Any], bool]] = {
    int: _is_count,
    float: _is_time,
    str: lambda value: isinstance(value, str),
    bool: lambda value: isinstance(value, bool),
    Hyper: _is_hyper,
    tuple[str, ...]: _are_changes,
}
SOUND: dict[Any, dict[str, Callable[[Any], bool]]] = {
    kind: {name: CHECKS[of] for name, of in get_type_hints(kind).items()} | {"metric": _is_measured}
    for kind in KINDS.values()
}
"""Check of each field of each event; there are too many events to bind each as a table of settings."""


class Logged(NamedTuple):
    """A line of a trial's log."""

    iteration: int
    """Steps of the trial so far."""
    accuracy: float


class Logs:
    """Logs of metrics by trial, collected event by event; a clone keeps counting its own steps."""

    def __init__(self) -> None:
        self._steps: dict[int, int] = {}
        self._logs: dict[int, list[Logged]] = {}

    def see(self, event: Event) -> None:
        """Count an event."""
        if isinstance(event, Reported):
            steps = self._steps[event.trial] = self._steps.get(event.trial, 0) + event.steps
            if not math.isnan(event.metric):
                self._logs.setdefault(event.trial, []).append(Logged(steps, event.metric))

    def by_trial(self) -> dict[int, list[Logged]]:
        """Return the logs of the trials that were measured, by number."""
        return dict(sorted(self._logs.items()))


def write_logs(folder: Path, logs: Mapping[int, Iterable[Logged]]) -> None:
    """Write a file per trial; there may be thousands, and none is read before the run is complete."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for trial, lines in logs.items():
            text = "".join(f"{json.dumps(line._asdict())}\n" for line in lines)
            log_file(folder, trial).write_text(text, "utf-8")
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror}); choose another folder") from None


def read_log(folder: Path, trial: int) -> list[Logged]:
    """Read the log of a trial."""
    path = log_file(folder, trial)
    try:
        found = [parsed(line) for line in path.read_text("utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not the log of a trial ({error}); {AGAIN}") from None
    return [facts(Logged, line, path, AGAIN) for line in found]


def log_file(folder: Path, trial: int) -> Path:
    """Return the file with the log of a trial."""
    return folder / f"{trial}-accuracy.json"
