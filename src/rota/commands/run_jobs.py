"""Jobs for real, in the folder of the run: begun, resumed, and written as a rehearsal is."""

import argparse
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rota.commands.run_jobs_config import JobsOrdered, ordered_jobs
from rota.commands.typed import typed
from rota.config.load import override, read
from rota.core.atomic import written
from rota.core.errors import ConfigError
from rota.execution.engine import Assignment
from rota.execution.folder import RealFolder
from rota.execution.jobs.control import JobsOutcome, Watch, control_jobs
from rota.replay.simulate import warm_up
from rota.results.metrics import Metrics, measure
from rota.results.run import write_run
from rota.results.table import Line

ONLY = 0
"""There is one repetition: a trace is run as it is."""


@dataclass(frozen=True, slots=True)
class JobsRun:
    """A run in its folder."""

    folder: RealFolder
    order: JobsOrdered
    anew: bool = False
    """Whether checkpoints are made again if none is left."""

    def carry_out(self, asked_to_stop: Callable[[], bool], watch: Watch) -> JobsOutcome:
        order, books = self.order, self.folder.books(ONLY)
        warm_up(order.policy)  # compiling is not the run's business
        assignment = Assignment(order.config.site, order.kinds, order.config.seed, books)
        outcome = control_jobs(
            order.venture(),
            order.scheduler,
            order.policy,
            lambda: order.config.engine.workers(order.fleet, assignment),
            books,
            asked_to_stop=asked_to_stop,
            watch=watch,
            anew=self.anew,
        )
        if outcome.complete:
            self._write(outcome)
        return outcome

    def metrics(self, outcome: JobsOutcome) -> Metrics:
        """As of a rehearsal."""
        return measure(outcome.timeline, self.order.jobs, self.order.cluster).metrics

    def line(self, outcome: JobsOutcome) -> Line:
        """What the table says of it."""
        return Line(self.order.scheduler, self.metrics(outcome), outcome.wall_s)

    def record(self, outcome: JobsOutcome) -> dict[str, Any]:
        """Plain values."""
        found = {"complete": outcome.complete, **outcome.board.record()}
        return found | {"metrics": asdict(self.metrics(outcome))} if outcome.complete else found

    def _write(self, outcome: JobsOutcome) -> None:
        """What a rehearsal writes, so that whatever is made of a rehearsal can be made of this."""
        text = self.folder.config.read_text("utf-8")  # as it was begun, wherever it has gone on
        write_run(
            self.folder.path,
            scheduler=self.order.scheduler,
            workload=self.order.jobs,
            cluster=self.order.cluster,
            timeline=outcome.timeline,
            config_text=text,
            inputs=hashlib.sha256(text.encode()).hexdigest(),
            wall_s=outcome.wall_s,
            command=typed(),
        )
        with written(self.folder.result) as stream:
            stream.write(json.dumps(self.record(outcome), indent=2, allow_nan=False).encode() + b"\n")


def begin_jobs(args: argparse.Namespace, settings: Sequence[str]) -> JobsRun:
    """A new run in a folder where there is none, for the eyes of its owner only."""
    if args.repeat is not None:
        raise ConfigError("--repeat: is for populations; a trace of jobs is run once")
    order = ordered_jobs(override(read(args.config), settings), args.config, settings)
    order.config.engine.check()
    folder = RealFolder(args.out)
    folder.begin(order.text())
    return JobsRun(folder, replace(order, digest=folder.digest()))


def resume_jobs(path: Path, settings: Sequence[str], *, anew: bool = False) -> JobsRun:
    """The run in a folder, as it was asked for, but for settings of where it runs."""
    folder = RealFolder(path)
    table = {"placement": {"types": "blind"}, **folder.table()}  # which runs of before did not say
    order = ordered_jobs(override(table, settings), folder.config, settings)
    return JobsRun(folder, replace(order, digest=folder.digest()), anew)
