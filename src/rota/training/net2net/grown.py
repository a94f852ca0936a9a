"""What growth leaves in a network: a part with new layers behind it, in the place the part had."""

from collections.abc import Iterable
from typing import Any

from torch import nn

from rota.core.errors import InputError

_ORIGINAL = "original"


class NotGrowable(InputError):
    """The network cannot grow there without changing what it computes; it is as it was."""


class Grown(nn.Sequential):
    """A part of a network as it was built, followed by the layers that growth has put behind it."""

    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.add_module(_ORIGINAL, part)
        self.train(part.training)

    @property
    def part(self) -> nn.Module:
        """The part that was there first."""
        return self[0]

    @property
    def new(self) -> list[nn.Module]:
        """The layers behind it."""
        return list(self)[1:]

    def forward(self, *given: Any, **named: Any) -> Any:
        """The part is given whatever it takes, and each new layer what comes of that."""
        output = self.part(*given, **named)
        for layer in self.new:
            output = layer(output)
        return output

    def __getattr__(self, name: str) -> Any:
        """What only the part has, such as its weight, for code that asks for it in this place.

        Not what Python itself asks for: if the part says how it is to be copied, only the part is.
        """
        try:
            return super().__getattr__(name)
        except AttributeError:
            part = self.__dict__.get("_modules", {}).get(_ORIGINAL)
            if part is None or name.startswith("__"):
                raise
        return getattr(part, name)

    def grow(self, layers: Iterable[nn.Module]) -> None:
        """Put layers behind all there are; their names cannot be mistaken for those of parts of the part."""
        for layer in layers:
            self.add_module(f"new{len(self)}", layer)


def original(network: nn.Module, name: str) -> nn.Module:
    """The part that had this dotted name before anything grew."""
    return network.get_submodule(present(network, name))


def present(network: nn.Module, name: str) -> str:
    """The dotted name that a part has now which had this one before anything grew around it."""
    part, steps = network, []
    for step in [*filter(None, name.split(".")), None]:
        if isinstance(part, Grown) and step not in part._modules:
            part = part.part
            steps.append(_ORIGINAL)
        if step is not None:
            part = part.get_submodule(step)
            steps.append(step)
    return ".".join(steps)


def before(network: nn.Module, name: str) -> str:
    """The dotted name that a part or weight had before anything grew; what is new keeps its name."""
    part: Any = network
    steps = []
    for step in name.split("."):
        if not (isinstance(part, Grown) and step == _ORIGINAL):
            steps.append(step)
        part = part._modules.get(step) if part is not None else None
    return ".".join(steps)


def around(network: nn.Module, name: str) -> str | None:
    """The dotted name of what has grown around a part, if anything has."""
    parent, _, step = name.rpartition(".")
    return parent if step == _ORIGINAL and isinstance(network.get_submodule(parent), Grown) else None
