"""Wider networks that compute what they computed before."""

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from rota.training.net2net.grown import NotGrowable
from rota.training.net2net.optimizer import refuse_foreign
from rota.training.net2net.replicas import Replicas
from rota.training.net2net.wider import Widening, apply


def widen(
    network: nn.Module,
    layer: str,
    width: int,
    *,
    optimizer: Optimizer | None = None,
    noise: float = 0.0,
    generator: torch.Generator | None = None,
) -> None:
    """Give a convolution or linear layer more units: copies of its own, which share their outgoing weights.

    Copies are drawn if there is a generator, otherwise made of one unit after the other. The network computes
    what it did, up to rounding: in evaluation mode, and in training mode but for dropout, which meets each
    copy by itself. `noise` tells copies apart: it is added to their incoming weights, in deviations of the
    layer's weights, and what the network computes then changes accordingly.

    Inputs are batches. A linear layer with batch normalisation behind it must have a flattening before it:
    otherwise its output might have positions, and these be what is normalised.

    The optimiser goes on with what the copies' gradients would have left in it. Either all of this is done,
    or there is an error and the network and the optimiser are as they were.
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
    """The names that `widen` takes, in forward order; layers that growth has put in are among them."""
    return Widening.possible(network)


def _disturb(copies: Tensor, deviation: float, generator: torch.Generator | None) -> None:
    source = generator if generator is not None else torch.Generator().manual_seed(0)
    drawn = torch.randn(copies.shape, generator=source, device=source.device)
    copies += deviation * drawn.to(copies)


def is_wide(network: nn.Module, layer: str, width: int) -> bool:
    """Whether a layer that can be made wider has as many units already."""
    return Widening.units_of(network, layer) >= width


def layer_in(network: nn.Module, block: str) -> str:
    """The layer of a block that can be made wider."""
    names = [name for name in layers(network) if name == block or name.startswith(f"{block}.")]
    if not names:
        others = ", ".join(layers(network))
        instead = f"of this network can be: {others}" if others else "nor can anything else of this network"
        raise NotGrowable(f"{block}: cannot be made wider; {instead}")
    return names[0]
