"""A network as a Keras model with the same weights and outputs."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.fx.node import map_aggregate

from rota.core.errors import InputError
from rota.training.keras.call import parts
from rota.training.keras.translate import Translator
from rota.training.keras.weights import export_weights, refuse_unused
from rota.training.tasks.evaluation import evaluating

TOLERANCE = 1e-4
"""How far outputs may be apart, relative to the largest: more than rounding, less than a mistake."""


def to_keras(network: nn.Module, example_inputs: Tensor) -> Any:
    """A Keras model that computes what the network does in evaluation mode, for batches of any size.

    Apart from the size of the batch, inputs have the shape of `example_inputs`. The network stays as it is.
    """
    if not isinstance(example_inputs, Tensor) or example_inputs.dim() < 1 or len(example_inputs) < 1:
        raise InputError("example_inputs: needs a tensor with at least one example in it")
    tensors = [*network.parameters(), *network.buffers()]
    inputs = example_inputs.to(tensors[0].device) if tensors else example_inputs
    with evaluating(network):
        model = Translator(network, inputs).model()
        refuse_unused(network, model)
        export_weights(network, model)
        _check(network, model, inputs)
    return model


def predict(model: Any, inputs: Tensor) -> Any:
    """What a Keras model answers in evaluation mode; inputs and outputs are PyTorch's, in PyTorch's order."""
    given = inputs.movedim(1, -1) if inputs.dim() == 4 else inputs
    return map_aggregate(model(given.cpu().numpy(), training=False), _from_keras)


def _from_keras(tensor: Any) -> Tensor:
    answer = torch.from_numpy(tensor.numpy().copy())
    return answer.movedim(-1, 1) if answer.dim() == 4 else answer


def _check(network: nn.Module, model: Any, inputs: Tensor) -> None:
    """Compare outputs on a batch of another size, where a size that was taken for a constant shows."""
    larger = torch.cat([inputs, inputs[:1]])
    both = zip(parts(network(larger)), parts(predict(model, larger)), strict=True)
    if not all(_close(ours, theirs) for ours, theirs in both):
        raise InputError(f"{type(network).__name__}: in Keras it computes something else")


def _close(ours: Tensor, theirs: Tensor) -> bool:
    if ours.shape != theirs.shape:
        return False
    largest = float(ours.abs().max()) if ours.numel() else 0.0
    return torch.allclose(ours.cpu(), theirs, rtol=0.0, atol=TOLERANCE * largest, equal_nan=True)
