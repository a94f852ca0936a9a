"""Places where a network can grow deeper without changing what it computes."""

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

import torch
from torch import fx, nn
from torch.nn import functional

from rota.core.errors import unknown
from rota.training.models.networks import Block
from rota.training.net2net.graph import NetworkGraph, is_packed, owners, without_growth
from rota.training.net2net.identity import (
    CONVOLUTIONS,
    LAYERS,
    NORMS,
    GrownPart,
    Moments,
    Neighbours,
    NotGrowable,
    after,
    around,
    before,
    expected,
    is_layer,
    normalised,
    original,
    present,
    refuse_computed,
)

_MODULES = (nn.ReLU, nn.ReLU6, nn.Hardtanh, nn.Identity)
_FUNCTIONS: dict[Any, type[nn.Module]] = {  # the same where they are called and not built
    functional.relu: nn.ReLU,
    functional.relu_: nn.ReLU,
    torch.relu: nn.ReLU,
    torch.relu_: nn.ReLU,
    functional.relu6: nn.ReLU6,
    "relu": nn.ReLU,
    "relu_": nn.ReLU,
}


def is_idempotent(part: nn.Module | None) -> bool:
    """Return whether a layer is an activation that may be applied twice."""
    return type(part) in _MODULES


def activation_of(view: NetworkGraph, node: fx.Node) -> nn.Module | None:
    """Return the activation of a node as a module, if it may be applied twice."""
    if node.op in ("call_function", "call_method"):
        kind = _FUNCTIONS.get(node.target)
        return kind() if kind is not None else None
    part = view.module(node)
    return part if is_idempotent(part) else None


def another(activation: nn.Module) -> nn.Module:
    """Return another activation of the same kind."""
    if isinstance(activation, nn.ReLU | nn.ReLU6):
        new: nn.Module = type(activation)(inplace=activation.inplace)
    elif isinstance(activation, nn.Hardtanh):
        new = nn.Hardtanh(activation.min_val, activation.max_val, activation.inplace)
    else:
        new = nn.Identity()
    return new.train(activation.training)


@dataclass(frozen=True)
class GrowthSite:
    """A place for new layers, behind a part of the network."""

    part: str
    """Present dotted name of that part."""
    like: Neighbours
    ahead: bool = False
    """Whether the part precedes its activation; the new layers then start with one."""
    promise: Callable[[], Moments] | None = None
    """Function that gives the expected moments, where normalisation and activation do not determine them."""


def behind(network: nn.Module, site: GrowthSite) -> GrowthSite:
    """Return the site itself, or one behind what has already grown there."""
    place = around(network, site.part)
    if place is None:
        return site
    layer, norm = newest(network, place)
    for part in filter(None, (layer, norm)):
        refuse_computed(place, part)
    return replace(site, part=place, like=replace(site.like, layer=layer, norm=norm), promise=None)


def newest(network: nn.Module, place: str) -> tuple[nn.Module, nn.Module | None]:
    """Return the last layer that has grown in a place, and its normalisation."""
    parts = list(network.get_submodule(place).children())[::-1]
    layer = next(part for part in parts if is_layer(part))
    return layer, next((part for part in parts if type(part) in NORMS), None)


def neighbours(name: str, layer: Any, norm: Any, activation: nn.Module) -> Neighbours:
    """Return the three layers to imitate; raise if no identity could follow them."""
    if not is_layer(layer):
        what = type(layer).__name__
        raise NotGrowable(f"{name}: {what} is before its activation, not a convolution or linear layer")
    for part in filter(None, (layer, norm)):
        refuse_computed(name, part)
    if isinstance(layer, CONVOLUTIONS) and any(size % 2 == 0 for size in layer.kernel_size):
        sizes = "×".join(map(str, layer.kernel_size))
        raise NotGrowable(f"{name}: its kernel is {sizes}; only an odd kernel can pass on what it is given")
    if norm is not None and norm.running_mean is None:
        raise NotGrowable(f"{name}: its batch normalisation keeps no running statistics to start from")
    return Neighbours(layer, norm, activation)


_TWICE = "ReLU, ReLU6, Hardtanh or Identity, for which twice is once"


def marked(view: NetworkGraph, name: str) -> GrowthSite:
    """Return the site at the end of a marked block."""
    block = view.network.get_submodule(name)
    view.refuse_shared(name)
    steps = list(_steps(block))
    if type(block).forward is not nn.Sequential.forward or len(steps) < 2:
        raise NotGrowable(f"{name}: is not one layer after the other with an activation at the end")
    if not is_idempotent(steps[-1]):
        raise NotGrowable(f"{name}: ends in {type(steps[-1]).__name__}; it must end in {_TWICE}")
    activation, norm = steps.pop(), None
    if type(steps[-1]) in NORMS and len(steps) > 1:
        norm = steps.pop()
    return GrowthSite(name, neighbours(name, steps[-1], norm, activation))


def _steps(block: nn.Module) -> Iterator[nn.Module]:
    for part in block.children():
        if type(part) in (nn.Sequential, Block, GrownPart):
            yield from _steps(part)
        else:
            yield part


def layer_name(view: NetworkGraph, node: fx.Node) -> str | None:
    """Return the name of a node's layer if it is a convolution or linear layer."""
    return before(view.network, str(node.target)) if is_layer(view.module(node)) else None


def chain(view: NetworkGraph, name: str) -> GrowthSite:
    """Return the site behind the activation of a layer, wherever that is applied."""
    now = present(view.network, name)
    view.refuse_shared(now)
    node = next(each for each in view.nodes if each.op == "call_module" and each.target == now)
    tail = next((user for user in node.users if type(view.module(user)) in NORMS), node)
    if tail is not node:
        view.refuse_shared(str(tail.target))
    applied = next((user for user in tail.users if activation_of(view, user) is not None), None)
    activation = activation_of(view, applied) if applied is not None else None
    if applied is None or activation is None:
        raise NotGrowable(f"{name}: {_followers(view, tail)} comes after it; that must be {_TWICE}")
    like = neighbours(name, view.module(node), view.module(tail) if tail is not node else None, activation)
    if applied.op == "call_module" and not view.shared(str(applied.target)):
        return behind(view.network, GrowthSite(str(applied.target), like))
    if len(tail.users) > 1:
        raise NotGrowable(f"{name}: its output is also used without its activation, which is not its own")
    return behind(view.network, GrowthSite(str(tail.target), like, ahead=True))


def _followers(view: NetworkGraph, tail: fx.Node) -> str:
    modules = ((user, view.module(user)) for user in tail.users)
    return ", ".join(type(part).__name__ if part else user.name for user, part in modules) or "nothing"


def in_sequences(network: nn.Module) -> Iterator[str]:
    """Yield the layers in plain `nn.Sequential`s, for a network that cannot be traced."""
    for name, part in network.named_modules():
        if type(part) is nn.Sequential:
            inner = (f"{name}.{step}" if name else step for step, _ in part.named_children())
            yield from (before(network, each) for each in inner if is_layer(_built(network, each)))


def listed(view: NetworkGraph, name: str) -> GrowthSite:
    """Return the site behind the activation of a layer in a plain `nn.Sequential`."""
    parent, _, step = name.rpartition(".")
    steps = list(original(view.network, parent)._modules)
    following = [f"{parent}.{each}" if parent else each for each in steps[steps.index(step) :]]
    parts = [original(view.network, each) for each in following[:3]]
    norm = parts.pop(1) if len(parts) > 2 and type(parts[1]) in NORMS else None
    if len(parts) < 2 or not is_idempotent(parts[1]):
        what = type(parts[1]).__name__ if len(parts) > 1 else "nothing"
        raise NotGrowable(f"{name}: {what} comes after it; that must be {_TWICE}")
    for each in following[: 3 if norm is not None else 2]:
        view.refuse_shared(present(view.network, each))
    like = neighbours(name, parts[0], norm, parts[1])
    where = present(view.network, following[1 if norm is None else 2])
    return behind(view.network, GrowthSite(where, like))


def _built(network: nn.Module, now: str) -> nn.Module:
    part = network.get_submodule(now)
    return part.part if isinstance(part, GrownPart) else part


_SUMS = (operator.add, operator.iadd, torch.add, "add", "add_")
_KEEPING = nn.Dropout | nn.Dropout2d | nn.MaxPool2d | nn.AvgPool2d | nn.AdaptiveAvgPool2d
"""Layers that keep channels apart, and roughly their moments."""


def ends(view: NetworkGraph) -> dict[fx.Node, str]:
    """Return the activations of sums → the names of their sites: the activation, or the block it ends."""
    found = {}
    for node in view.nodes:
        applied = next((user for user in node.users if activation_of(view, user) is not None), None)
        if _is_sum(node) and applied is not None:
            name = _place(view, applied)
            if name is not None:
                found[applied] = before(view.network, name)
    return found


def _is_sum(node: fx.Node) -> bool:
    called = node.op in ("call_function", "call_method")
    return called and node.target in _SUMS and len(node.all_input_nodes) == 2


def _place(view: NetworkGraph, applied: fx.Node) -> str | None:
    """Return the part to grow behind: the activation if it is not shared, else the block that it ends."""
    if applied.op == "call_module" and not view.shared(str(applied.target)):
        return str(applied.target)
    outer = owners(applied)
    return outer[-1] if outer and _is_output(view, applied, outer[-1]) else None


def _is_output(view: NetworkGraph, applied: fx.Node, block: str) -> bool:
    """Return whether a node is the only output of a block, and not used inside it."""
    inside = {node for node in view.nodes if block in owners(node)}
    leaving = {node for node in inside if not inside.issuperset(node.users)}
    alone = leaving == {applied} and inside.isdisjoint(applied.users)
    return alone and not is_packed(applied, block)


def residual(view: NetworkGraph, applied: fx.Node, name: str) -> GrowthSite:
    """Return the site behind the activation of a sum."""
    place, activation, total = _place(view, applied), activation_of(view, applied), applied.all_input_nodes[0]
    sources = [source for source in map(partial(_source, view), total.all_input_nodes) if source]
    if place is None or activation is None or not sources:
        raise NotGrowable(f"{name}: no convolution or linear layer goes into its sum")
    if _channels(view, total) is None:
        raise NotGrowable(f"{name}: its sum is not, for all that is known, of as many channels on both sides")
    layer, norm = max(sources, key=lambda source: _kernel(view.module(source[0])))
    for each in filter(None, (layer, norm)):
        view.refuse_shared(str(each.target))
    like = neighbours(name, view.module(layer), view.module(norm) if norm else None, activation)
    return behind(view.network, GrowthSite(place, like, promise=partial(_expected, view, total, activation)))


def _source(view: NetworkGraph, node: fx.Node) -> tuple[fx.Node, fx.Node | None] | None:
    """Return the layer, and its normalisation, whose output is one side of a sum."""
    if type(view.module(node)) in LAYERS:
        return node, None
    if type(view.module(node)) in NORMS and type(view.module(node.all_input_nodes[0])) in LAYERS:
        return node.all_input_nodes[0], node
    return None


def _kernel(layer: Any) -> int:
    return prod(layer.kernel_size) if isinstance(layer, CONVOLUTIONS) else 1


def _channels(view: NetworkGraph, node: fx.Node) -> int | None:
    grown = _grown(view, node)
    part: Any = grown[0] if grown else view.module(node)
    if type(part) in NORMS:
        return int(part.num_features)
    if is_layer(part):
        return int(part.out_features if isinstance(part, nn.Linear) else part.out_channels)
    if not _passes(view, node):
        return None
    widths = {_channels(view, each) for each in node.all_input_nodes}
    return widths.pop() if len(widths) == 1 else None


def _grown(view: NetworkGraph, node: fx.Node) -> tuple[nn.Module, nn.Module | None] | None:
    """Return the last layer, and its normalisation, that has grown behind a node's layer."""
    place = around(view.network, str(node.target)) if node.op == "call_module" else None
    return newest(view.network, place) if place is not None else None


def _passes(view: NetworkGraph, node: fx.Node) -> bool:
    """Return whether a node keeps channels apart and their number."""
    part = view.module(node)
    return isinstance(part, _KEEPING) or _is_sum(node) or activation_of(view, node) is not None


def _expected(view: NetworkGraph, total: fx.Node, activation: nn.Module) -> Moments:
    """Return the expected moments behind the activation of a sum; a side without normalisation adds none."""
    return after(activation, _added([_promised(view, each) for each in total.all_input_nodes]))


def _promised(view: NetworkGraph, node: fx.Node) -> Moments | None:
    part, activation, grown = view.module(node), activation_of(view, node), _grown(view, node)
    norm: Any = grown[1] if grown else part if type(part) in NORMS else None
    if norm is not None and norm.running_mean is not None:
        return normalised(norm) if activation is None else expected(norm, activation)
    if grown:
        return None
    sides = [_promised(view, each) for each in node.all_input_nodes] if _passes(view, node) else []
    if not any(sides):
        return None
    return _added(sides) if activation is None else after(activation, _added(sides))


def _added(sides: list[Moments | None]) -> Moments:
    """Return the moments of a sum of independent terms."""
    known = [side for side in sides if side is not None]
    mean = torch.stack([side.mean.double() for side in known]).sum(0)
    return Moments(mean, torch.stack([side.variance.double() for side in known]).sum(0))


def blocks(network: nn.Module) -> list[str]:
    """Return the names that `deepen` takes, in forward order; growth does not change them.

    They are the marked blocks; without any, each convolution or linear layer whose activation may be applied
    twice, and each residual block that ends in such an activation.
    """
    return Finder(network).names()


class Finder:
    """A search for growth sites in a network."""

    def __init__(self, network: nn.Module) -> None:
        self.network = network
        self.view = NetworkGraph(network, without_growth(network))
        self.marked = [name for name, part in network.named_modules() if isinstance(part, Block)]
        self.sums = ends(self.view)

    def names(self) -> list[str]:
        """Return the names at which `site` finds one."""
        return [name for name in self._candidates() if self._fits(name)]

    def site(self, name: str) -> GrowthSite:
        """Return the site of that name, or raise NotGrowable."""
        candidates = self._candidates()
        if name not in candidates:
            raise NotGrowable(unknown("block", name, candidates))
        if name in self.marked:
            return marked(self.view, name)
        if not self.view.traced:
            return listed(self.view, name)
        applied = next((node for node, end in self.sums.items() if end == name), None)
        return chain(self.view, name) if applied is None else residual(self.view, applied, name)

    def _fits(self, name: str) -> bool:
        try:
            self.site(name)
        except NotGrowable:
            return False
        return True

    def _candidates(self) -> list[str]:
        if self.marked:
            return self.marked
        if not self.view.traced:
            return list(in_sequences(self.network))
        named = (self.sums.get(node) or layer_name(self.view, node) for node in self.view.nodes)
        return list(dict.fromkeys(name for name in named if name))
