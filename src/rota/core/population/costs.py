"""Costs of the assignments of a population, apart from training."""

import math
from dataclasses import dataclass

from rota.core.errors import ConfigError

LONGEST_S = 1e9
"""Longest cost in seconds; beside longer ones, training times would be lost in rounding."""


@dataclass(frozen=True, slots=True)
class AssignmentCosts:
    """Costs of an assignment apart from training."""

    dispatch_s: float = 0.0
    """Seconds to send an assignment to a slot, however long it is."""
    latency_s: float = 0.0
    """Seconds before the transfer of a checkpoint to another node starts."""
    bandwidth_mb_s: float = math.inf
    """Bandwidth between nodes at one switch."""
    cross_switch_mb_s: float = 0.0
    """Bandwidth between nodes at different switches; 0 if it is the same."""

    def __post_init__(self) -> None:
        for name in ("dispatch_s", "latency_s"):
            if not 0.0 <= getattr(self, name) <= LONGEST_S:
                raise ConfigError(f"{name} is {getattr(self, name):g}; it must be 0 to {LONGEST_S:g}")
        if not self.bandwidth_mb_s > 0.0 or not self.cross_switch_mb_s >= 0.0:
            raise ConfigError("bandwidth_mb_s and cross_switch_mb_s must be above 0")

    @property
    def moves_are_free(self) -> bool:
        """Whether checkpoints can be transferred in no time."""
        return not self.latency_s and self.bandwidth_mb_s == math.inf and not self.cross_switch_mb_s

    def move_s(self, size_mb: float, *, across: bool) -> float:
        """Return the seconds to transfer a checkpoint to another node, perhaps across switches."""
        bandwidth = self.cross_switch_mb_s if across and self.cross_switch_mb_s else self.bandwidth_mb_s
        return self.latency_s + size_mb / bandwidth
