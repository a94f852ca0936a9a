"""Runs that are drawn together, and the figures of them."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from rota.core.cluster import Cluster
from rota.core.errors import InputError, unknown
from rota.core.grouped import grouped
from rota.figures.page import PEN, SCHEDULERS, Pen, footer, in_palette
from rota.results.jobs import JobColumns
from rota.results.parameters import Labels, constant, varying
from rota.results.run import RunRecord


class DrawnRun(NamedTuple):
    """A run with its label in figures."""

    label: str
    """Scheduler, with more if several runs have the same."""
    twin: int
    """0 for the first run of its scheduler, 1 for the second, …"""
    run: RunRecord

    @property
    def file_name(self) -> str:
        """The label as part of a file name."""
        return re.sub(r"[^\w.-]+", "-", self.label).strip("-")


@dataclass(frozen=True, slots=True)
class RunGroup:
    """Runs that can be compared."""

    name: str
    """Name in files."""
    title: str
    """Title in figures."""
    runs: tuple[DrawnRun, ...]

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that made the runs."""
        return tuple(dict.fromkeys(drawn.run.command for drawn in self.runs))

    def find(self, name: str | None) -> DrawnRun:
        """Return the run of this label or scheduler; without a name srtf, or else the first."""
        named = {c.run.scheduler: c for c in reversed(self.runs)} | {c.label: c for c in self.runs}
        if name is None:
            return named.get("srtf", self.runs[0])
        if name not in named:
            raise InputError(f"{self.title}: {unknown('scheduler', name, named)}")
        return named[name]


def groups(runs: Iterable[RunRecord]) -> list[RunGroup]:
    """Return groups of comparable runs, each in the order of the colours.

    Parameters of a grid that all runs of a group share are in its name, the others in those of its runs.
    """
    by_digest = grouped((_digest(run.jobs, run.cluster), run) for run in runs)
    labels = Labels(run.parameters for members in by_digest.values() for run in members)
    names: dict[str, int] = {}
    found = []
    for members in by_digest.values():
        first = members[0]
        shared = constant([run.parameters for run in members], labels.keys)
        name = "-".join(filter(None, [_slug(first), labels.file_name(first.parameters, shared)]))
        names[name] = names.get(name, 0) + 1
        if names[name] > 1:
            name += f"-{names[name]}"
        title = ", ".join(filter(None, [_title(first), labels.text(first.parameters, shared)]))
        found.append(RunGroup(name, title, _drawn_runs(members, labels)))
    return found


def _drawn_runs(runs: list[RunRecord], labels: Labels) -> tuple[DrawnRun, ...]:
    order = in_palette((run.scheduler for run in runs), SCHEDULERS)
    ordered = sorted(runs, key=lambda run: order.index(run.scheduler))
    seen: dict[str, int] = {}
    found = []
    for run in ordered:
        twin = seen[run.scheduler] = seen.get(run.scheduler, -1) + 1
        twins = [other for other in runs if other.scheduler == run.scheduler]
        found.append(DrawnRun(_label(run, twins, labels), twin, run))
    return tuple(found)


def _label(run: RunRecord, twins: list[RunRecord], labels: Labels) -> str:
    """Return the scheduler, with the parameters that differ from its twins, or else with its folder."""
    if len(twins) == 1:
        return run.scheduler
    keys = varying(twin.parameters for twin in twins)
    texts = [labels.text(twin.parameters, keys) for twin in twins]
    alike = len(set(texts)) < len(twins) or "" in texts
    return _long_label(run, twins) if alike else f"{run.scheduler} {labels.text(run.parameters, keys)}"


def _long_label(run: RunRecord, twins: list[RunRecord]) -> str:
    """Return the scheduler, and the part of its folder that differs from the folders of its twins."""
    others = [other.folder.path.absolute().parts for other in twins]
    parts = run.folder.path.absolute().parts
    own = [part for i, part in enumerate(parts) if any(other[i : i + 1] != (part,) for other in others)]
    return f"{run.scheduler} ({Path(*own)})"


def _digest(jobs: JobColumns, cluster: Cluster) -> str:
    digest = hashlib.sha256(repr((jobs.name, jobs.ids, cluster)).encode())
    for column in (jobs.submit_s, jobs.gpus, jobs.iterations, jobs.iteration_s):
        digest.update(column.tobytes())
    return digest.hexdigest()


def _slug(run: RunRecord) -> str:
    words = f"{run.jobs.name} {len(run.jobs)} jobs {_gpus(run.cluster)} gpus"
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def _title(run: RunRecord) -> str:
    return f"{run.jobs.name}: {len(run.jobs):,} jobs on {_gpus(run.cluster):,} GPUs"


def _gpus(cluster: Cluster) -> int:
    return cluster.slots // cluster.slots_per_gpu


class Options(NamedTuple):
    """Options of the user."""

    command: str
    """Command that draws the figure."""
    normalise_to: str | None = None
    """Scheduler that the others are compared with."""
    window_s: tuple[float, float] | None = None
    """Window of the Gantt charts, in seconds since the first submit."""
    quick: bool = False
    """Draw only one Gantt chart per group."""
    pen: Pen = PEN
    """How figures are written."""

    def footer(self, group: RunGroup) -> tuple[str, ...]:
        """Return the footer of a figure of a group."""
        return footer(self.command, group.commands)


class DrawnFigure(NamedTuple):
    """A figure and the name of its file."""

    name: str
    figure: Figure
