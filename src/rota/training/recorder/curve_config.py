"""What a `[[curves]]` table in `config/record` may say."""

from dataclasses import dataclass, field, fields
from itertools import product

from rota.core.errors import ConfigError, unknown
from rota.training.data.chance import check_seed
from rota.training.hyper import Hyperparameters
from rota.training.recorder.partial import check_name
from rota.training.setup import Setup

HYPER = tuple(field.name for field in fields(Hyperparameters))


@dataclass(frozen=True, slots=True)
class CurvesConfig:
    """One network, trained at each point of a grid of hyper-parameters."""

    name: str
    """Of the recording."""
    setup: Setup = field(default_factory=Setup)
    grid: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """Hyper-parameter → its values; every combination is trained."""
    intervals: int = 20
    steps: int = 50
    """In each interval."""
    seed: int = 0
    beside: int = 0
    """Seconds are measured while so many copies train side by side, each on a core of its own: as many as
    there will be slots; then also what a report costs besides its steps. If 0: alone, in turns."""

    def __post_init__(self) -> None:
        check_name(self.name)
        check_seed(self.seed)
        for name in ("intervals", "steps"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.beside < 0:
            raise ConfigError(f"beside is {self.beside}; it must be 0 or more")
        for name, values in self.grid.items():
            if name not in HYPER:
                raise ConfigError(f"grid: {unknown('hyper-parameter', name, HYPER)}")
            if not values or len(set(values)) < len(values):
                raise ConfigError(f"grid: {name}: give one or more values, each of them once")
        if any(not float(size).is_integer() for size in self.grid.get("batch_size", ())):
            raise ConfigError("grid: batch_size: give whole numbers")
        self.settings()  # in range?

    def settings(self) -> dict[str, Hyperparameters]:
        """Name → hyper-parameters, the last of the grid varying fastest."""
        found = {}
        for values in product(*self.grid.values()):
            given = dict(zip(self.grid, values, strict=True))
            name = ",".join(f"{key}={value:.12g}" for key, value in given.items()) or "only"
            found[name] = Hyperparameters(**{**_own(self.setup.hyper), **given})  # type: ignore[arg-type]
        return found


def _own(hyper: Hyperparameters) -> dict[str, float]:
    return {name: getattr(hyper, name) for name in HYPER}
