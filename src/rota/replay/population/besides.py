"""What a report costs besides the steps that led to it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from rota.core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Besides:
    """Of each part that a slot trains."""

    load_s: float = 0.0
    """To take a trial up that the slot does not have in its memory, from its checkpoint or from the start."""
    evaluate_s: float = 0.0
    """To find out how good it is, on a slot of speed 1; counts as computing."""
    save_s: float = 0.0
    """To keep its checkpoint."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if not 0.0 <= getattr(self, field.name) < math.inf:
                raise ConfigError(f"{field.name} is {getattr(self, field.name)}; it must be 0 or more")

    @classmethod
    def recorded(cls, details: Mapping[str, Any]) -> "Besides":
        """As measured with curves; nothing if it was not."""
        return cls(**details.get("besides", {}))
