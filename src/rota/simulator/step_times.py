"""Predicted step times on slots where a kind of trial was never measured."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from rota.core.cluster import Cluster, Slot
from rota.core.errors import ConfigError
from rota.policies.allocation.predict import Predictor, StepTimeQuery
from rota.recordings.curve import Curves
from rota.recordings.devices import DeviceSpeeds
from rota.recordings.gavel import REFERENCE
from rota.recordings.profile import Profiles

log = logging.getLogger(__name__)

UNKNOWN = 1
"""Parameter count of a network whose size is unknown; it is predicted from its own measurements only."""


@dataclass(frozen=True, slots=True)
class TrialKind:
    """What the cost of a trial depends on."""

    model: str
    batch_size: int


class SlotSpeeds(ABC):
    """Speeds of devices with kinds of trials, relative to the device on which trials were recorded."""

    @property
    @abstractmethod
    def devices(self) -> Collection[str]:
        """The devices whose speeds are known."""

    @abstractmethod
    def speed(self, kind: TrialKind, device: str) -> float:
        """Return the speed of a device with a kind of trial."""

    def fill_in(self, cluster: Cluster, kinds: Mapping[str, TrialKind]) -> Cluster:
        """Return the cluster with a speed for each kind that has none, on slots whose device was profiled."""
        return replace(cluster, each_slot=tuple(self._filled(slot, kinds) for slot in cluster.all_slots))

    def _filled(self, slot: Slot, kinds: Mapping[str, TrialKind]) -> Slot:
        if slot.device not in self.devices:
            return slot
        found = {name: self.speed(kind, slot.device) for name, kind in kinds.items()}
        return replace(slot, speeds={**found, **slot.speeds})


@dataclass(frozen=True, slots=True)
class PredictedStepTimes(SlotSpeeds):
    """Speeds predicted from profiles of the same device and others."""

    predictor: Predictor
    parameters: Mapping[str, int]
    reference: str

    @classmethod
    def of(cls, profiles: Profiles, parameters: Mapping[str, int], reference: str) -> SlotSpeeds:
        """Return speeds fitted to the profiles of single, undisturbed workers.

        If the reference was not profiled, but a V100 was, speeds are borrowed, and what was recorded on the
        reference counts as recorded on a V100; a warning says so.
        """
        if reference not in profiles.devices:
            if REFERENCE not in profiles.devices:
                raise ConfigError(
                    f"population.profiles: nothing about {reference}, on which the curves were recorded, nor "
                    f"about {REFERENCE}; there are {', '.join(profiles.devices)}"
                )
            _say_scaled(reference)
            return BorrowedSpeeds(DeviceSpeeds(profiles))
        return cls(_fitted(profiles, parameters), parameters, reference)

    @property
    def devices(self) -> Collection[str]:
        """The devices that were profiled."""
        return self.predictor.devices

    def speed(self, kind: TrialKind, device: str) -> float:
        """Return the speed of a device with a kind of trial."""
        asked = StepTimeQuery(
            kind.model, self.parameters.get(kind.model, UNKNOWN), kind.batch_size, self.reference
        )
        return self.predictor.step_s(asked) / self.predictor.step_s(asked._replace(device=device))


@dataclass(frozen=True, slots=True)
class BorrowedSpeeds(SlotSpeeds):
    """Speeds of devices on which other models were measured, taken from one of the same family."""

    measured: DeviceSpeeds

    @property
    def devices(self) -> Collection[str]:
        """The devices that were profiled."""
        return self.measured.profiles.devices

    def speed(self, kind: TrialKind, device: str) -> float:
        """Return the speed of a device with a kind of trial."""
        return self.measured.speed(kind.model, kind.batch_size, device).speed


@cache
def _say_scaled(device: str) -> None:
    log.warning(
        "population.profiles: curves were recorded on %s, which was not measured there; they count as those "
        "of a %s, and other devices are scaled",
        device,
        REFERENCE,
    )


def _fitted(profiles: Profiles, parameters: Mapping[str, int]) -> Predictor:
    """Return a predictor fitted to the profiles of single, undisturbed workers."""
    rows = [row for row in profiles.rows if row.gang == 1 and not row.beside and row.batch_size]
    asked = (StepTimeQuery(r.model, parameters.get(r.model, UNKNOWN), r.batch_size, r.device) for r in rows)
    return Predictor.fit(zip(asked, (row.iteration_s for row in rows), strict=True))


def with_step_times(curves: Curves, profiles: Profiles, parameters: Mapping[str, int]) -> Curves:
    """Return curves whose seconds, where none were recorded, are steps × step times from profiles.

    Only settings whose model and device were profiled, and that have a batch size, get any.
    """
    known = {(row.model, row.device) for row in profiles.rows}
    unknown = [
        setting
        for setting in curves.settings.values()
        if (curves.model, setting.device) in known
        and isinstance(setting.hyper.get("batch_size"), int)
        and np.isnan(setting.seconds).all()
    ]
    if not unknown:
        return curves
    predictor, timed = _fitted(profiles, parameters), dict(curves.settings)
    for setting in unknown:
        size, batch = parameters.get(curves.model, UNKNOWN), int(setting.hyper["batch_size"])
        step_s = predictor.step_s(StepTimeQuery(curves.model, size, batch, setting.device))
        timed[setting.name] = replace(setting, seconds=step_s * np.diff(setting.steps, prepend=0))
    return replace(curves, settings=timed)
