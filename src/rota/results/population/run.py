"""Runs of populations under one allocation: written seed by seed, and read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rota.config.bind import facts
from rota.core.files import atomic_write, folder_lock
from rota.core.population.events import Event
from rota.results.folder import AGAIN, PopulationFolder
from rota.results.parameters import Parameters
from rota.results.population.summary import PopulationSummary, markdown
from rota.results.population.timeline_file import Logs, read_events, write_event, write_logs


@dataclass(frozen=True, slots=True)
class PopulationRecord:
    """A complete run; its timelines are read on demand."""

    folder: PopulationFolder
    summary: PopulationSummary
    command: str
    """Command that made it."""
    kept: Mapping[int, Sequence[Event]] | None = None
    """Timeline by seed, of a run that is in memory."""
    parameters: Parameters = field(default_factory=dict)
    """Point of a grid that the run is at."""

    def events(self, seed: int = 0) -> list[Event]:
        """Return the timeline of a seed, read from the folder unless it is in memory."""
        if self.kept is not None:
            return list(self.kept[seed])
        return read_events(self.folder.timeline(seed), len(self.summary.slots))


@dataclass(frozen=True, slots=True)
class _SummaryFacts:
    command: str
    parameters: dict[str, object] = field(default_factory=dict)


class Writing:
    """A run that is being written: timelines first, its summary last."""

    def __init__(self, folder: PopulationFolder) -> None:
        self._folder = folder

    def passing(self, seed: int, events: Iterable[Event]) -> Iterator[Event]:
        """Yield events, and write them once all have passed."""
        logs = Logs()
        with atomic_write(self._folder.timeline(seed)) as stream:
            for event in events:
                write_event(stream, event)
                logs.see(event)
                yield event
        write_logs(self._folder.of_seed(seed), logs.by_trial())

    def sum_up(
        self,
        summary: PopulationSummary,
        *,
        config: str,
        inputs: str,
        command: str,
        parameters: Parameters | None = None,
    ) -> None:
        """Write the summary; with `summary.json` the run is complete."""
        folder = self._folder
        folder.write(folder.config, config)
        folder.write(folder.text, markdown(summary))
        folder.write_head(summary.record(), inputs=inputs, command=command, parameters=parameters)


@contextmanager
def writing(path: Path) -> Iterator[Writing]:
    """Write a run that replaces the one in a folder; other writers wait."""
    folder = PopulationFolder(path)
    with folder_lock(path):
        folder.clear()
        yield Writing(folder)


def write_population(
    path: Path,
    summary: PopulationSummary,
    timelines: Mapping[int, Iterable[Event]],
    *,
    config: str,
    inputs: str,
    command: str,
    parameters: Parameters | None = None,
) -> None:
    """Write a run, given as timelines by seed."""
    with writing(path) as run:
        for seed, events in timelines.items():
            for _ in run.passing(seed, events):
                pass
        run.sum_up(summary, config=config, inputs=inputs, command=command, parameters=parameters)


def read_population(path: Path) -> PopulationRecord:
    """Read a complete run."""
    folder = PopulationFolder(path)
    found = folder.read_head()
    summary = facts(PopulationSummary, found, folder.head, AGAIN, others=True)
    made = facts(_SummaryFacts, found, folder.head, AGAIN, others=True)
    return PopulationRecord(folder, summary, made.command, parameters=made.parameters)
