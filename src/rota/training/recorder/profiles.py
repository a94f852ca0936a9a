"""Recorder of profiles: the time of an iteration, by stage, for each model, batch size and gang size.

Cells are measured one at a time.
"""

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from rota.core.errors import InputError
from rota.recordings.folder import provenance
from rota.recordings.profile import Profile, Profiles, write_profiles
from rota.training.device import description, device, threads
from rota.training.hyper import Hyperparameters
from rota.training.models.registry import model
from rota.training.recorder.gang import (
    FAILURES,
    CellFailed,
    Iterations,
    ProcessGang,
    Stages,
    member_device,
    reason,
)
from rota.training.recorder.partial import Recorder, RecordingProgress
from rota.training.recorder.profile_config import ProfileCell, ProfilesConfig
from rota.training.setup import LIBRARIES

WITH_GAMES = (*LIBRARIES, "gymnasium")


@dataclass(frozen=True, slots=True)
class ProfilesRecorder(Recorder):
    """A recorder of profiles into `out/profiles`."""

    config: ProfilesConfig

    KIND = "profiles"

    def _check(self) -> None:
        """Check first that the data of all models are there."""
        one_of_each = {model(name).task: name for name in self.config.names}
        for name in one_of_each.values():
            usual = ProfileCell(
                name, Hyperparameters().batch_size, 1
            )  # a batch that cannot be made fails by itself
            self.config.setup(usual).task(self.config.seed)

    def _record(self, progress: RecordingProgress) -> None:
        config = self.config
        cells = [cell for cell in config.cells() if self.partial.get(cell.name) is None]
        progress.expect(config.limit_s * len(cells))
        for members in sorted({cell.gang for cell in cells}):
            with threads(config.threads), Bench(members, config) as bench:
                for cell in cells:
                    if cell.gang == members:
                        progress.say(f"{config.name}: {cell.name}")
                        self.partial.put(cell.name, _found(bench, cell))
                        progress.advance(config.limit_s)

    def _write(self, asked: dict[str, Any]) -> None:
        config = self.config
        found: dict[ProfileCell, Any] = {cell: self.partial.get(cell.name) for cell in config.cells()}
        failed = {cell.name: each["failed"] for cell, each in found.items() if "failed" in each}
        if len(failed) == len(found):
            first = next(iter(failed.values()))
            raise InputError(
                f"{config.name}: nothing could be measured ({first}); ask for something else, and delete "
                f"{self.partial.folder}"
            )
        where = description(device(config.device), config.threads)
        rows = [row(cell, where, each["stages"]) for cell, each in found.items() if "stages" in each]
        origin = provenance(device=where, seed=config.seed, command=self.command, libraries=WITH_GAMES)
        write_profiles(self.folder, Profiles(tuple(rows), origin, {"asked": asked, "failed": failed}))


class Bench:
    """Measures cells of one gang size: in this process, or in a gang that it starts."""

    def __init__(self, members: int, config: ProfilesConfig) -> None:
        self._members = members
        self._config = config
        self._open = ExitStack()
        self._gang: ProcessGang | None = None

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def measure(self, cell: ProfileCell) -> list[Stages]:
        """Return the stages of each iteration; raise CellFailed if the cell cannot be measured."""
        try:
            where = member_device(self._config.device, 0, self._members)
            return self._alone(cell, where) if self._members == 1 else self._together(cell)
        except FAILURES as error:
            raise CellFailed(reason(error)) from None

    def _alone(self, cell: ProfileCell, where: torch.device) -> list[Stages]:
        config = self._config
        try:
            work = Iterations(config.setup(cell), where, seed=config.seed)
            return work.measure(iterations=config.iterations, warm=config.warm, limit_s=config.limit_s)
        finally:
            if where.type == "cuda":
                torch.cuda.empty_cache()

    def _together(self, cell: ProfileCell) -> list[Stages]:
        if self._gang is None:
            self._gang = self._open.enter_context(ProcessGang(self._members, self._config))
        try:
            return self._gang.measure(cell)
        except CellFailed:
            self._open.close()  # the others wait for the one that failed: the next cell has new members
            self._gang = None
            raise


def row(cell: ProfileCell, where: str, stages: list[list[float]]) -> Profile:
    """Return the medians, and the interquartile range of the iterations."""
    each = np.array(stages)
    load_s, compute_s, synchronise_s = np.median(each, axis=0).tolist()
    first, middle, third = np.quantile(each.sum(axis=1), (0.25, 0.5, 0.75)).tolist()
    return Profile(
        model=cell.model,
        batch_size=cell.batch_size,
        device=where,
        gang=cell.gang,
        iteration_s=middle,
        load_s=load_s,
        compute_s=compute_s,
        synchronise_s=synchronise_s,
        spread_s=third - first,
        iterations=len(stages),
    )


def _found(bench: Bench, cell: ProfileCell) -> dict[str, Any]:
    try:
        return {"stages": bench.measure(cell)}
    except CellFailed as failure:
        return {"failed": str(failure)}
