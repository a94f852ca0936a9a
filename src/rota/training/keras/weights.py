"""Weights between PyTorch and Keras, and Keras models in files."""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn

from rota.core.errors import InputError
from rota.core.files import atomic_write
from rota.training.keras.operations import is_depthwise, keras


@dataclass(frozen=True)
class KerasWeight:
    """A tensor of the network, and its layout in Keras."""

    tensor: Tensor
    order: tuple[int, ...]
    """Order of PyTorch's dimensions in Keras."""
    shape: tuple[int, ...]
    """Shape in Keras after reordering."""

    def to_keras(self) -> Any:
        """Return the tensor in Keras' layout."""
        return self.tensor.detach().permute(self.order).reshape(self.shape).cpu().numpy()

    def from_keras(self, numbers: Any) -> Tensor:
        """Return a Keras array in PyTorch's layout."""
        permuted = [self.tensor.shape[axis] for axis in self.order]
        back = [self.order.index(axis) for axis in range(len(self.order))]
        return torch.from_numpy(numbers.copy()).reshape(permuted).permute(back)


def export_weights(network: nn.Module, model: Any) -> None:
    """Copy the network's weights into the Keras layers of the same names."""
    for _, weight, variable in _matched(network, model):
        variable.assign(weight.to_keras())


def import_weights(model: Any, network: nn.Module) -> None:
    """Copy the weights of Keras layers into the modules of the same names, all or, on an error, none."""
    taken: dict[int, tuple[Tensor, Tensor]] = {}
    for name, weight, variable in _matched(network, model):
        numbers = weight.from_keras(variable.value.numpy())
        _, before = taken.setdefault(id(weight.tensor), (weight.tensor, numbers))
        if not torch.equal(before, numbers):
            raise InputError(f"layer {name!r}: shares a weight in the network and no longer does in Keras")
    with torch.no_grad():
        for tensor, numbers in taken.values():
            tensor.copy_(numbers)


def refuse_unused(network: nn.Module, model: Any) -> None:
    """Raise if a layer with weights is not in the Keras model, as it has no effect there."""
    there = {layer.name for layer in model.layers}
    for name, _ in _expected(network):
        if name not in there:
            raise InputError(f"layer {name!r}: is not used in evaluation mode; remove it first")


def loose_tensors(network: nn.Module) -> dict[str, Tensor]:
    """Return name → parameters and buffers that are not in a layer."""
    loose: dict[str, Tensor] = {}
    for name, module in network.named_modules():
        if not _weights(module):
            own = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
            loose |= {f"{name}.{key}" if name else key: tensor for key, tensor in own}
    return loose


def _matched(network: nn.Module, model: Any) -> list[tuple[str, KerasWeight, Any]]:
    """Return each tensor of the network with its checked variable in the Keras model."""
    layers = {layer.name: layer for layer in model.layers if layer.weights}
    expected = dict(_expected(network))
    for name in expected.keys() - layers.keys():
        raise InputError(f"layer {name!r}: the network has it, the Keras model has not")
    for name in layers.keys() - expected.keys():
        raise InputError(f"layer {name!r}: the Keras model has it, the network has not")
    matched = []
    for name, weights in expected.items():
        _check_epsilon(name, network, layers[name])
        variables = {variable.name: variable for variable in layers[name].weights}
        _check_shapes(name, weights, variables)
        matched += [(name, weight, variables[variable]) for variable, weight in weights.items()]
    return matched


def _expected(network: nn.Module) -> Iterator[tuple[str, Mapping[str, KerasWeight]]]:
    """Yield the layers that a Keras model of the network has, and their variables."""
    for name, module in network.named_modules():
        if weights := _weights(module):
            yield name, weights
    for name, tensor in loose_tensors(network).items():
        yield name, {"embeddings": KerasWeight(tensor, tuple(range(tensor.dim())), (1, tensor.numel()))}


def _check_shapes(name: str, weights: Mapping[str, KerasWeight], variables: Mapping[str, Any]) -> None:
    ours = {variable: weight.shape for variable, weight in weights.items()}
    theirs = {variable: tuple(value.shape) for variable, value in variables.items()}
    for variable in [*ours, *theirs]:
        if ours.get(variable) != theirs.get(variable):
            shapes = (
                f"{_shown(ours.get(variable))} in the network and {_shown(theirs.get(variable))} in Keras"
            )
            raise InputError(f"layer {name!r}: {variable} is {shapes}; the two must have the same structure")


def _shown(shape: tuple[int, ...] | None) -> str:
    return "absent" if shape is None else "×".join(map(str, shape)) or "a number"


def _check_epsilon(name: str, network: nn.Module, layer: Any) -> None:
    module = network.get_submodule(name) if hasattr(layer, "epsilon") else None
    if module is not None and layer.epsilon != (ours := getattr(module, "eps", None)):
        raise InputError(f"layer {name!r}: epsilon is {ours} in the network and {layer.epsilon} in Keras")


def _weights(module: nn.Module) -> dict[str, KerasWeight]:
    """Return Keras' variable names → tensors of a module; empty if it has no Keras layer of its own."""
    match module:
        case nn.Conv2d():
            return {"kernel": _kernel(module)} | _as_is(bias=module.bias)
        case nn.Linear():
            return {"kernel": _ordered(module.weight, (1, 0))} | _as_is(bias=module.bias)
        case nn.BatchNorm1d() | nn.BatchNorm2d():
            statistics = _as_is(moving_mean=module.running_mean, moving_variance=module.running_var)
            return _as_is(gamma=module.weight, beta=module.bias) | statistics
        case nn.LayerNorm():
            return _as_is(gamma=module.weight, beta=module.bias)
        case nn.Embedding():
            return _as_is(embeddings=module.weight)
    return {}


def _as_is(**tensors: Tensor | None) -> dict[str, KerasWeight]:
    """Return the tensors that are not None, in PyTorch's own order."""
    there = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    return {name: _ordered(tensor, tuple(range(tensor.dim()))) for name, tensor in there.items()}


def _kernel(module: nn.Conv2d) -> KerasWeight:
    if not is_depthwise(module):
        return _ordered(module.weight, (2, 3, 1, 0))
    height, width = module.weight.shape[2:]
    multiplier = module.out_channels // module.in_channels
    return KerasWeight(module.weight, (2, 3, 0, 1), (height, width, module.in_channels, multiplier))


def _ordered(tensor: Tensor, order: tuple[int, ...]) -> KerasWeight:
    return KerasWeight(tensor, order, tuple(tensor.shape[axis] for axis in order))


SUFFIX = ".keras"


def save(model: Any, file: Path) -> None:
    """Write a Keras model with its weights; only TensorFlow can read it."""
    _check_name(file)
    with TemporaryDirectory() as folder:
        whole = Path(folder) / f"model{SUFFIX}"
        model.save(whole)
        with whole.open("rb") as source, atomic_write(file) as stream:
            shutil.copyfileobj(source, stream)


def load(file: Path) -> Any:
    """Return the Keras model in a file; a file that would run code is refused."""
    _check_name(file)
    library = keras()
    if not file.is_file():
        raise InputError(f"{file}: there is no such file")
    try:
        return library.saving.load_model(file, safe_mode=True)
    except Exception as error:  # Keras lets through whatever the archive, the JSON or the weights raise
        raise InputError(f"{file}: is not a Keras model that can be read ({error})") from error


def _check_name(file: Path) -> None:
    if file.suffix != SUFFIX:
        raise InputError(f"{file}: the name of a Keras model ends with {SUFFIX}")
