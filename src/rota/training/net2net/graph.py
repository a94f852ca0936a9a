"""A network's layers and what feeds what, found by running it once on symbols."""

import inspect
from collections import Counter
from typing import Any

from torch import fx, nn
from torch.fx.node import map_aggregate

from rota.training.net2net.grown import Grown, NotGrowable


class _Original(fx.Tracer):
    """Records the layers there were before anything grew."""

    def call_module(self, m: nn.Module, forward: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(m, Grown):
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
    """Every layer of the network; `None` if what runs depends on the input, which symbols cannot follow."""
    return _trace(fx.Tracer(), network)


def without_growth(network: nn.Module) -> fx.Graph | None:
    """The layers the network had before anything grew, under the names they have now."""
    return _trace(_Original(), network)


def _trace(tracer: fx.Tracer, network: nn.Module) -> fx.Graph | None:
    try:
        return tracer.trace(network, concrete_args=left_out(network))
    except Exception:  # whatever a network's own code raises when it is given symbols
        return None


def left_out(network: nn.Module) -> dict[str, Any] | None:
    """The arguments of a network that have defaults, for a trace in which they stay what they are."""
    parameters = inspect.signature(network.forward).parameters.values()
    found = {each.name: each.default for each in parameters if each.default is not inspect.Parameter.empty}
    return found or None


class View:
    """A network with its graph: which layer a node runs, and which layers run in one place only."""

    def __init__(self, network: nn.Module, graph: fx.Graph | None) -> None:
        self.network = network
        self.nodes: list[fx.Node] = list(graph.nodes) if graph is not None else []
        self.traced = graph is not None
        self._parts = dict(network.named_modules(remove_duplicate=False))
        self._names = Counter(self._parts.values())
        self._runs = Counter(node.target for node in self.nodes if node.op == "call_module")

    def module(self, node: fx.Node) -> nn.Module | None:
        """The layer that a node runs, if it runs one."""
        return self._parts[str(node.target)] if node.op == "call_module" else None

    def shared(self, name: str) -> bool:
        """Whether a part has several names, or any of its layers runs several times."""
        part = self.network.get_submodule(name)
        runs = (self._runs[f"{name}.{inner}" if inner else name] for inner, _ in part.named_modules())
        return self._names[part] > 1 or any(times > 1 for times in runs)

    def refuse_shared(self, name: str) -> None:
        """Growth would happen in all places at once."""
        if self.shared(name):
            raise NotGrowable(f"{name}: is used in several places of the network, which would all change")


def is_packed(node: fx.Node, block: str) -> bool:
    """Whether a block gives out what a node computes in a tuple or the like, not as it is."""
    return block in node.meta.get(_PACKED, ())


def owners(node: fx.Node) -> list[str]:
    """The dotted names of the modules that a node runs inside, outermost first, its own layer left out."""
    names = [str(name) for name in node.meta.get("nn_module_stack", {})]
    return names[:-1] if node.op == "call_module" else names
