"""One place where new layers can go."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from rota.training.net2net.grown import NotGrowable, around
from rota.training.net2net.identity import CONVOLUTIONS, NORMS, Neighbours, is_layer, refuse_computed
from rota.training.net2net.moments import Moments


@dataclass(frozen=True)
class Site:
    """A place for new layers: behind a part of the network."""

    part: str
    """The dotted name of that part now."""
    like: Neighbours
    ahead: bool = False
    """Whether the part comes before its activation; the new layers then begin with one."""
    promise: Callable[[], Moments] | None = None
    """What to expect there, if it is more than the normalisation and the activation tell."""


def behind(network: nn.Module, site: Site) -> Site:
    """The site itself, or behind what has already grown there."""
    place = around(network, site.part)
    if place is None:
        return site
    layer, norm = newest(network, place)
    for part in filter(None, (layer, norm)):
        refuse_computed(place, part)
    return replace(site, part=place, like=replace(site.like, layer=layer, norm=norm), promise=None)


def newest(network: nn.Module, place: str) -> tuple[nn.Module, nn.Module | None]:
    """The last layer, and its normalisation, of what has grown in a place."""
    parts = list(network.get_submodule(place).children())[::-1]
    layer = next(part for part in parts if is_layer(part))
    return layer, next((part for part in parts if type(part) in NORMS), None)


def neighbours(name: str, layer: Any, norm: Any, activation: nn.Module) -> Neighbours:
    """The three, unless no layer behind them could pass on what it is given."""
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
