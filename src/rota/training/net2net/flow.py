"""Where the units of a layer go: through what leaves them apart, into the layers that take them in."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn
from torch.nn import functional

from rota.training.net2net.graph import View
from rota.training.net2net.grown import NotGrowable
from rota.training.net2net.identity import CONVOLUTIONS, NORMS

_UNKNOWN = -1
"""Axes of places: the units are on the last of nobody knows how many axes."""
_NORMALISES: dict[int, type[nn.Module]] = {
    0: nn.BatchNorm1d,
    1: nn.BatchNorm1d,
    2: nn.BatchNorm2d,
    3: nn.BatchNorm3d,
}
"""By the axes of places behind the units: what then normalises units, and not their places."""

_UNITWISE = (
    *(
        nn.ReLU,
        nn.ReLU6,
        nn.LeakyReLU,
        nn.ELU,
        nn.SELU,
        nn.CELU,
        nn.GELU,
        nn.SiLU,
        nn.Mish,
        nn.Tanh,
        nn.Sigmoid,
    ),
    *(nn.Hardtanh, nn.Hardswish, nn.Hardsigmoid, nn.Softplus, nn.Softsign, nn.Identity, nn.Dropout),
    *(functional.relu, functional.relu_, functional.relu6, functional.gelu, functional.silu, functional.elu),
    *(functional.leaky_relu, functional.hardswish, functional.dropout, functional.tanh, functional.sigmoid),
    *(torch.relu, torch.relu_, torch.tanh, torch.sigmoid, "relu", "relu_", "tanh", "sigmoid", "contiguous"),
)
"""What treats each number alone."""
_SPATIAL = (
    *(nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d),
    *(nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d, nn.AdaptiveMaxPool2d),
    *(nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.Upsample, nn.ZeroPad2d),
    *(functional.max_pool2d, functional.avg_pool2d, functional.adaptive_avg_pool2d, functional.dropout2d),
)
"""What treats each channel alone."""


@dataclass(frozen=True)
class Reach:
    """The dotted names of the layers that change with another layer's width."""

    norms: list[str]
    consumers: list[str]


def follow(view: View, layer: fx.Node, name: str) -> Reach:
    """Everything that a layer's units reach until they are taken in."""
    reach = Reach([], [])
    waiting = [(layer, _places(view, layer))]
    while waiting:
        node, places = waiting.pop()
        for user in node.users:
            goes_on = _step(view, user, places, reach)
            if goes_on is not None:
                waiting.append((user, goes_on))
            elif not _taken_in(view, user, places, reach) and not _asks(user):
                why = _why(view, user, places)
                raise NotGrowable(f"{name}: its output goes into {_called(view, user)}, and {why}")
    if not reach.consumers:
        raise NotGrowable(f"{name}: no layer takes in its output")
    return reach


def _places(view: View, layer: fx.Node) -> int:
    """How many axes of places come behind a layer's units."""
    part: Any = view.module(layer)
    if isinstance(part, nn.Linear):
        return 0 if _in_rows(view, layer) else _UNKNOWN
    return len(part.kernel_size)


def _in_rows(view: View, node: fx.Node) -> bool:
    """Whether a node surely puts out one row of numbers for each example: since it was laid in a row."""
    while node.all_input_nodes:
        kind = _kind(view, node)
        if kind in _ROWS:
            return _ROWS[kind](node, view.module(node))
        if kind is not nn.Linear and kind not in NORMS and kind not in _UNITWISE:
            return False
        node = node.all_input_nodes[0]
    return False


def _step(view: View, user: fx.Node, places: int, reach: Reach) -> int | None:
    """The axes of places behind a node that leaves units apart; `None` if it is none."""
    kind = _kind(view, user)
    if kind in NORMS and kind is _NORMALISES.get(places):
        reach.norms.append(str(user.target))
        return places
    if kind in _UNITWISE or (kind in _SPATIAL and places > 0):
        return places
    flattens = (_ROWS | _MEANS if places == 2 else _ROWS).get(kind)
    return 0 if flattens is not None and flattens(user, view.module(user)) else None


def _taken_in(view: View, user: fx.Node, places: int, reach: Reach) -> bool:
    """Whether a node takes units in: a convolution those with places, a linear layer those without."""
    part: Any = view.module(user)
    convolves = type(part) in CONVOLUTIONS and part.groups == 1 and places > 0
    if convolves or (type(part) is nn.Linear and places <= 0):
        reach.consumers.append(str(user.target))
        return True
    return False


def _kind(view: View, node: fx.Node) -> Any:
    if node.op == "call_module":
        return type(view.module(node))
    return node.target if node.op in ("call_function", "call_method") else None


def _asks(node: fx.Node) -> bool:
    """Whether a node only asks how many examples there are."""
    if node.target == "size":
        return node.args[1:] == (0,)
    shape = node.target is getattr and node.args[1] == "shape"
    return shape and all(user.args[1:] == (0,) for user in node.users)


def _called(view: View, user: fx.Node) -> str:
    part = view.module(user)
    return f"{user.target} ({type(part).__name__})" if part is not None else user.name


def _why(view: View, user: fx.Node, places: int) -> str:
    if user.op == "output":
        return "how wide that is, is not the network's to choose"
    if _kind(view, user) is nn.BatchNorm1d and places == _UNKNOWN:
        return "if there are positions, that normalises these and not units; if not, put nn.Flatten() first"
    return "what that does to units that are there twice is not known"


def _from_one(node: fx.Node, _: Any) -> bool:
    given = [*node.args[1:], *node.kwargs.values()]
    return given in ([1], [1, -1])


def _keeps_examples(node: fx.Node, _: Any) -> bool:
    sizes: Any = node.args[1] if len(node.args) == 2 else node.args[1:]
    return isinstance(sizes, tuple | list) and len(sizes) == 2 and bool(sizes[1] == -1)


def _over_places(node: fx.Node, _: Any) -> bool:
    axes: list[Any] = [*node.args[1:], *node.kwargs.values()]
    return len(axes) == 1 and isinstance(axes[0], list | tuple) and {axis % 4 for axis in axes[0]} == {2, 3}


_ROWS: dict[Any, Callable[[fx.Node, Any], bool]] = {
    nn.Flatten: lambda _, part: part.start_dim == 1 and part.end_dim == -1,
    torch.flatten: _from_one,
    "flatten": _from_one,
    "view": _keeps_examples,
    "reshape": _keeps_examples,
    torch.reshape: _keeps_examples,
}
"""What lays the places of each channel one after the other: when it does."""
_MEANS: dict[Any, Callable[[fx.Node, Any], bool]] = {"mean": _over_places, torch.mean: _over_places}
"""What averages the places of each channel on two axes: when it does."""
