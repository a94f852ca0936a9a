"""The network of the original adaptation agent.

Each layer has a frozen random code of 16 numbers, here drawn from its description, so no vocabulary has to be
kept and no layer is unknown. Two LSTMs of 50 read them in both directions; an LSTM of 16 reads what they
made of the layers, and its last state stands for the network. With the time code it goes through two layers
of 128, and an output per action. The number of actions is fixed.
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

CODE, ENCODING, NETWORK, HIDDEN = 16, 50, 16, 128


@dataclass(frozen=True, slots=True)
class Sentences:
    """Networks as sequences of layers, each different one once, and what else is seen at some decisions."""

    layers: Tensor
    """Network, place → the code of the layer there; zeros behind the last."""
    last: Tensor
    """Network → the place of its last layer."""
    backwards: Tensor
    """Network, place → the place to read there when reading from the end; its own inverse."""
    network: Tensor
    """Decision → position of the network."""
    left: Floats
    """Decision → time that is left, as a share of the budget."""
    time: Tensor
    """Decision → code of that."""

    def at(self, left: Floats) -> "Sentences":
        """The same at other times."""
        return replace(self, left=left, time=_time(left))


class Original(nn.Module):
    """Scores as the original gave them."""

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
        """An output for each action."""
        return {"actions": actions}

    def encode(self, sights: Sequence[Observation]) -> Sentences:
        """What is seen, as tensors."""
        wrong = next((len(sight.actions) for sight in sights if len(sight.actions) != self.actions), None)
        if wrong is not None:
            raise InputError(
                f"this agent decides between {self.actions} actions, not {wrong}; "
                "use an agent with the structural network, which takes any number"
            )
        unique = {sight.structure.fingerprint: sight.structure for sight in sights}
        places = {fingerprint: at for at, fingerprint in enumerate(unique)}
        longest = max(len(structure.layers) for structure in unique.values())
        layers = np.zeros((len(unique), longest, CODE), np.float32)
        backwards = np.tile(np.arange(longest), (len(unique), 1))
        for at, structure in enumerate(unique.values()):
            count = len(structure.layers)
            layers[at, :count] = [features.code(str(layer), CODE) for layer in structure.layers]
            backwards[at, :count] = np.arange(count)[::-1]
        left = np.array([sight.left for sight in sights])
        return Sentences(
            torch.from_numpy(layers),
            torch.tensor([len(structure.layers) - 1 for structure in unique.values()]),
            torch.from_numpy(backwards),
            torch.tensor([places[sight.structure.fingerprint] for sight in sights]),
            left,
            _time(left),
        )

    def forward(self, seen: Sentences) -> Tensor:
        """Decision, action → score."""
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
