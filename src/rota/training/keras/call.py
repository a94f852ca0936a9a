"""One step of a network on its way to Keras."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.fx.node import map_aggregate

from rota.core.errors import InputError


@dataclass(frozen=True)
class Signal:
    """What flows between layers: a Keras tensor that stands for a PyTorch tensor."""

    tensor: Any
    channels_last: bool = False
    """Whether this is an image whose channels Keras has last where PyTorch has them second."""


@dataclass(frozen=True)
class Call:
    """A module, function or method that is called, and what PyTorch gives for it."""

    keras: Any
    layers: dict[str, Any]
    """The layers of the Keras model so far, by name."""
    name: str
    """The dotted name of the module, or how the trace calls the step."""
    module: nn.Module | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any

    def signal(self, position: int = 0, name: str = "input") -> Signal:
        """An argument that is a tensor."""
        found = self.args[position] if position < len(self.args) else self.kwargs.get(name)
        if not isinstance(found, Signal):
            raise self.refused(f"its argument {name!r} is not a tensor that depends on the input")
        return found

    def option(self, position: int, name: str, default: Any = None) -> Any:
        """A setting: an attribute of the module, or an argument of the function."""
        if self.module is not None:
            return getattr(self.module, name)
        return self.args[position] if position < len(self.args) else self.kwargs.get(name, default)

    def layer(self, kind: str, suffix: str = "", **settings: Any) -> Any:
        """The Keras layer for this step; a module that is called twice has one layer that is called twice."""
        name = f"{self.name}.{suffix}" if suffix else self.name
        if name not in self.layers:
            self.layers[name] = getattr(self.keras.layers, kind)(name=name, **settings)
        return self.layers[name]

    def first(self, signal: Signal) -> Any:
        """The tensor with its dimensions in PyTorch's order."""
        if not signal.channels_last:
            return signal.tensor
        return self.keras.ops.transpose(signal.tensor, (0, 3, 1, 2))

    def last(self, signal: Signal) -> Any:
        """The tensor of an image with its channels last."""
        return (
            signal.tensor if signal.channels_last else self.keras.ops.transpose(signal.tensor, (0, 2, 3, 1))
        )

    def refuse(self, **settings: bool) -> None:
        """Raise an error that names the first setting that is true: it has no counterpart in Keras."""
        for name, is_set in settings.items():
            if is_set:
                raise self.refused(f"Keras has no counterpart for this {name}")

    def refused(self, reason: str) -> InputError:
        return InputError(f"layer {self.name!r}: cannot be turned into Keras: {reason}")


def parts(structure: Any) -> list[Any]:
    """What is in tuples, lists and dictionaries inside each other; for anything else, itself."""
    found: list[Any] = []

    def keep(part: Any) -> Any:
        found.append(part)
        return part

    map_aggregate(structure, keep)
    return found


def pair(value: int | Sequence[int]) -> tuple[int, int]:
    """Height and width, given as two numbers or as one for both."""
    if isinstance(value, int):
        return value, value
    height, width = value if len(value) == 2 else (value[0], value[0])
    return height, width
