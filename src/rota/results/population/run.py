"""A population under one allocation as a whole: written seed by seed, read by whoever compares or plots."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rota import __version__
from rota.core.atomic import alone_in, written
from rota.core.errors import InputError
from rota.core.population.events import Event
from rota.results.population.accuracy_log import logs_of, write_logs
from rota.results.population.folder import AGAIN, FORMAT, KIND, PopulationFolder
from rota.results.population.summary import Summary, from_record
from rota.results.population.text import markdown
from rota.results.population.timeline_file import read_events, write_events


@dataclass(frozen=True, slots=True)
class PopulationRun:
    """A complete run; its timelines are read when asked for."""

    folder: PopulationFolder
    summary: Summary
    command: str
    """What made it."""

    def events(self, seed: int = 0) -> list[Event]:
        return read_events(self.folder.timeline(seed))


def write_population(
    path: Path,
    summary: Summary,
    timelines: Mapping[int, Iterable[Event]],
    *,
    config: str,
    inputs: str,
    command: str,
) -> None:
    """Write everything about a run, given as seed → what happened; `summary.json` comes last."""
    folder = PopulationFolder(path)
    about = {"format": FORMAT, "kind": KIND, "rota": __version__, "inputs": inputs, "command": command}
    facts = json.dumps({**about, **summary.record()}, indent=2, allow_nan=False)
    with alone_in(path):
        folder.clear()
        for seed, events in timelines.items():
            with written(folder.timeline(seed)) as stream:
                write_events(stream, events)
            write_logs(folder.of_seed(seed), logs_of(events))
        texts = {folder.config: config, folder.text: markdown(summary), folder.summary: f"{facts}\n"}
        for file, text in texts.items():
            with written(file) as stream:
                stream.write(text.encode())


def read_population(path: Path) -> PopulationRun:
    """Read a complete run back."""
    folder = PopulationFolder(path)
    found = folder.read()
    try:
        return PopulationRun(folder, from_record(found), found["command"])
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{folder.summary}: not the summary of a population ({error!r}); {AGAIN}") from None
