"""The network that scores lists, where it learns; `policies/allocation/learned.py` runs it without torch."""

import numpy as np
import torch
from torch import Tensor, nn

from rota.policies.allocation.agent import Weights
from rota.policies.allocation.learned import ADVISED, FEATURES, LATE

EAGER, TRUST = 20.0, 1.5
"""At first, a list after which all would be done 1 % later is less likely by e to a hundredth of the one, and
the one that a rule advises is more likely by e to the other."""


class Scorer(nn.Module):
    """Three layers and a straight way past them, applied to each candidate by itself."""

    def __init__(self, hidden: int, seed: int) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=()):
            torch.default_generator.manual_seed(seed)
            self.a = nn.Linear(FEATURES, hidden)
            self.b = nn.Linear(hidden, hidden)
            self.c = nn.Linear(hidden, 1)
            self.past = nn.Linear(FEATURES, 1, bias=False)
        with torch.no_grad():  # it begins by wanting to be done soon
            self.past.weight.zero_()
            self.past.weight[0, LATE] = -EAGER
            self.past.weight[0, ADVISED] = TRUST

    def forward(self, features: Tensor, allowed: Tensor) -> Tensor:
        """Decision, candidate → logarithm of its probability."""
        scores = torch.full(allowed.shape, -torch.inf)
        seen = features[allowed]
        hidden = torch.relu(self.b(torch.relu(self.a(seen))))
        scores[allowed] = (self.c(hidden) + self.past(seen)).squeeze(-1)
        return scores.log_softmax(-1)

    @property
    def weights(self) -> Weights:
        """As they are now."""
        a, b, c = self.a, self.b, self.c
        values = (a.weight.T, a.bias, b.weight.T, b.bias, c.weight, c.bias, self.past.weight)
        return Weights(*(np.ascontiguousarray(each.detach().numpy()).copy() for each in values))
