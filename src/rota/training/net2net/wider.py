"""What has to change in a network for one of its layers to have more units."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from torch import Tensor, fx, nn
from torch.optim import Optimizer

from rota.core.errors import unknown
from rota.training.net2net.flow import Reach, follow
from rota.training.net2net.graph import View, whole
from rota.training.net2net.grown import NotGrowable, before
from rota.training.net2net.identity import LAYERS, is_layer, refuse_computed
from rota.training.net2net.optimizer import converted, exchange
from rota.training.net2net.replicas import Replicas, remember, spread


@dataclass(frozen=True)
class Change:
    """One tensor that becomes wider."""

    part: nn.Module
    name: str
    axis: int
    replicas: Replicas
    share: int
    """Whether copies have the original's value (0) or a share of it (1); with gradients it is reversed."""

    @property
    def values(self) -> Tensor:
        """The tensor as it is."""
        values: Tensor = getattr(self.part, self.name)
        return values

    def wider(self) -> Tensor:
        """The tensor as it shall be."""
        return spread(self.values, self.axis, self.replicas, self.share)

    def state(self, known: Tensor, power: int) -> Tensor:
        """What an optimiser would know of it; `power` is 1 for means of gradients, 2 for squares."""
        return spread(known, self.axis, self.replicas, (1 - self.share) * power)


@dataclass(frozen=True)
class Widening:
    """A layer and all that its units reach."""

    view: View
    layer: nn.Module
    units: int
    """How many it has."""
    reach: Reach

    @classmethod
    def of(cls, network: nn.Module, name: str, width: int) -> "Widening":
        """What follows from making this layer wider, or why it cannot be."""
        found = cls._in(network, name)
        if width <= found.units:
            raise NotGrowable(f"{name}: has {found.units} units already; give more than that, not {width}")
        return found

    @classmethod
    def units_of(cls, network: nn.Module, name: str) -> int:
        """How many a layer has that can be wider."""
        return cls._in(network, name).units

    @classmethod
    def _in(cls, network: nn.Module, name: str) -> "Widening":
        view = View(network, whole(network))
        return cls._at(view, name, _node(view, name))

    @classmethod
    def possible(cls, network: nn.Module) -> list[str]:
        """The layers that can be wider, in forward order."""
        view = View(network, whole(network))
        return [name for name, node in _named(view).items() if cls._fits(view, name, node)]

    @classmethod
    def _fits(cls, view: View, name: str, node: fx.Node) -> bool:
        try:
            cls._at(view, name, node)
        except NotGrowable:
            return False
        return True

    @classmethod
    def _at(cls, view: View, name: str, node: fx.Node) -> "Widening":
        layer: Any = view.module(node)
        refuse_computed(name, layer)
        if getattr(layer, "groups", 1) != 1:
            raise NotGrowable(f"{name}: is a convolution in {layer.groups} groups, whose units are not alike")
        reach = follow(view, node, name)
        for each in (*reach.norms, *reach.consumers):
            refuse_computed(each, view.network.get_submodule(each))
        _refuse_tied(view, [str(node.target), *reach.norms, *reach.consumers])
        widening = cls(view, layer, layer.weight.shape[0], reach)
        _refuse_odd(widening, name)
        return widening

    def changes(self, replicas: Replicas) -> list[Change]:
        """Every tensor that becomes wider, the layer's own weights first."""
        own = [Change(self.layer, name, 0, replicas, 0) for name in ("weight", "bias")]
        for part in self.norms():
            names = ("weight", "bias", "running_mean", "running_var")
            own += [Change(part, name, 0, replicas.repeated(self.places(part)), 0) for name in names]
        for part in self.consumers():
            own.append(Change(part, "weight", 1, replicas.repeated(self.places(part)), 1))
        return [change for change in own if getattr(change.part, change.name) is not None]

    def norms(self) -> list[nn.Module]:
        """The normalisations that the units pass."""
        return [self.view.network.get_submodule(name) for name in self.reach.norms]

    def consumers(self) -> list[nn.Module]:
        """The layers that take the units in."""
        return [self.view.network.get_submodule(name) for name in self.reach.consumers]

    def places(self, part: Any) -> int:
        """How many numbers one unit is where it reaches a layer."""
        return int(_taken(part) // self.units)

    def resize(self, replicas: Replicas) -> None:
        """Tell the layers their new sizes, and what is a copy of what."""
        layer, width = self.layer, len(replicas.source)
        setattr(layer, "out_features" if isinstance(layer, nn.Linear) else "out_channels", width)
        remember(layer, 0, replicas)
        for part, axis in [(norm, 0) for norm in self.norms()] + [(each, 1) for each in self.consumers()]:
            remember(part, axis, replicas.repeated(self.places(part)))
            setattr(part, _size_name(part), width * self.places(part))


def apply(changes: list[Change], wider: list[Tensor], optimizer: Optimizer | None) -> None:
    """Put wider tensors in the place of narrow ones, in the network and in the optimiser."""
    # All that takes memory comes first, so that a lack of it leaves everything as it was.
    known = [None if optimizer is None else converted(optimizer, each.values, each.state) for each in changes]
    for change, values, state in zip(changes, wider, known, strict=True):
        narrow = change.values
        if not isinstance(narrow, nn.Parameter):
            setattr(change.part, change.name, values)
            continue
        new = nn.Parameter(values, requires_grad=narrow.requires_grad)
        setattr(change.part, change.name, new)
        if optimizer is not None:
            exchange(optimizer, narrow, new, state)


def _named(view: View) -> dict[str, fx.Node]:
    nodes = [node for node in view.nodes if is_layer(view.module(node))]
    return {before(view.network, str(node.target)): node for node in nodes}


def _node(view: View, name: str) -> fx.Node:
    if not view.traced:
        raise NotGrowable(f"{name}: what the network runs depends on its input; nothing can be followed")
    nodes = _named(view)
    if name not in nodes:
        raise NotGrowable(unknown("layer", name, nodes))
    return nodes[name]


def _refuse_tied(view: View, names: list[str]) -> None:
    """Weights that others use too would change for them."""
    held = Counter(id(weight) for _, weight in view.network.named_parameters(remove_duplicate=False))
    read = {str(node.target).rpartition(".")[0] for node in view.nodes if node.op == "get_attr"}
    for name in names:
        view.refuse_shared(name)
        weights = view.network.get_submodule(name).parameters()
        if name in read or any(held[id(weight)] > 1 for weight in weights):
            raise NotGrowable(f"{name}: its weights are also used elsewhere, where they must not change")


def _refuse_odd(widening: Widening, name: str) -> None:
    """Sizes that do not follow from the layer's own would be a mistake in what was followed."""
    flat = isinstance(widening.layer, nn.Linear)
    for part in [*widening.norms(), *widening.consumers()]:
        if _taken(part) != widening.units * (1 if flat else widening.places(part)):
            raise NotGrowable(
                f"{name}: a layer behind it takes in {_taken(part)}, not {widening.units} units"
            )


def _taken(part: Any) -> int:
    return int(getattr(part, _size_name(part)))


def _size_name(part: nn.Module) -> str:
    if isinstance(part, nn.Linear):
        return "in_features"
    return "in_channels" if isinstance(part, LAYERS) else "num_features"
