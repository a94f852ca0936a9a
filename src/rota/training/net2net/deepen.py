"""Deeper networks that compute the same function."""

from torch import Tensor, nn
from torch.optim import Optimizer

from rota.training.models.networks import Block
from rota.training.net2net.identity import (
    GrownPart,
    Moments,
    Neighbours,
    expected,
    identity_layer,
    identity_norm,
    measured,
)
from rota.training.net2net.optimizer import adopt, refuse_foreign
from rota.training.net2net.sites import Finder, GrowthSite, another


def deepen(
    network: nn.Module, block: str, *, optimizer: Optimizer | None = None, calibration: Tensor | None = None
) -> None:
    """Add an identity layer behind a block, with normalisation and activation like the block's.

    In evaluation mode the network computes the same, up to rounding; without batch normalisation in the
    block, in training mode too. With it, the new normalisation moves each channel of a batch from the batch's
    mean and deviation to those it was made for; only a batch that has these is left unchanged. They are
    measured on `calibration`, a batch of inputs, or else follow from the block's own normalisation, whose
    output is assumed Gaussian. Running statistics of other layers do not change.

    The optimiser keeps its state and gets the new weights, with the settings of the block's. On an error the
    network and the optimiser are unchanged.
    """
    if optimizer is not None:
        refuse_foreign(optimizer, network)
    site = Finder(network).site(block)
    new = _layers(site.like, _moments(network, site, calibration))
    _append(network, site, [layer for layer, _ in new])
    if optimizer is not None:
        adopt(optimizer, network, new)


def _layers(like: Neighbours, moments: Moments | None) -> list[tuple[nn.Module, nn.Module]]:
    """Return each new layer with the one whose optimiser settings it gets."""
    new = [(identity_layer(like.layer), like.layer)]
    if like.norm is not None and moments is not None:
        affine = any(True for _ in like.norm.parameters())
        new.append((identity_norm(like.norm, moments), like.norm if affine else like.layer))
    return [*new, (another(like.activation), like.activation)]


def _moments(network: nn.Module, site: GrowthSite, calibration: Tensor | None) -> Moments | None:
    if site.like.norm is None:
        return None
    if calibration is None and site.promise is not None:
        return site.promise()
    if calibration is None:
        return expected(site.like.norm, site.like.activation)
    part = network.get_submodule(site.part)
    return measured(network, part, calibration, site.like.activation if site.ahead else nn.Identity())


def _append(network: nn.Module, site: GrowthSite, layers: list[nn.Module]) -> None:
    if site.ahead:
        layers = [layers[-1], *layers[:-1]]
    part = network.get_submodule(site.part)
    if isinstance(part, Block):
        part.extend(layers)
        return
    if not isinstance(part, GrownPart):
        parent, _, name = site.part.rpartition(".")
        part = GrownPart(part)
        network.get_submodule(parent).register_module(name, part)
    part.grow(layers)
