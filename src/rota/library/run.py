"""A run that is over: its jobs, cluster, timeline and metrics, as frames, figures, a page and a folder."""

import html
import os
import tomllib
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rota.core.cluster import Cluster
from rota.core.errors import InputError
from rota.library import frames
from rota.results.folder import PopulationFolder, RunFolder
from rota.results.metrics import Metrics, MetricsRow, table
from rota.results.parameters import Parameters
from rota.results.run import RunRecord as Record
from rota.results.run import read_run, write_run

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from rota.library.population_run import PopulationRun


class Run:
    """A complete run of one scheduler.

    `rota.simulate` makes it, `rota.load` reads it back from the folder to which `save` wrote it.

    >>> import rota
    >>> jobs = rota.synthetic_trace(jobs=50, gpus=16, seed=1)
    >>> run = rota.simulate(jobs, rota.Cluster.uniform(nodes=2, gpus=8), "srtf")
    >>> run
    Run('srtf', 50 jobs on 16 GPUs)
    >>> run.metrics.jobs, len(run.jobs), bool(run.jobs["jct_s"].mean() == run.metrics.avg_jct_s)
    (50, 50, True)
    >>> int((run.timeline["event"] == "finished").sum())
    50
    >>> bool(0.0 <= run.series("utilisation").max() <= 1.0)
    True
    """

    def __init__(self, record: Record, config: str = "") -> None:
        self.record = record
        """What figures and reports read."""
        self.config = config
        """The configuration of the run, as TOML."""

    @property
    def scheduler(self) -> str:
        """The name of the scheduler."""
        return self.record.scheduler

    @property
    def cluster(self) -> Cluster:
        """The cluster that the jobs ran on."""
        return self.record.cluster

    @property
    def metrics(self) -> Metrics:
        """The metrics of the run: a dozen numbers."""
        return self.record.metrics

    @property
    def knows(self) -> str:
        """What the scheduler knew of durations: exact, none, noisy or predicted."""
        return self.record.knows

    @property
    def parameters(self) -> Parameters:
        """The parameters of the run in its grid, by dotted key; empty without a grid."""
        return self.record.parameters

    @property
    def wall_s(self) -> float:
        """Seconds that the simulation took."""
        return self.record.wall_s

    @cached_property
    def jobs(self) -> "pd.DataFrame":
        """A row per job: what it was and what became of it, in seconds; the index is the id of the job."""
        return frames.jobs_frame(self.record.jobs, self.record.times)

    @cached_property
    def timeline(self) -> "pd.DataFrame":
        """A row per event: `at_s`, `event`, `job`, `node`, `iteration_s`, `remaining`, `slots`."""
        return frames.timeline_frame(self.record.timeline(), self.record.jobs)

    @cached_property
    def _series(self) -> "pd.DataFrame":
        return frames.series_frame(self.record.series())

    def series(self, name: str) -> "pd.Series[float]":
        """Return something over time: `utilisation`, `waiting`, `running`, `busy` or `available`.

        The index is in seconds on the clock of the trace; each value holds until the next. The last three
        count jobs and slots.
        """
        frames.check_series(name)
        found: pd.Series[float] = self._series[name]
        return found

    def plot(
        self,
        name: str,
        file: str | os.PathLike[str] | None = None,
        *,
        window_s: tuple[float, float] | None = None,
    ) -> "Figure":
        """Draw a figure: `gantt`, `jct`, `load` or `comparison`; with `file`, also write it there.

        The format follows from the name of the file: .png, .svg or .pdf. `window_s` is what a Gantt chart
        shows, in seconds after the first submit.
        """
        from rota.library.pages import draw

        return draw([self.record], name, file, window_s)

    def report(self, file: str | os.PathLike[str], *, title: str = "") -> Path:
        """Write a page in HTML that shows the run, and return where it is."""
        from rota.library.pages import write_report

        return write_report([self.record], Path(file), title)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the run to a folder, which must not hold another one, and return the folder.

        `rota.load` reads it back without any difference, and `rota plot` and `rota report` show it.
        """
        path, record = Path(folder), self.record
        found = RunFolder(path)
        if found.begun and not found.complete(record.inputs):
            raise InputError(f"{path}: holds another run; choose another folder, or delete it")
        self.write(path)
        return path

    def write(self, folder: Path) -> None:
        """Write the run to a folder, whatever run is there."""
        record = self.record
        write_run(
            folder, scheduler=record.scheduler, workload=record.jobs, cluster=record.cluster,
            timeline=record.timeline(), config_text=self.config, inputs=record.inputs, wall_s=record.wall_s,
            command=record.command, parameters=record.parameters, knows=record.knows,
        )  # fmt: skip

    def described(self, *, config: str, inputs: str, command: str, parameters: Parameters) -> "Run":
        """Return the same run with what it was made from and by."""
        return Run(replace(self.record, inputs=inputs, command=command, parameters=parameters), config)

    def at_point(self, parameters: Parameters) -> "Run":
        """Return the same run with what tells it from others of its scheduler."""
        return Run(replace(self.record, parameters=parameters), self.config)

    def __repr__(self) -> str:
        gpus = self.cluster.slots // self.cluster.slots_per_gpu
        return f"Run({self.scheduler!r}, {len(self.record.jobs):,} jobs on {gpus:,} GPUs)"

    def __str__(self) -> str:
        return table([self.line])

    @property
    def line(self) -> MetricsRow:
        """The row of the run in a table."""
        return MetricsRow(
            self.scheduler, self.metrics, self.wall_s, self.knows if self._says_durations else ""
        )

    @property
    def _says_durations(self) -> bool:
        """Whether the configuration says what schedulers know of durations."""
        return "durations" in tomllib.loads(self.config)

    def row(self) -> dict[str, Any]:
        """Return its name and metrics, as a row of a table."""
        return {
            "scheduler": self.scheduler,
            "knows": self.knows,
            **asdict(self.metrics),
            "wall_s": self.wall_s,
        }

    def _repr_html_(self) -> str:
        return html_table(self.record.jobs.name, [self])


def html_table(title: str, runs: list[Run]) -> str:
    """Return runs as a table for a notebook, in the units of the text table."""
    return html_of(title, table([run.line for run in runs]))


def html_of(title: str, text: str) -> str:
    """Return a table of text, whose columns have three spaces between them, as one for a notebook."""
    rows = [
        [html.escape(cell.strip()) for cell in line.split("   ") if cell.strip()]
        for line in text.splitlines()
    ]
    head = "".join(f"<th>{cell}</th>" for cell in rows[0])
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows[1:])
    return f"<p>{html.escape(title)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def load(folder: str | os.PathLike[str]) -> "Run | PopulationRun":
    """Read a run back from its folder: one that was saved, or made by `rota simulate --out` or `rota run`.

    Return a `rota.Run` of jobs, or a `rota.PopulationRun` of trials.

    >>> from tempfile import TemporaryDirectory
    >>> import rota
    >>> run = rota.simulate(rota.synthetic_trace(jobs=20, gpus=8), rota.Cluster.uniform(1, 8), "fifo")
    >>> with TemporaryDirectory() as folder:
    ...     again = rota.load(run.save(f"{folder}/fifo"))
    ...     again.metrics == run.metrics and again.timeline.equals(run.timeline)
    True
    """
    if PopulationFolder(Path(folder)).complete():
        from rota.library.population_run import load_population

        return load_population(Path(folder))
    _check_folder(Path(folder))
    record = read_run(Path(folder))
    try:
        config = record.folder.config.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"{record.folder.config}: cannot be read ({error}); make the run again") from None
    return Run(record, config)


def _check_folder(folder: Path) -> None:
    """Raise an error that says so if there is no folder, or a run in it that was not finished."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give one that a run was saved to")
    if (folder / "runs").is_dir() and not RunFolder(folder).complete():
        raise InputError(f"{folder}: the run in it was not finished; go on with rota run --resume {folder}")
