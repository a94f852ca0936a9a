"""What a file in `config/record` may say."""

from dataclasses import dataclass

from rota.core.errors import ConfigError
from rota.training.recorder.curve_config import CurvesConfig
from rota.training.recorder.profile_config import ProfilesConfig
from rota.training.recorder.tree_config import TreesConfig


@dataclass(frozen=True, slots=True)
class RecordConfig:
    """Recordings to make."""

    profiles: tuple[ProfilesConfig, ...] = ()
    """How long iterations and their stages take."""
    curves: tuple[CurvesConfig, ...] = ()
    """One network at each point of a grid of hyper-parameters."""
    trees: tuple[TreesConfig, ...] = ()
    """Every sequence of changes of a network."""

    def __post_init__(self) -> None:
        if not (self.profiles or self.curves or self.trees):
            raise ConfigError("nothing to record; give [[trees]], [[curves]] or [[profiles]]")
