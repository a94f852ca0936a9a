"""The network of the original adaptation agent.

Each layer has a fixed random code of 16 numbers, here drawn from its description, so that no vocabulary is
kept and no layer is unknown. Two LSTMs of width 50 read the codes in both directions. An LSTM of width 16
reads their outputs; its last state describes the network. With the time code it passes two layers of width
128 and an output per action. The number of actions is fixed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from rota.core.arrays import Floats
from rota.core.errors import InputError
from rota.core.network import Observation
from rota.learning import features
from rota.policies.agents import Feature

CODE, ENCODING, NETWORK, HIDDEN = 16, 50, 16, 128


@dataclass(frozen=True, slots=True)
class Sentences:
    """Different networks as sequences of layer codes, with the time of each decision."""

    layers: Tensor
    """Code of each layer, by network and position; zeros after the last."""
    last: Tensor
    """Position of the last layer of each network."""
    backwards: Tensor
    """Positions in reverse order, by network; its own inverse."""
    network: Tensor
    """Network of each decision."""
    left: Floats
    """Remaining time at each decision, as a share of the budget."""
    time: Tensor
    """Code of that time."""

    def at(self, left: Floats) -> "Sentences":
        """Return the same decisions at other times."""
        return replace(self, left=left, time=_time(left))


class Original(nn.Module):
    """The original network: one score per action."""

    FEATURES = (
        Feature("layer.code", CODE, "normal numbers from the description of the layer"),
        Feature("time", features.ORIGINAL_TIME, "5 sin(2 pi i left), left as a share of the budget"),
    )

    def __init__(self, actions: int = 4) -> None:
        super().__init__()
        self.actions = actions
        self.forwards = nn.LSTM(CODE, ENCODING, batch_first=True)
        self.backwards = nn.LSTM(CODE, ENCODING, batch_first=True)
        self.whole = nn.LSTM(2 * ENCODING, NETWORK, batch_first=True)
        self.decide = nn.Sequential(
            nn.Linear(NETWORK + features.ORIGINAL_TIME, HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, actions),
        )

    @staticmethod
    def options(actions: int) -> dict[str, int]:
        """Return the options for a number of actions."""
        return {"actions": actions}

    def encode(self, observations: Sequence[Observation]) -> Sentences:
        """Return observations as tensors."""
        wrong = next(
            (
                len(observation.actions)
                for observation in observations
                if len(observation.actions) != self.actions
            ),
            None,
        )
        if wrong is not None:
            raise InputError(
                f"this agent decides between {self.actions} actions, not {wrong}; "
                "use an agent with the structural network, which takes any number"
            )
        unique = {observation.structure.fingerprint: observation.structure for observation in observations}
        places = {fingerprint: at for at, fingerprint in enumerate(unique)}
        longest = max(len(structure.layers) for structure in unique.values())
        layers = np.zeros((len(unique), longest, CODE), np.float32)
        backwards = np.tile(np.arange(longest), (len(unique), 1))
        for at, structure in enumerate(unique.values()):
            count = len(structure.layers)
            layers[at, :count] = [features.code(str(layer), CODE) for layer in structure.layers]
            backwards[at, :count] = np.arange(count)[::-1]
        left = np.array([observation.left for observation in observations])
        return Sentences(
            torch.from_numpy(layers),
            torch.tensor([len(structure.layers) - 1 for structure in unique.values()]),
            torch.from_numpy(backwards),
            torch.tensor([places[observation.structure.fingerprint] for observation in observations]),
            left,
            _time(left),
        )

    def forward(self, seen: Sentences) -> Tensor:
        """Return a score for each decision and action."""
        onwards, _ = self.forwards(seen.layers)
        back, _ = self.backwards(_reordered(seen.layers, seen.backwards))
        states, _ = self.whole(torch.cat([onwards, _reordered(back, seen.backwards)], -1))
        network = states[torch.arange(len(seen.last)), seen.last]
        scores: Tensor = self.decide(torch.cat([network[seen.network], seen.time], -1))
        return scores


def _time(left: Floats) -> Tensor:
    return torch.from_numpy(features.original_time(left)).float()


def _reordered(rows: Tensor, places: Tensor) -> Tensor:
    return rows.gather(1, places.unsqueeze(-1).expand(-1, -1, rows.shape[-1]))
