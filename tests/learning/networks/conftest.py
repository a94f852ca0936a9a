"""Sights of networks of all kinds."""

from collections.abc import Callable, Sequence

import pytest

from rota.core.network import NOTHING, Change, Layer, Observation, Structure
from rota.training.describe import observation_of
from rota.training.models.registry import build
from rota.training.net2net import blocks, deepen


@pytest.fixture
def see() -> Callable[..., Observation]:
    """Gives a function that looks at a model which has grown in these blocks."""

    def look(
        name: str, grown: Sequence[int] = (), *, left: float = 0.5, actions: int | None = None
    ) -> Observation:
        network = build(name, (3, 32, 32), 10)
        names = blocks(network)
        for block in grown:
            deepen(network, names[block])
        some = [Change("deepen", block) for block in range(len(names))][: actions and actions - 1]
        return observation_of(network, left_s=left * 80, budget_s=80.0, actions=[*some, NOTHING], made=grown)

    return look


@pytest.fixture
def strange() -> Observation:
    """A network of layers that nobody has seen before, with a way around the middle one."""
    layers = (Layer("warp"), Layer("weft", (("turns", 3),)), Layer("loom"))
    structure = Structure(layers, ((0, 1), (1, 2), (0, 2)))
    return Observation(
        structure, ((0,), (1, 2)), 10.0, 80.0, (Change("deepen", 1), Change("deepen", 0), NOTHING)
    )
