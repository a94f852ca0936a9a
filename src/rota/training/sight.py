"""What an adaptation policy sees of a network that trains."""

from collections.abc import Sequence

from torch import nn

from rota.core.change import Change
from rota.core.sight import Sight
from rota.core.structure import Structure
from rota.training.describe import located
from rota.training.net2net.grown import before
from rota.training.net2net.sites import Finder


def sight_of(
    network: nn.Module, *, left_s: float, budget_s: float, actions: Sequence[Change], made: Sequence[int] = ()
) -> Sight:
    """The network as it is now, at a decision."""
    structure, blocks = with_blocks(network)
    return Sight(structure, blocks, left_s, budget_s, tuple(actions), tuple(made))


def with_blocks(network: nn.Module) -> tuple[Structure, tuple[tuple[int, ...], ...]]:
    """The structure, and the layers of each block that can grow, what has grown in it among them."""
    structure, names = located(network)
    finder = Finder(network)
    original = [{before(network, name) for name in inside} for inside in names]
    blocks = []
    for block in finder.names():
        homes = {block, before(network, finder.site(block).part)}
        blocks.append(tuple(at for at, inside in enumerate(original) if _is_in(inside, homes)))
    return structure, tuple(blocks)


def _is_in(inside: set[str], homes: set[str]) -> bool:
    return any(name == home or name.startswith(f"{home}.") for name in inside for home in homes)
