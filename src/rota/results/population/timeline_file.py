"""The timeline of a population as JSON Lines: an event per line, by name, with its fields."""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, get_args

from rota.core.errors import InputError
from rota.core.population.events import Event
from rota.results.population.folder import AGAIN

KINDS: dict[str, Any] = {kind.__name__: kind for kind in get_args(Event)}


def write_events(stream: IO[bytes], events: Iterable[Event]) -> None:
    """Numbers are written so that they are read back exactly; what was not measured is null."""
    for event in events:
        stream.write(f"{json.dumps(_record(event), allow_nan=False)}\n".encode())


def read_events(path: Path) -> list[Event]:
    """What was written."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error}); {AGAIN}") from None
    return [_parsed(line, f"{path}: line {number}") for number, line in enumerate(lines, start=1)]


def _parsed(line: str, where: str) -> Event:
    try:
        return _event(json.loads(line))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{where}: not an event of a population ({error!r}); {AGAIN}") from None


def _record(event: Event) -> dict[str, object]:
    fields: dict[str, Any] = event._asdict()
    return {"event": type(event).__name__, **{name: _plain(value) for name, value in fields.items()}}


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
    return event
