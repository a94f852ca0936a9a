"""Our network: it reads a network as a graph and gives each possible change a score of its own.

Layers exchange messages along the edges, in both directions, so skip connections are seen. An action is
scored by what its block has become then, the network as a whole, the time and the cost of the change, with
the same weights for every block: one agent serves networks with any number of blocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from rota.core.arrays import Floats
from rota.core.network import Observation
from rota.learning import features


@dataclass(frozen=True, slots=True)
class Graphs:
    """What is seen at some decisions, each different network once."""

    layers: Tensor
    """Network, layer → features."""
    there: Tensor
    """Network, layer → 1, or 0 where there is none."""
    before: Tensor
    """Network, layer, layer → share of what flows into the first that comes from the second."""
    behind: Tensor
    blocks: Tensor
    """Network, action, layer → share of the layer in the block of the action."""
    network: Tensor
    """Decision → position of the network."""
    left: Floats
    """Decision → time that is left, as a share of the budget."""
    time: Tensor
    """Decision → features of that."""
    whole: Tensor
    """Decision → features of the network as a whole."""
    actions: Tensor
    """Decision, action → features."""
    allowed: Tensor
    """Decision, action → whether there is such an action."""

    def at(self, left: Floats) -> "Graphs":
        """The same at other times."""
        return replace(self, left=left, time=_tensor(features.time(left)))


class Structural(nn.Module):
    """Scores from structure."""

    def __init__(self, width: int = 32, rounds: int = 2, hidden: int = 64) -> None:
        super().__init__()
        self.read = nn.Linear(features.LAYER, width)
        self.exchange = nn.ModuleList(nn.Linear(3 * width, width) for _ in range(rounds))
        seen = 2 * width + features.TIME + features.NETWORK + features.ACTION
        self.decide = nn.Sequential(
            nn.Linear(seen, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 1)
        )

    @staticmethod
    def options(actions: int) -> dict[str, int]:
        """The same for any number of actions."""
        return {}

    def encode(self, sights: Sequence[Observation]) -> Graphs:
        """What is seen, as tensors."""
        keys = [(sight.structure.fingerprint, sight.blocks, sight.actions) for sight in sights]
        unique = dict(zip(keys, sights, strict=True))
        places = {key: at for at, key in enumerate(unique)}
        longest = max(len(sight.structure.layers) for sight in unique.values())
        most = max(len(sight.actions) for sight in sights)
        layers = np.zeros((len(unique), longest, features.LAYER))
        there = np.zeros((len(unique), longest))
        edges = np.zeros((len(unique), longest, longest))
        blocks = np.zeros((len(unique), most, longest))
        for at, sight in enumerate(unique.values()):
            count = len(sight.structure.layers)
            layers[at, :count] = features.layers(sight.structure)
            there[at, :count] = 1.0
            for tail, head in sight.structure.edges:
                edges[at, head, tail] = 1.0
            for row, change in enumerate(sight.actions):
                if 0 <= change.block < len(sight.blocks):
                    blocks[at, row, list(sight.blocks[change.block])] = 1.0
        actions = np.zeros((len(sights), most, features.ACTION))
        allowed = np.zeros((len(sights), most), bool)
        for at, sight in enumerate(sights):
            actions[at, : len(sight.actions)] = features.actions(sight)
            allowed[at, : len(sight.actions)] = True
        left = np.array([sight.left for sight in sights])
        return Graphs(
            _tensor(layers),
            _tensor(there),
            _tensor(_shares(edges)),
            _tensor(_shares(edges.transpose(0, 2, 1))),
            _tensor(_shares(blocks)),
            torch.tensor([places[key] for key in keys]),
            left,
            _tensor(features.time(left)),
            _tensor(np.stack([features.network(sight) for sight in sights])),
            _tensor(actions),
            torch.from_numpy(allowed),
        )

    def forward(self, seen: Graphs) -> Tensor:
        """Decision, action → score; minus infinity where there is no such action."""
        there = seen.there.unsqueeze(-1)
        state = torch.tanh(self.read(seen.layers)) * there
        for exchange in self.exchange:
            messages = torch.cat([state, seen.before @ state, seen.behind @ state], -1)
            state = (state + torch.tanh(exchange(messages))) * there
        blocks = (seen.blocks @ state)[seen.network]
        whole = (state.sum(1) / there.sum(1))[seen.network]
        context = torch.cat([whole, seen.time, seen.whole], -1).unsqueeze(1).expand(-1, blocks.shape[1], -1)
        scores: Tensor = self.decide(torch.cat([blocks, context, seen.actions], -1)).squeeze(-1)
        return scores.masked_fill(~seen.allowed, -torch.inf)


def _tensor(values: Floats) -> Tensor:
    return torch.from_numpy(values).float()


def _shares(weights: Floats) -> Floats:
    """Each row divided by its sum."""
    shares: Floats = weights / np.maximum(1.0, weights.sum(-1, keepdims=True))
    return shares
