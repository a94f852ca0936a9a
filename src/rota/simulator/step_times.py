"""Predicted step times on slots where a kind of trial was never measured."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rota.core.errors import ConfigError
from rota.core.population.cluster import PopulationCluster, Slot
from rota.policies.allocation.predict import Predictor, StepTimeQuery
from rota.recordings.profile import Profiles

UNKNOWN = 1
"""Parameter count of a network whose size is unknown; it is predicted from its own measurements only."""


@dataclass(frozen=True, slots=True)
class TrialKind:
    """What the cost of a trial depends on."""

    model: str
    batch_size: int


@dataclass(frozen=True, slots=True)
class PredictedStepTimes:
    """Predicted speeds of devices, relative to a reference device."""

    predictor: Predictor
    parameters: Mapping[str, int]
    reference: str

    @classmethod
    def of(cls, profiles: Profiles, parameters: Mapping[str, int], reference: str) -> "PredictedStepTimes":
        """Return a predictor fitted to the profiles of single, undisturbed workers."""
        if reference not in profiles.devices:
            raise ConfigError(
                f"population.profiles: nothing about {reference}, on which the curves were recorded; "
                f"there are {', '.join(profiles.devices)}"
            )
        rows = [row for row in profiles.rows if row.gang == 1 and not row.beside and row.batch_size]
        asked = (
            StepTimeQuery(r.model, parameters.get(r.model, UNKNOWN), r.batch_size, r.device) for r in rows
        )
        predictor = Predictor.fit(zip(asked, (row.iteration_s for row in rows), strict=True))
        return cls(predictor, parameters, reference)

    def speed(self, kind: TrialKind, device: str) -> float:
        """Return the speed of a device with a kind of trial."""
        asked = StepTimeQuery(
            kind.model, self.parameters.get(kind.model, UNKNOWN), kind.batch_size, self.reference
        )
        return self.predictor.step_s(asked) / self.predictor.step_s(asked._replace(device=device))

    def fill_in(self, cluster: PopulationCluster, kinds: Mapping[str, TrialKind]) -> PopulationCluster:
        """Return the cluster with a speed for each kind that has none, on slots whose device was profiled."""
        return replace(cluster, slots=tuple(self._filled(slot, kinds) for slot in cluster.slots))

    def _filled(self, slot: Slot, kinds: Mapping[str, TrialKind]) -> Slot:
        if slot.device not in self.predictor.devices:
            return slot
        found = {name: self.speed(kind, slot.device) for name, kind in kinds.items()}
        return replace(slot, speeds={**found, **slot.speeds})
