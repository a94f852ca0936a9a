"""Least attained service: the jobs that have used the fewest GPU-seconds come first."""

from dataclasses import dataclass

from rota.core.driver import CompiledPlan
from rota.core.errors import ConfigError
from rota.core.placement import Style
from rota.core.policy import Needs, Plan
from rota.core.view import ClusterView
from rota.policies.cluster.tiresias import Tiresias

LEVELS = 48


@dataclass(frozen=True, slots=True)
class Las:
    """Rank by attained GPU-seconds on a geometric grid, then first fit; equals run one after the other.

    That is tiresias with many queues: without a grid, two equal jobs would take turns all the time.
    """

    first_gpu_s: float = 3600.0
    """GPU-seconds after which a job first gives way to those that have used fewer."""
    ratio: float = 2.0
    """Factor from one such limit to the next."""
    placement: Style | None = None
    """How a gang is placed on nodes, as in tiresias."""

    def __post_init__(self) -> None:
        if not 0.0 < self.first_gpu_s < 1e9:
            raise ConfigError(f"first_gpu_s is {self.first_gpu_s}; it must be above 0 and below 10⁹")
        if not 1.0 < self.ratio <= 100.0:
            raise ConfigError(f"ratio is {self.ratio}; it must be above 1 and at most 100")

    @property
    def _queues(self) -> Tiresias:
        limits = tuple(self.first_gpu_s * self.ratio**level for level in range(LEVELS))
        return Tiresias(limits, self.placement)

    @property
    def needs(self) -> Needs:
        return self._queues.needs

    @property
    def compiled(self) -> CompiledPlan:
        return self._queues.compiled

    def plan(self, view: ClusterView) -> Plan:
        return self._queues.plan(view)
