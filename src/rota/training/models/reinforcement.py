"""Small networks that act: observations to what each action is worth, or to a policy and a value."""

from typing import cast

from torch import Tensor, nn

from rota.training.models.shapes import vector

WIDTH = 64
OBSERVATIONS = "observations of shape (numbers,)"


def a2c(inputs: tuple[int, ...], outputs: int) -> "ActorCritic":
    return ActorCritic(vector(inputs, OBSERVATIONS), outputs)


def dqn(inputs: tuple[int, ...], outputs: int) -> nn.Sequential:
    """What each action is worth in a state."""
    return nn.Sequential(*_body(vector(inputs, OBSERVATIONS)), nn.Linear(WIDTH, outputs))


class ActorCritic(nn.Module):
    """Observations (batch, numbers) to the logits of the actions (batch, actions) and the value (batch,)."""

    def __init__(self, observations: int, actions: int) -> None:
        super().__init__()
        self.body = _body(observations)
        self.policy = nn.Linear(WIDTH, actions)
        self.value = nn.Linear(WIDTH, 1)

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        seen = self.body(observations)
        return self.policy(seen), cast(Tensor, self.value(seen)).squeeze(1)


def _body(observations: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(observations, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU())
