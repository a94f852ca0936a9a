"""A network as its structure: what kinds of layers it has, how large they are and what feeds what.

Neither names nor weights are part of it, so two networks that are built alike have the same structure however
they came to be, and no library's way of printing a layer matters.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rota.core.errors import InputError


@dataclass(frozen=True, slots=True)
class Layer:
    """One step of a network."""

    kind: str
    """Such as `conv2d`, `linear`, `batchnorm`, `relu`, `add`."""
    sizes: tuple[tuple[str, int], ...] = ()
    """Such as `(("in", 3), ("out", 32), ("kernel", 3))`."""

    def size(self, name: str, default: int = 0) -> int:
        """The size of that name, or the default if the layer has none."""
        return dict(self.sizes).get(name, default)

    def __str__(self) -> str:
        sizes = ", ".join(f"{name} {value}" for name, value in self.sizes)
        return f"{self.kind}({sizes})" if sizes else self.kind


@dataclass(frozen=True)
class Structure:
    """The layers of a network in the order they run, and which feeds which."""

    layers: tuple[Layer, ...]
    edges: tuple[tuple[int, int], ...]
    """Pairs of positions in `layers`: the output of the first goes into the second."""

    def __post_init__(self) -> None:
        wrong = [edge for edge in self.edges if not 0 <= edge[0] < edge[1] < len(self.layers)]
        if wrong:
            raise InputError(f"structure: edge {wrong[0]}: not from a layer to a later one")

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that are equal for equal structures."""
        text = json.dumps(self.as_json(), separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def as_json(self) -> dict[str, Any]:
        """As plain values, the same for equal structures."""
        layers = [[layer.kind, [list(size) for size in layer.sizes]] for layer in self.layers]
        return {"layers": layers, "edges": [list(edge) for edge in self.edges]}

    @classmethod
    def from_json(cls, values: Any) -> "Structure":
        """What `as_json` gave, back as a structure."""
        try:
            layers = tuple(_layer(kind, sizes) for kind, sizes in values["layers"])
            return cls(layers, tuple((_whole(tail), _whole(head)) for tail, head in values["edges"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"structure: not one that rota wrote ({error!r}); make it anew") from None


def _layer(kind: Any, sizes: Any) -> Layer:
    if not isinstance(kind, str):
        raise TypeError(f"{kind!r} is not a kind of layer")
    return Layer(kind, tuple((str(name), _whole(value)) for name, value in sizes))


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is not a whole number")
    return value
