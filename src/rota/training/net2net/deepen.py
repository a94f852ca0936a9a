"""Deeper networks that compute what they computed before."""

from torch import Tensor, nn
from torch.optim import Optimizer

from rota.training.blocks import Block
from rota.training.net2net.identity import (
    Grown,
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
    """Put a layer behind a block that passes on what it is given, with normalisation and activation as there.

    In evaluation mode the network computes what it did, up to rounding; without batch normalisation in the
    block, in training mode too. With it, the new normalisation there moves each channel of a batch from the
    batch's mean and deviation to those it was made for: what is computed is the same where a batch has just
    these. They are measured on `calibration`, a batch of inputs, or else follow from the block's own
    normalisation, taking what it puts out for Gaussian. Running statistics of other layers are not touched.

    The optimiser goes on as it was, with the new weights beside those of the block. Either all of this is
    done, or there is an error and the network and the optimiser are as they were.
    """
    if optimizer is not None:
        refuse_foreign(optimizer, network)
    site = Finder(network).site(block)
    new = _layers(site.like, _moments(network, site, calibration))
    _append(network, site, [layer for layer, _ in new])
    if optimizer is not None:
        adopt(optimizer, network, new)


def _layers(like: Neighbours, moments: Moments | None) -> list[tuple[nn.Module, nn.Module]]:
    """Each new layer with the one beside whose weights its own are trained."""
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
    if not isinstance(part, Grown):
        parent, _, name = site.part.rpartition(".")
        part = Grown(part)
        network.get_submodule(parent).register_module(name, part)
    part.grow(layers)
