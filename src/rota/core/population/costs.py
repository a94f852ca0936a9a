"""What it costs to hand work to a slot, and to move a checkpoint between nodes."""

import math
from dataclasses import dataclass

from rota.core.errors import ConfigError

LONGEST_S = 1e9
"""Beside what takes longer, training would be lost in the rounding of the clock."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Of everything that is not training."""

    dispatch_s: float = 0.0
    """To hand a list to a slot, however long the list is."""
    latency_s: float = 0.0
    """Of moving a checkpoint to another node."""
    bandwidth_mb_s: float = math.inf
    """Between nodes at one switch."""
    cross_switch_mb_s: float = 0.0
    """Between nodes at different switches; as between others if not given."""

    def __post_init__(self) -> None:
        for name in ("dispatch_s", "latency_s"):
            if not 0.0 <= getattr(self, name) <= LONGEST_S:
                raise ConfigError(f"{name} is {getattr(self, name):g}; it must be 0 to {LONGEST_S:g}")
        if not self.bandwidth_mb_s > 0.0 or not self.cross_switch_mb_s >= 0.0:
            raise ConfigError("bandwidth_mb_s and cross_switch_mb_s must be above 0")

    @property
    def moves_are_free(self) -> bool:
        """Whether it makes no difference where a checkpoint is."""
        return not self.latency_s and self.bandwidth_mb_s == math.inf and not self.cross_switch_mb_s

    def move_s(self, size_mb: float, *, across: bool) -> float:
        """Of a checkpoint to another node, perhaps across switches."""
        bandwidth = self.cross_switch_mb_s if across and self.cross_switch_mb_s else self.bandwidth_mb_s
        return self.latency_s + size_mb / bandwidth
