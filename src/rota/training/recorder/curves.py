"""Record curves: train one network at each point of a grid of hyper-parameters, interval by interval.

Seconds are steps × the seconds per step that were measured for each batch size first, in turns or side by
side: what else the machine did while a setting was trained does not show.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from rota.core.workers import carry_out
from rota.recordings.curve import Curves, Interval, Setting, write_curves
from rota.recordings.provenance import provenance
from rota.training.clock import Pace, ProfiledClock, StoppedClock
from rota.training.device import description, device
from rota.training.epoch import Length
from rota.training.hyper import Hyperparameters
from rota.training.recorder.beside import Beside
from rota.training.recorder.curve_config import CurvesConfig
from rota.training.recorder.pace import measure
from rota.training.recorder.partial import Partial, plain, recorded
from rota.training.recorder.progress import Progress
from rota.training.trainer import Trainer

BESIDES = ("load_s", "evaluate_s", "save_s")
"""What a report costs besides its steps: taking a checkpoint up, evaluating, keeping a checkpoint."""
LIBRARIES = ("torch", "torchvision", "numpy")


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
        asked = self._asked()
        with self.partial.alone():
            if not recorded(self.folder, asked):
                self.partial.claim(asked)
                progress.say(f"{self.config.name}: seconds per step")
                paces = self._paces()
                self._train(paces, progress)
                self._write(asked)
                yield self.folder
            self.partial.remove()

    def _asked(self) -> dict[str, Any]:
        """What is not asked for is not named, as in recordings from before it could be."""
        asked: dict[str, Any] = plain(asdict(self.config))
        return asked if self.config.beside else {key: asked[key] for key in asked if key != "beside"}

    def _paces(self) -> dict[Pace, float]:
        known = self.partial.get("seconds-per-step")
        if known is None:
            trainers = list(self._trainers())
            if self.config.beside:
                measured = self._measure_beside(trainers)
            else:
                measured = measure(trainers, device(self.config.setup.device))
            known = [[name, size, seconds] for (name, size), seconds in measured.items()]
            self.partial.put("seconds-per-step", known)
        return {(name, size): seconds for name, size, seconds in known}

    def _trainers(self) -> Iterator[Trainer]:
        """One for each batch size."""
        for size in sorted({hyper.batch_size for hyper in self.config.settings().values()}):
            setup = replace(self.config.setup, hyper=Hyperparameters(batch_size=size))
            yield setup.trainer(StoppedClock(), seed=self.config.seed)

    def _measure_beside(self, trainers: list[Trainer]) -> dict[Pace, float]:
        """Seconds per step among copies; keeps what a report costs there besides."""
        config, sizes = self.config, tuple(trainer.hyper.batch_size for trainer in trainers)
        found = Beside(config.setup, sizes, config.steps, config.seed, config.beside).measure()
        columns = {name: fmean(getattr(each, name) for each in found.values()) for name in BESIDES}
        self.partial.put("besides", columns)
        prints = {trainer.hyper.batch_size: trainer.structure.fingerprint for trainer in trainers}
        return {(prints[size], size): each.step_s for size, each in found.items()}

    def _train(self, paces: dict[Pace, float], progress: Progress) -> None:
        open_ = [name for name in self.config.settings() if self.partial.get(name) is None]
        cost_s = {size: seconds for (_, size), seconds in paces.items()}
        each_s = {
            name: cost_s[hyper.batch_size] * self.config.steps * self.config.intervals
            for name, hyper in self.config.settings().items()
        }
        progress.expect(sum(each_s[name] for name in open_))
        progress.say(self.config.name)
        if open_:
            work = partial(train, self.config, paces, self.partial)
            for name in carry_out(work, open_, lambda _: (), min(self.workers, len(open_))):
                progress.advance(each_s[name])

    def _write(self, asked: dict[str, Any]) -> None:
        config = self.config
        where = description(device(config.setup.device), config.setup.threads)
        hyper = tuple(config.grid)
        settings = {}
        for name, values in config.settings().items():
            intervals = [Interval(*row) for row in self.partial.get(name) or ()]
            given = {key: getattr(values, key) for key in hyper}
            settings[name] = Setting.of(name, given, where, config.seed, intervals)
        curves = Curves(
            model=config.setup.model,
            data=config.setup.data or "digits",
            hyper=hyper,
            intervals=config.intervals,
            settings=settings,
            provenance=provenance(device=where, seed=config.seed, command=self.command, libraries=LIBRARIES),
            planned=tuple(config.settings()),
            metrics=tuple(dict.fromkeys(name for each in settings.values() for name in each.metrics)),
            details=self._details(asked),
        )
        write_curves(self.folder, curves)

    def _details(self, asked: dict[str, Any]) -> dict[str, Any]:
        besides = self.partial.get("besides")
        found = {"asked": asked, "seconds_per_step": self.partial.get("seconds-per-step")}
        return found if besides is None else {**found, "besides": besides}


def train(config: CurvesConfig, paces: dict[Pace, float], kept: Partial, name: str) -> None:
    """Train one setting and keep what was measured.

    A setting that fails ends there: it has fewer intervals.
    """
    hyper = config.settings()[name]
    setup = replace(config.setup, hyper=hyper)
    trainer = setup.trainer(ProfiledClock(paces), seed=config.seed, length=Length(steps=config.steps))
    rows = []
    before_s = 0.0
    for number in range(config.intervals):
        epoch = trainer.epoch()
        if epoch.ended != "whole":
            break
        metrics = {"loss": epoch.loss, **{_metric(key): v for key, v in epoch.metrics.items()}}
        rows.append([number, epoch.steps, epoch.at_s - before_s, metrics])
        before_s = epoch.at_s
    kept.put(name, rows)


def _metric(name: str) -> str:
    """`loss` is that of training."""
    return "validation_loss" if name == "loss" else name
