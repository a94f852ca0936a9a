"""Sites behind the activation that follows the sum of a residual block."""

import operator
from functools import partial
from math import prod
from typing import Any

import torch
from torch import fx, nn

from rota.training.net2net.activation import activation_of
from rota.training.net2net.graph import View, is_packed, owners
from rota.training.net2net.grown import NotGrowable, around, before
from rota.training.net2net.identity import CONVOLUTIONS, LAYERS, NORMS, is_layer
from rota.training.net2net.moments import Moments, after, expected, normalised
from rota.training.net2net.site import Site, behind, neighbours, newest

_SUMS = (operator.add, operator.iadd, torch.add, "add", "add_")
_KEEPING = nn.Dropout | nn.Dropout2d | nn.MaxPool2d | nn.AvgPool2d | nn.AdaptiveAvgPool2d
"""Layers that leave channels apart, and their moments roughly as they are."""


def ends(view: View) -> dict[fx.Node, str]:
    """The activations of sums, with the names of their sites: of the activation, or of the block it ends."""
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


def _place(view: View, applied: fx.Node) -> str | None:
    """The part to put new layers behind: the activation if it is not shared, or the block that it ends."""
    if applied.op == "call_module" and not view.shared(str(applied.target)):
        return str(applied.target)
    outer = owners(applied)
    return outer[-1] if outer and _is_output(view, applied, outer[-1]) else None


def _is_output(view: View, applied: fx.Node, block: str) -> bool:
    """Whether a node is all that leaves a block, and does not go on inside it."""
    inside = {node for node in view.nodes if block in owners(node)}
    leaving = {node for node in inside if not inside.issuperset(node.users)}
    alone = leaving == {applied} and inside.isdisjoint(applied.users)
    return alone and not is_packed(applied, block)


def residual(view: View, applied: fx.Node, name: str) -> Site:
    """Behind the activation of a sum."""
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
    return behind(view.network, Site(place, like, promise=partial(_expected, view, total, activation)))


def _source(view: View, node: fx.Node) -> tuple[fx.Node, fx.Node | None] | None:
    """The layer, and its normalisation, whose output one side of a sum is."""
    if type(view.module(node)) in LAYERS:
        return node, None
    if type(view.module(node)) in NORMS and type(view.module(node.all_input_nodes[0])) in LAYERS:
        return node.all_input_nodes[0], node
    return None


def _kernel(layer: Any) -> int:
    return prod(layer.kernel_size) if isinstance(layer, CONVOLUTIONS) else 1


def _channels(view: View, node: fx.Node) -> int | None:
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


def _grown(view: View, node: fx.Node) -> tuple[nn.Module, nn.Module | None] | None:
    """The last layer, and its normalisation, of what has grown behind the layer of a node."""
    place = around(view.network, str(node.target)) if node.op == "call_module" else None
    return newest(view.network, place) if place is not None else None


def _passes(view: View, node: fx.Node) -> bool:
    """Whether a node leaves channels apart and as many as they are."""
    part = view.module(node)
    return isinstance(part, _KEEPING) or _is_sum(node) or activation_of(view, node) is not None


def _expected(view: View, total: fx.Node, activation: nn.Module) -> Moments:
    """What the normalisations before a sum promise behind its activation; a side without one adds nothing."""
    return after(activation, _added([_promised(view, each) for each in total.all_input_nodes]))


def _promised(view: View, node: fx.Node) -> Moments | None:
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
    """The moments of a sum of what is independent."""
    known = [side for side in sides if side is not None]
    mean = torch.stack([side.mean.double() for side in known]).sum(0)
    return Moments(mean, torch.stack([side.variance.double() for side in known]).sum(0))
