"""A population that was trained, simulated or real: trials, timeline and metrics, as frames and figures."""

import os
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from rota.core.errors import InputError
from rota.core.intervals import mean_interval
from rota.library import frames as frames
from rota.library.run import html_of
from rota.results.folder import PopulationFolder
from rota.results.population.repetition import Repetition
from rota.results.population.run import PopulationRecord as Record
from rota.results.population.run import read_population, write_population
from rota.results.population.summary import PopulationSummary, comparison

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

METRICS = (
    "makespan_s", "lower_bound_s", "decisions", "wall_s", "finished", "stopped", "clones", "retired",
    "to_target_s",
)  # fmt: skip
"""Numbers of a repetition that are columns."""


class PopulationRun:
    """A population under one allocation and one evolution, with one seed or several.

    `rota.simulate_population` makes it, `rota.load` reads it back from the folder to which `save` wrote it.

    >>> import rota
    >>> run = rota.simulate_population(None, [2.0, 1.0], allocation="finish", trials=4, steps=100, seeds=2)
    >>> run
    PopulationRun('finish', 4 trials × 100 steps on 2 slots, 2 seeds)
    >>> run.metrics.finished, len(run.trials), sorted(run.trials["status"].unique())
    (4, 8, ['finished'])
    """

    def __init__(self, record: Record, config: str = "", inputs: str = "") -> None:
        self.record = record
        """What figures and reports read."""
        self.config, self._inputs = config, inputs
        """The configuration of the run, as TOML, and the digest of all that it follows from."""

    @property
    def allocation(self) -> str:
        """The name of the allocation."""
        return self.summary.allocation

    @property
    def evolution(self) -> str:
        """The name of the evolution."""
        return self.summary.evolution

    @property
    def summary(self) -> PopulationSummary:
        """The trials and slots, and means over the seeds."""
        return self.record.summary

    @property
    def metrics(self) -> Repetition:
        """The metrics of the run with the first seed."""
        first = self.summary.repetitions[0]
        best, final = self._signed(first.best_accuracy), self._signed(first.final_accuracy)
        return replace(first, best_accuracy=best, final_accuracy=final)

    @property
    def seeds(self) -> list[int]:
        """The seed of each repetition."""
        return [each.seed for each in self.summary.repetitions]

    def to_frame(self) -> "pd.DataFrame":
        """Return a row per seed: allocation, evolution, and every metric; times in seconds."""
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "allocation": self.allocation,
                    "evolution": self.evolution,
                    "seed": each.seed,
                    **{name: getattr(each, name) for name in METRICS},
                    "best_metric": self._signed(each.best_accuracy),
                    "final_metric": self._signed(each.final_accuracy),
                    "ratio": each.makespan_s / each.lower_bound_s,
                }
                for each in self.summary.repetitions
            ]
        )

    def _signed(self, metric: float | None) -> float | None:
        return None if metric is None else self.summary.sign * metric

    def intervals(self) -> "pd.DataFrame":
        """Return a row per metric: its mean over the seeds, and the ends of its 95 % interval.

        By Student's t; NaN with a single seed, and where nothing was measured.
        """
        import pandas as pd

        frame = self.to_frame().drop(columns=["allocation", "evolution", "seed"]).astype(float)
        rows = {name: mean_interval(column.dropna().tolist()) for name, column in frame.items()}
        return pd.DataFrame.from_dict(rows, orient="index", columns=["mean", "low", "high"])

    @cached_property
    def trials(self) -> "pd.DataFrame":
        """A row per seed and trial: how far it came, how good it is, and with which hyper-parameters."""
        return frames.trials_frame(self._by_seed())

    @cached_property
    def timeline(self) -> "pd.DataFrame":
        """A row per event: `seed`, `at_s`, `event`, `trial`, `slot`, `node`, `steps`, `metric`, `donor`."""
        return frames.population_timeline_frame(self._by_seed())

    def _by_seed(self) -> list[frames.SeedEvents]:
        slots, sign = [slot.node for slot in self.summary.slots], self.summary.sign
        return [
            frames.SeedEvents(each, self.record.events(each.seed), slots, sign)
            for each in self.summary.repetitions
        ]

    def plot(self, name: str, file: str | os.PathLike[str] | None = None) -> "Figure":
        """Draw a figure: `gantt`, `accuracy`, `idle` or `ratio`; with `file`, also write it there.

        The format follows from the name of the file: .png, .svg or .pdf.
        """
        from rota.library.pages import draw

        return draw([self.record], name, file)

    def report(self, file: str | os.PathLike[str], *, title: str = "") -> Path:
        """Write a page in HTML that shows the run, and return where it is."""
        from rota.library.pages import write_report

        return write_report([self.record], Path(file), title)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the run to a folder, which must not hold another one, and return the folder.

        `rota.load` reads it back without any difference, and `rota plot` and `rota report` show it.
        """
        path = Path(folder)
        found = PopulationFolder(path)
        if found.begun and not found.complete(self._inputs):
            raise InputError(f"{path}: holds another run; choose another folder, or delete it")
        timelines = {seed: self.record.events(seed) for seed in self.seeds}
        write_population(
            path, self.summary, timelines,
            config=self.config, inputs=self._inputs, command=self.record.command,
            parameters=self.record.parameters,
        )  # fmt: skip
        return path

    def __repr__(self) -> str:
        seeds = "" if len(self.seeds) == 1 else f", {len(self.seeds)} seeds"
        where = f"{self.summary.population} on {len(self.summary.slots)} slots"
        return f"PopulationRun({self.allocation!r}, {where}{seeds})"

    def __str__(self) -> str:
        return comparison([("", self.summary)])

    def _repr_html_(self) -> str:
        return html_of(self.summary.population, str(self))


def load_population(folder: Path) -> PopulationRun:
    """Read a population back from its folder."""
    record = read_population(folder)
    try:
        config = record.folder.config.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"{record.folder.config}: cannot be read ({error}); make the run again") from None
    return PopulationRun(record, config, str(record.folder.read_head()["inputs"]))
