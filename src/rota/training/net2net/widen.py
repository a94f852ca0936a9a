"""Wider networks: units are replicated, and the layers behind them adjusted."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.optim import Optimizer

from rota.core.errors import unknown
from rota.training.net2net.graph import NetworkGraph, Reach, follow, whole
from rota.training.net2net.identity import LAYERS, NotGrowable, before, is_layer, refuse_computed
from rota.training.net2net.optimizer import converted, exchange, refuse_foreign


@dataclass(frozen=True)
class Replicas:
    """The unit that each unit of a wider layer is a copy of; originals come first."""

    source: Tensor

    @classmethod
    def choose(cls, units: int, width: int, generator: torch.Generator | None) -> "Replicas":
        """Return originals, then copies: drawn by a generator, or else of one unit after the other."""
        more = torch.arange(width - units) % units
        if generator is not None:
            more = torch.randint(units, (width - units,), generator=generator, device=generator.device).cpu()
        return cls(torch.cat([torch.arange(units), more]))

    def repeated(self, times: int) -> "Replicas":
        """Return the same for units that have several consecutive positions each."""
        positions = torch.arange(times)
        return Replicas((self.source[:, None] * times + positions).reshape(-1))

    @property
    def share(self) -> Tensor:
        """For each unit, 1 divided by the number of copies of its original."""
        return 1.0 / torch.bincount(self.source)[self.source]


def spread(values: Tensor, axis: int, replicas: Replicas, power: int = 0) -> Tensor:
    """Return a tensor with a wider axis, each entry times its share to a power, in the same memory layout."""
    narrow, units = values.detach(), values.shape[axis]
    copies = narrow.index_select(axis, replicas.source[units:].to(values.device))
    shape = [*narrow.shape[:axis], len(replicas.source), *narrow.shape[axis + 1 :]]
    wider = torch.empty_permuted(shape, narrow.dim_order(), dtype=narrow.dtype, device=narrow.device)
    share = replicas.share**power
    # Each number is written once: most of the time goes into touching new memory.
    _scale(narrow, share[:units], axis, wider.narrow(axis, 0, units))
    _scale(copies, share[units:], axis, wider.narrow(axis, units, copies.shape[axis]))
    return wider


def _scale(values: Tensor, factor: Tensor, axis: int, into: Tensor) -> None:
    torch.mul(values, _along(factor, axis, values), out=into)


def _along(factor: Tensor, axis: int, values: Tensor) -> Tensor:
    shape = [-1 if each == axis else 1 for each in range(values.dim())]
    return factor.to(values).reshape(shape)


def remember(part: nn.Module, axis: int, replicas: Replicas) -> None:
    """Note on a layer that an axis of its weights was widened."""
    past: dict[int, tuple[tuple[int, ...], ...]] = getattr(part, "widened", {})
    part.widened = past | {axis: (*past.get(axis, ()), tuple(replicas.source.tolist()))}  # type: ignore[assignment]


def recalled(part: nn.Module, axis: int, now: int, then: int) -> list[Replicas] | None:
    """Return the steps from `then` to `now` entries of an axis, the last first; None if not known."""
    steps: Any = getattr(part, "widened", {}).get(axis, ())
    taken: list[Replicas] = []
    for step in reversed(steps):
        if now == then:
            break
        taken.append(Replicas(torch.tensor(step)))
        now = max(step) + 1
    return taken if now == then else None


def gather(values: Tensor, axis: int, replicas: Replicas) -> Tensor:
    """Add copies to their originals and return these."""
    shape = list(values.shape)
    shape[axis] = int(replicas.source.max()) + 1
    return values.new_zeros(shape).index_add_(axis, replicas.source.to(values.device), values.detach())


def leading(values: Tensor, axis: int, replicas: Replicas, power: int = 0) -> Tensor:
    """Return the originals, each divided by its share to a power."""
    units = int(replicas.source.max()) + 1
    first = values.detach().narrow(axis, 0, units)
    return first / _along(replicas.share[:units] ** power, axis, first) if power else first


@dataclass(frozen=True)
class WiderTensor:
    """One tensor that is widened."""

    part: nn.Module
    name: str
    axis: int
    replicas: Replicas
    share: int
    """Power of the share that copies get: 0 for the full value, 1 for a share; reversed for gradients."""

    @property
    def values(self) -> Tensor:
        """The current tensor."""
        values: Tensor = getattr(self.part, self.name)
        return values

    def wider(self) -> Tensor:
        """Return the widened tensor."""
        return spread(self.values, self.axis, self.replicas, self.share)

    def state(self, known: Tensor, power: int) -> Tensor:
        """Return the widened state of an optimiser; `power` is 1 for means of gradients, 2 for squares."""
        return spread(known, self.axis, self.replicas, (1 - self.share) * power)


@dataclass(frozen=True)
class Widening:
    """A layer to widen, and all layers that its units reach."""

    view: NetworkGraph
    layer: nn.Module
    units: int
    """Number of units of the layer."""
    reach: Reach

    @classmethod
    def of(cls, network: nn.Module, name: str, width: int) -> "Widening":
        """Return what widening this layer changes, or raise NotGrowable."""
        found = cls._in(network, name)
        if width <= found.units:
            raise NotGrowable(f"{name}: has {found.units} units already; give more than that, not {width}")
        return found

    @classmethod
    def units_of(cls, network: nn.Module, name: str) -> int:
        """Return the number of units of a layer that can be widened."""
        return cls._in(network, name).units

    @classmethod
    def _in(cls, network: nn.Module, name: str) -> "Widening":
        view = NetworkGraph(network, whole(network))
        return cls._at(view, name, _node(view, name))

    @classmethod
    def possible(cls, network: nn.Module) -> list[str]:
        """Return the layers that can be widened, in forward order."""
        view = NetworkGraph(network, whole(network))
        return [name for name, node in _named(view).items() if cls._fits(view, name, node)]

    @classmethod
    def _fits(cls, view: NetworkGraph, name: str, node: fx.Node) -> bool:
        try:
            cls._at(view, name, node)
        except NotGrowable:
            return False
        return True

    @classmethod
    def _at(cls, view: NetworkGraph, name: str, node: fx.Node) -> "Widening":
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

    def changes(self, replicas: Replicas) -> list[WiderTensor]:
        """Return every tensor that is widened, the layer's own weights first."""
        own = [WiderTensor(self.layer, name, 0, replicas, 0) for name in ("weight", "bias")]
        for part in self.norms():
            names = ("weight", "bias", "running_mean", "running_var")
            own += [WiderTensor(part, name, 0, replicas.repeated(self.positions(part)), 0) for name in names]
        for part in self.consumers():
            own.append(WiderTensor(part, "weight", 1, replicas.repeated(self.positions(part)), 1))
        return [change for change in own if getattr(change.part, change.name) is not None]

    def norms(self) -> list[nn.Module]:
        """Return the normalisations of the units."""
        return [self.view.network.get_submodule(name) for name in self.reach.norms]

    def consumers(self) -> list[nn.Module]:
        """Return the layers that consume the units."""
        return [self.view.network.get_submodule(name) for name in self.reach.consumers]

    def positions(self, part: Any) -> int:
        """Return how many inputs of a layer one unit is."""
        return int(_taken(part) // self.units)

    def resize(self, replicas: Replicas) -> None:
        """Set the new sizes of the layers, and note what is a copy of what."""
        layer, width = self.layer, len(replicas.source)
        setattr(layer, "out_features" if isinstance(layer, nn.Linear) else "out_channels", width)
        remember(layer, 0, replicas)
        for part, axis in [(norm, 0) for norm in self.norms()] + [(each, 1) for each in self.consumers()]:
            remember(part, axis, replicas.repeated(self.positions(part)))
            setattr(part, _size_name(part), width * self.positions(part))


def apply(changes: list[WiderTensor], wider: list[Tensor], optimizer: Optimizer | None) -> None:
    """Replace narrow tensors by wider ones, in the network and in the optimiser."""
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


def _named(view: NetworkGraph) -> dict[str, fx.Node]:
    nodes = [node for node in view.nodes if is_layer(view.module(node))]
    return {before(view.network, str(node.target)): node for node in nodes}


def _node(view: NetworkGraph, name: str) -> fx.Node:
    if not view.traced:
        raise NotGrowable(f"{name}: what the network runs depends on its input; nothing can be followed")
    nodes = _named(view)
    if name not in nodes:
        raise NotGrowable(unknown("layer", name, nodes))
    return nodes[name]


def _refuse_tied(view: NetworkGraph, names: list[str]) -> None:
    """Raise if other layers use the same weights."""
    held = Counter(id(weight) for _, weight in view.network.named_parameters(remove_duplicate=False))
    read = {str(node.target).rpartition(".")[0] for node in view.nodes if node.op == "get_attr"}
    for name in names:
        view.refuse_shared(name)
        weights = view.network.get_submodule(name).parameters()
        if name in read or any(held[id(weight)] > 1 for weight in weights):
            raise NotGrowable(f"{name}: its weights are also used elsewhere, where they must not change")


def _refuse_odd(widening: Widening, name: str) -> None:
    """Raise if a size behind the layer does not follow from its own."""
    flat = isinstance(widening.layer, nn.Linear)
    for part in [*widening.norms(), *widening.consumers()]:
        if _taken(part) != widening.units * (1 if flat else widening.positions(part)):
            raise NotGrowable(
                f"{name}: a layer behind it takes in {_taken(part)}, not {widening.units} units"
            )


def _taken(part: Any) -> int:
    return int(getattr(part, _size_name(part)))


def _size_name(part: nn.Module) -> str:
    if isinstance(part, nn.Linear):
        return "in_features"
    return "in_channels" if isinstance(part, LAYERS) else "num_features"


def widen(
    network: nn.Module,
    layer: str,
    width: int,
    *,
    optimizer: Optimizer | None = None,
    noise: float = 0.0,
    generator: torch.Generator | None = None,
) -> None:
    """Add units to a convolution or linear layer: copies of its own, which share their outgoing weights.

    Copies are drawn by a generator, or else made of one unit after the other. The network computes the same,
    up to rounding: in evaluation mode, and in training mode apart from dropout, which treats each copy by
    itself. `noise` tells copies apart: it is added to their incoming weights, in standard deviations of the
    layer's weights, and changes what the network computes.

    Inputs are batches. A linear layer before batch normalisation needs a flattening before it: otherwise its
    output might have positions, and these would be normalised.

    The optimiser gets the state that the copies' gradients would have left. On an error the network and the
    optimiser are unchanged.
    """
    if optimizer is not None:
        refuse_foreign(optimizer, network)
    widening = Widening.of(network, layer, width)
    replicas = Replicas.choose(widening.units, width, generator)
    changes = widening.changes(replicas)
    wider = [change.wider() for change in changes]
    if noise:
        _disturb(wider[0][widening.units :], noise * float(changes[0].values.detach().std()), generator)
    apply(changes, wider, optimizer)
    widening.resize(replicas)


def layers(network: nn.Module) -> list[str]:
    """Return the names that `widen` takes, in forward order, including grown layers."""
    return Widening.possible(network)


def _disturb(copies: Tensor, deviation: float, generator: torch.Generator | None) -> None:
    source = generator if generator is not None else torch.Generator().manual_seed(0)
    drawn = torch.randn(copies.shape, generator=source, device=source.device)
    copies += deviation * drawn.to(copies)


def is_wide(network: nn.Module, layer: str, width: int) -> bool:
    """Return whether a layer that can be widened already has that many units."""
    return Widening.units_of(network, layer) >= width


def layer_in(network: nn.Module, block: str) -> str:
    """Return the layer of a block that can be widened."""
    names = [name for name in layers(network) if name == block or name.startswith(f"{block}.")]
    if not names:
        others = ", ".join(layers(network))
        instead = f"of this network can be: {others}" if others else "nor can anything else of this network"
        raise NotGrowable(f"{block}: cannot be made wider; {instead}")
    return names[0]
