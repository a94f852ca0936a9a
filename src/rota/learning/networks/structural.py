"""The structural network: it reads a network as a graph of layers and scores each possible change.

Layers exchange messages along the edges in both directions, so skip connections are seen. The score of an
action depends on its block, the network as a whole, the time and the cost of the change. All blocks share the
same weights, so one agent works for any number of blocks.
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
    """Observations as tensors, each different network once."""

    layers: Tensor
    """Features of each layer, by network."""
    there: Tensor
    """1, or 0 where there is no layer, by network and layer."""
    before: Tensor
    """Share of the input of the first layer that comes from the second, by network, layer, layer."""
    behind: Tensor
    blocks: Tensor
    """Share of the layer in the block of the action, by network, action and layer."""
    network: Tensor
    """Network of each decision."""
    left: Floats
    """Remaining time at each decision, as a share of the budget."""
    time: Tensor
    """Features of that time."""
    whole: Tensor
    """Features of the network as a whole, by decision."""
    actions: Tensor
    """Features of each action, by decision."""
    allowed: Tensor
    """Whether the action exists, by decision and action."""

    def at(self, left: Floats) -> "Graphs":
        """Return the same decisions at other times."""
        return replace(self, left=left, time=_tensor(features.time(left)))


class Structural(nn.Module):
    """The structural network: one score per action, from the graph of layers."""

    FEATURES = (
        *features.LAYER_FEATURES,
        *features.TIME_FEATURES,
        *features.NETWORK_FEATURES,
        *features.ACTION_FEATURES,
    )

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
        """Return the options, which do not depend on the number of actions."""
        return {}

    def encode(self, observations: Sequence[Observation]) -> Graphs:
        """Return observations as tensors."""
        keys = [
            (observation.structure.fingerprint, observation.blocks, observation.actions)
            for observation in observations
        ]
        unique = dict(zip(keys, observations, strict=True))
        places = {key: at for at, key in enumerate(unique)}
        longest = max(len(observation.structure.layers) for observation in unique.values())
        most = max(len(observation.actions) for observation in observations)
        layers = np.zeros((len(unique), longest, features.LAYER))
        there = np.zeros((len(unique), longest))
        edges = np.zeros((len(unique), longest, longest))
        blocks = np.zeros((len(unique), most, longest))
        for at, observation in enumerate(unique.values()):
            count = len(observation.structure.layers)
            layers[at, :count] = features.layers(observation.structure)
            there[at, :count] = 1.0
            for tail, head in observation.structure.edges:
                edges[at, head, tail] = 1.0
            for row, change in enumerate(observation.actions):
                if 0 <= change.block < len(observation.blocks):
                    blocks[at, row, list(observation.blocks[change.block])] = 1.0
        actions = np.zeros((len(observations), most, features.ACTION))
        allowed = np.zeros((len(observations), most), bool)
        for at, observation in enumerate(observations):
            actions[at, : len(observation.actions)] = features.actions(observation)
            allowed[at, : len(observation.actions)] = True
        left = np.array([observation.left for observation in observations])
        return Graphs(
            _tensor(layers),
            _tensor(there),
            _tensor(_shares(edges)),
            _tensor(_shares(edges.transpose(0, 2, 1))),
            _tensor(_shares(blocks)),
            torch.tensor([places[key] for key in keys]),
            left,
            _tensor(features.time(left)),
            _tensor(np.stack([features.network(observation) for observation in observations])),
            _tensor(actions),
            torch.from_numpy(allowed),
        )

    def forward(self, seen: Graphs) -> Tensor:
        """Return a score for each decision and action; minus infinity where there is no such action."""
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
    shares: Floats = weights / np.maximum(1.0, weights.sum(-1, keepdims=True))
    return shares
