"""Record curves: train one network at each point of a grid of hyper-parameters, interval by interval.

Seconds are steps × the seconds per step that were measured for each batch size: alone, in turns, before the
first setting; or side by side, in several sittings between settings.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from rota.core.workers import carry_out
from rota.recordings.curve import Curves, Interval, Setting, write_curves
from rota.recordings.provenance import provenance
from rota.training.clock import StoppedClock
from rota.training.device import description, device
from rota.training.epoch import Length
from rota.training.hyper import Hyperparameters
from rota.training.recorder.beside import Beside, PartSeconds, mean
from rota.training.recorder.curve_config import CurvesConfig
from rota.training.recorder.pace import measure, step
from rota.training.recorder.partial import Partial, as_asked, recorded
from rota.training.recorder.progress import Progress
from rota.training.setup import LIBRARIES
from rota.training.trainer import Trainer

BESIDES = ("load_s", "evaluate_s", "save_s")
"""What a report costs besides its steps: taking a checkpoint up, evaluating, keeping a checkpoint."""
SITTINGS = 5
"""In which parts are measured side by side, the first before any setting, the last after all of them: a
machine that others share is faster in one minute than in the next."""


@dataclass(frozen=True, slots=True)
class CurvesRecorder:
    """Records curves into `out/curves`."""

    out: Path
    config: CurvesConfig
    workers: int
    command: str

    @property
    def folder(self) -> Path:
        return self.out / "curves" / self.config.name

    @property
    def partial(self) -> Partial:
        return Partial(self.out, f"curves-{self.config.name}")

    def record(self, progress: Progress) -> Iterator[Path]:
        """Record what is missing; gives the folder when all of it is there."""
        asked = as_asked(asdict(self.config))
        with self.partial.alone():
            if not recorded(self.folder, asked):
                self._check()
                self.partial.claim(asked)
                self._train(progress)
                self._write(asked)
                yield self.folder
            self.partial.remove()

    def _check(self) -> None:
        """The data must be there, and batches of each size possible, before anything is begun."""
        for trainer in self._trainers():
            step(trainer)

    def _train(self, progress: Progress) -> None:
        """What is still open; and seconds are measured."""
        open_ = [name for name in self.config.settings() if self.partial.get(name) is None]
        self._measure(progress)
        steps = self.config.steps * self.config.intervals
        sizes = {name: hyper.batch_size for name, hyper in self.config.settings().items()}
        each_s = {name: steps * self._part_seconds()[size].step_s for name, size in sizes.items()}
        progress.expect(sum(each_s[name] for name in open_))
        for group in _groups(open_, SITTINGS - 1 if self.config.beside else 1):
            progress.say(self.config.name)
            work = partial(train, self.config, self.partial)
            for name in carry_out(work, group, lambda _: (), min(self.workers, len(group))):
                progress.advance(each_s[name])
            self._measure(progress)

    def _measure(self, progress: Progress) -> None:
        """Alone it is done once: turns are short, so that what else the machine does is the same for all."""
        sittings = self.partial.get("sittings") or []
        if not sittings or self.config.beside:
            progress.say(f"{self.config.name}: seconds per step")
            self.partial.put("sittings", [*sittings, self._sitting()])

    def _sitting(self) -> list[tuple[int, list[PartSeconds]]]:
        """Batch size, and what was measured at it."""
        config = self.config
        if config.beside:
            sizes = tuple(sorted({hyper.batch_size for hyper in config.settings().values()}))
            parts = Beside(config.setup, sizes, config.steps, config.seed, config.beside).measure()
            return list(parts.items())
        paces = measure(list(self._trainers()), device(config.setup.device))
        return [(size, [PartSeconds(0.0, step_s, 0.0, 0.0)]) for (_, size), step_s in paces.items()]

    def _trainers(self) -> Iterator[Trainer]:
        """One for each batch size."""
        for size in sorted({hyper.batch_size for hyper in self.config.settings().values()}):
            setup = replace(self.config.setup, hyper=Hyperparameters(batch_size=size))
            yield setup.trainer(StoppedClock(), seed=self.config.seed)

    def _part_seconds(self) -> dict[int, PartSeconds]:
        """Batch size → means over all sittings so far."""
        found: dict[int, list[PartSeconds]] = {}
        for size, parts in (each for sitting in self.partial.get("sittings") or () for each in sitting):
            found.setdefault(size, []).extend(PartSeconds(*part) for part in parts)
        return {size: mean(parts) for size, parts in found.items()}

    def _write(self, asked: dict[str, Any]) -> None:
        config = self.config
        where = description(device(config.setup.device), config.setup.threads)
        hyper = tuple(config.grid)
        parts = self._part_seconds()
        settings, failed = {}, {}
        for name, values in config.settings().items():
            seconds = config.steps * parts[values.batch_size].step_s
            rows = self.partial.get(name) or ()
            intervals = [Interval(number, steps, seconds, metrics) for number, steps, metrics in rows]
            given = {key: getattr(values, key) for key in hyper}
            if intervals:
                settings[name] = Setting.of(name, given, where, config.seed, intervals)
            if len(intervals) < config.intervals:
                failed[name] = given
        curves = Curves(
            model=config.setup.model,
            data=config.setup.learns_from,
            hyper=hyper,
            intervals=config.intervals,
            settings=settings,
            provenance=provenance(device=where, seed=config.seed, command=self.command, libraries=LIBRARIES),
            planned=tuple(config.settings()),
            failed=failed,
            metrics=tuple(dict.fromkeys(name for each in settings.values() for name in each.metrics)),
            details=self._details(asked, parts),
        )
        write_curves(self.folder, curves)

    def _details(self, asked: dict[str, Any], parts: dict[int, PartSeconds]) -> dict[str, Any]:
        prints = {trainer.hyper.batch_size: trainer.structure.fingerprint for trainer in self._trainers()}
        paces = [[prints[size], size, part.step_s] for size, part in parts.items()]
        besides = mean(list(parts.values()))
        measured = {name: getattr(besides, name) for name in BESIDES}
        found = {"asked": asked, "seconds_per_step": paces}
        return {**found, "besides": measured} if self.config.beside else found


def _groups(names: list[str], count: int) -> list[list[str]]:
    """At most so many, about equally many in each; none is empty."""
    ends = [len(names) * number // count for number in range(count + 1)]
    return [names[start:end] for start, end in pairwise(ends) if start < end]


def train(config: CurvesConfig, kept: Partial, name: str) -> None:
    """Train one setting and keep how good it became; how long it takes is measured elsewhere.

    A setting that fails ends there: it has fewer intervals.
    """
    setup = replace(config.setup.at_once, hyper=config.settings()[name])
    trainer = setup.trainer(StoppedClock(), seed=config.seed, length=Length(steps=config.steps))
    rows = []
    for number in range(config.intervals):
        epoch = trainer.epoch()
        if epoch.ended != "whole":
            break
        metrics = {"loss": epoch.loss, **{_metric(key): v for key, v in epoch.metrics.items()}}
        rows.append([number, epoch.steps, metrics])
    kept.put(name, rows)


def _metric(name: str) -> str:
    """`loss` is that of training."""
    return "validation_loss" if name == "loss" else name
