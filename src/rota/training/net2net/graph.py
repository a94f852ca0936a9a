"""A network as a graph: its layers, what feeds what, and where the units of a layer go."""

import inspect
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn
from torch.fx.node import map_aggregate
from torch.nn import functional

from rota.training.net2net.identity import CONVOLUTIONS, NORMS, GrownPart, NotGrowable


class _Original(fx.Tracer):
    """A tracer of the layers that were there before growth."""

    def call_module(self, m: nn.Module, forward: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(m, GrownPart):
            return m.part(*args, **kwargs)
        output = super().call_module(m, forward, args, kwargs)
        if not isinstance(output, fx.Proxy):
            name = self.path_of_module(m)
            map_aggregate(output, lambda part: _note_packed(part, name))
        return output


_PACKED = "rota_packed"


def _note_packed(part: Any, by: str) -> Any:
    if isinstance(part, fx.Proxy):
        part.node.meta.setdefault(_PACKED, []).append(by)
    return part


def whole(network: nn.Module) -> fx.Graph | None:
    """Return the graph of all layers; None if it cannot be traced, as what runs depends on the input."""
    return _trace(fx.Tracer(), network)


def without_growth(network: nn.Module) -> fx.Graph | None:
    """Return the graph of the layers from before growth, under their present names."""
    return _trace(_Original(), network)


def _trace(tracer: fx.Tracer, network: nn.Module) -> fx.Graph | None:
    try:
        return tracer.trace(network, concrete_args=left_out(network))
    except Exception:  # whatever a network's own code raises when it is given symbols
        return None


def left_out(network: nn.Module) -> dict[str, Any] | None:
    """Return the arguments with defaults, which a trace holds fixed."""
    parameters = inspect.signature(network.forward).parameters.values()
    found = {each.name: each.default for each in parameters if each.default is not inspect.Parameter.empty}
    return found or None


class NetworkGraph:
    """A network with its graph: which layer a node runs, and which layers run once only."""

    def __init__(self, network: nn.Module, graph: fx.Graph | None) -> None:
        self.network = network
        self.nodes: list[fx.Node] = list(graph.nodes) if graph is not None else []
        self.traced = graph is not None
        self._parts = dict(network.named_modules(remove_duplicate=False))
        self._names = Counter(self._parts.values())
        self._runs = Counter(node.target for node in self.nodes if node.op == "call_module")

    def module(self, node: fx.Node) -> nn.Module | None:
        """Return the layer that a node runs, or None."""
        return self._parts[str(node.target)] if node.op == "call_module" else None

    def shared(self, name: str) -> bool:
        """Return whether a part has several names, or any of its layers runs several times."""
        part = self.network.get_submodule(name)
        runs = (self._runs[f"{name}.{inner}" if inner else name] for inner, _ in part.named_modules())
        return self._names[part] > 1 or any(times > 1 for times in runs)

    def refuse_shared(self, name: str) -> None:
        """Raise if a part is used in several places, as it would grow in all of them."""
        if self.shared(name):
            raise NotGrowable(f"{name}: is used in several places of the network, which would all change")


def is_packed(node: fx.Node, block: str) -> bool:
    """Return whether a block returns a node's result inside a tuple or other container."""
    return block in node.meta.get(_PACKED, ())


def owners(node: fx.Node) -> list[str]:
    """Return the dotted names of the modules around a node, outermost first, without its own layer."""
    names = [str(name) for name in node.meta.get("nn_module_stack", {})]
    return names[:-1] if node.op == "call_module" else names


_UNKNOWN = -1
"""Number of axes of positions if it is not known; the units are then on the last axis."""
_NORMALISES: dict[int, type[nn.Module]] = {
    0: nn.BatchNorm1d,
    1: nn.BatchNorm1d,
    2: nn.BatchNorm2d,
    3: nn.BatchNorm3d,
}
"""Number of axes of positions behind the units → the normalisation of units."""

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
"""Elementwise operations."""
_SPATIAL = (
    *(nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d),
    *(nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d, nn.AdaptiveMaxPool2d),
    *(nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.Upsample, nn.ZeroPad2d),
    *(functional.max_pool2d, functional.avg_pool2d, functional.adaptive_avg_pool2d, functional.dropout2d),
)
"""Operations on each channel by itself."""


@dataclass(frozen=True)
class Reach:
    """Dotted names of the layers that change with another layer's width."""

    norms: list[str]
    consumers: list[str]


def follow(view: NetworkGraph, layer: fx.Node, name: str) -> Reach:
    """Return all layers that a layer's units reach until a layer consumes them."""
    reach = Reach([], [])
    waiting = [(layer, _positions(view, layer))]
    while waiting:
        node, positions = waiting.pop()
        for user in node.users:
            goes_on = _step(view, user, positions, reach)
            if goes_on is not None:
                waiting.append((user, goes_on))
            elif not _taken_in(view, user, positions, reach) and not _asks(user):
                why = _why(view, user, positions)
                raise NotGrowable(f"{name}: its output goes into {_called(view, user)}, and {why}")
    if not reach.consumers:
        raise NotGrowable(f"{name}: no layer takes in its output")
    return reach


def _positions(view: NetworkGraph, layer: fx.Node) -> int:
    """Return the number of axes of positions behind a layer's units."""
    part: Any = view.module(layer)
    if isinstance(part, nn.Linear):
        return 0 if _in_rows(view, layer) else _UNKNOWN
    return len(part.kernel_size)


def _in_rows(view: NetworkGraph, node: fx.Node) -> bool:
    """Return whether a node surely gives one row of numbers for each example, because of a flattening."""
    while node.all_input_nodes:
        kind = _kind(view, node)
        if kind in _ROWS:
            return _ROWS[kind](node, view.module(node))
        if kind is not nn.Linear and kind not in NORMS and kind not in _UNITWISE:
            return False
        node = node.all_input_nodes[0]
    return False


def _step(view: NetworkGraph, user: fx.Node, positions: int, reach: Reach) -> int | None:
    """Return the axes of positions behind a node that keeps units apart; None if it does not."""
    kind = _kind(view, user)
    if kind in NORMS and kind is _NORMALISES.get(positions):
        reach.norms.append(str(user.target))
        return positions
    if kind in _UNITWISE or (kind in _SPATIAL and positions > 0):
        return positions
    flattens = (_ROWS | _MEANS if positions == 2 else _ROWS).get(kind)
    return 0 if flattens is not None and flattens(user, view.module(user)) else None


def _taken_in(view: NetworkGraph, user: fx.Node, positions: int, reach: Reach) -> bool:
    """Return whether a node consumes units: convolutions those with positions, linear layers others."""
    part: Any = view.module(user)
    convolves = type(part) in CONVOLUTIONS and part.groups == 1 and positions > 0
    if convolves or (type(part) is nn.Linear and positions <= 0):
        reach.consumers.append(str(user.target))
        return True
    return False


def _kind(view: NetworkGraph, node: fx.Node) -> Any:
    if node.op == "call_module":
        return type(view.module(node))
    return node.target if node.op in ("call_function", "call_method") else None


def _asks(node: fx.Node) -> bool:
    """Return whether a node only reads the number of examples."""
    if node.target == "size":
        return node.args[1:] == (0,)
    shape = node.target is getattr and node.args[1] == "shape"
    return shape and all(user.args[1:] == (0,) for user in node.users)


def _called(view: NetworkGraph, user: fx.Node) -> str:
    part = view.module(user)
    return f"{user.target} ({type(part).__name__})" if part is not None else user.name


def _why(view: NetworkGraph, user: fx.Node, positions: int) -> str:
    if user.op == "output":
        return "how wide that is, is not the network's to choose"
    if _kind(view, user) is nn.BatchNorm1d and positions == _UNKNOWN:
        return "if there are positions, that normalises these and not units; if not, put nn.Flatten() first"
    return "what that does to units that are there twice is not known"


def _from_one(node: fx.Node, _: Any) -> bool:
    given = [*node.args[1:], *node.kwargs.values()]
    return given in ([1], [1, -1])


def _keeps_examples(node: fx.Node, _: Any) -> bool:
    sizes: Any = node.args[1] if len(node.args) == 2 else node.args[1:]
    return isinstance(sizes, tuple | list) and len(sizes) == 2 and bool(sizes[1] == -1)


def _over_positions(node: fx.Node, _: Any) -> bool:
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
"""Operations that flatten the positions of each channel → the condition under which they do."""
_MEANS: dict[Any, Callable[[fx.Node, Any], bool]] = {"mean": _over_positions, torch.mean: _over_positions}
"""Operations that average the positions of each channel on two axes → the condition."""
