"""Distillation: a network that was made smaller learns from the larger one it came from.

Meanwhile the loss is

    w · T² · KL(teacher's soft targets ‖ student's) + (1 − w) · the loss on the true targets,

where soft targets are the softmax of the outputs divided by the temperature T. T² keeps the size of the
gradients independent of T. The weight w falls by a factor after each epoch, until it is negligible.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from rota.core.errors import ConfigError, InputError
from rota.training.task import Batch

NEGLIGIBLE = 1e-3
"""Weight below which the teacher is no longer used."""


class Teacher:
    """The larger network, in evaluation mode and never trained, and its weight in the loss."""

    def __init__(
        self, network: nn.Module, *, temperature: float = 2.0, weight: float = 0.75, decay: float = 0.25
    ) -> None:
        if not 0 < temperature < float("inf"):
            raise ConfigError(f"distillation: temperature {temperature} is not a number above 0")
        for name, value in (("weight", weight), ("decay", decay)):
            if not 0 <= value <= 1:
                raise ConfigError(f"distillation: {name} {value} is not between 0 and 1")
        self.network = network.eval()
        self.temperature = temperature
        self.weight = weight
        self.decay = decay

    @property
    def spent(self) -> bool:
        """Whether the teacher's weight is negligible."""
        return self.weight < NEGLIGIBLE

    def loss(self, student_outputs: Any, batch: Batch, hard_loss: Tensor) -> Tensor:
        """Return the loss to minimise, from the student's outputs and its loss on the true targets."""
        if self.spent:
            return hard_loss
        with torch.no_grad():
            teacher_outputs = self.network(batch.inputs)
        _check(student_outputs, teacher_outputs)
        soft_loss = soft_target_loss(student_outputs, teacher_outputs, self.temperature)
        return self.weight * soft_loss + (1 - self.weight) * hard_loss

    def epoch_over(self) -> None:
        """Lower the teacher's weight after an epoch."""
        self.weight *= self.decay

    def state_dict(self) -> dict[str, Any]:
        """Return the current weight, without the network."""
        return {"weight": self.weight}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from what `state_dict` returned."""
        self.weight = float(state["weight"])


def soft_target_loss(student_logits: Tensor, teacher_logits: Tensor, temperature: float) -> Tensor:
    """Return T² · KL(teacher ‖ student) at temperature T, averaged over all but the last dimension."""
    student = functional.log_softmax(student_logits / temperature, dim=-1).flatten(end_dim=-2)
    teacher = functional.log_softmax(teacher_logits / temperature, dim=-1).flatten(end_dim=-2)
    divergence = functional.kl_div(student, teacher, reduction="batchmean", log_target=True)
    return temperature**2 * divergence


def _check(student_outputs: object, teacher_outputs: object) -> None:
    if not isinstance(student_outputs, Tensor) or not isinstance(teacher_outputs, Tensor):
        raise InputError("distillation: needs networks that answer with one tensor of logits")
    if student_outputs.shape != teacher_outputs.shape:
        shapes = f"{tuple(student_outputs.shape)}, the teacher's {tuple(teacher_outputs.shape)}"
        raise InputError(f"distillation: the student's outputs have shape {shapes}; they must be the same")
