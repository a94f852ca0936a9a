"""Mean and variance of each channel behind a normalisation and an activation."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from rota.core.errors import InputError
from rota.training.statistics import Statistics


@dataclass(frozen=True)
class Moments:
    """Mean and variance of each channel."""

    mean: Tensor
    variance: Tensor


def expected(norm: Any, activation: nn.Module) -> Moments:
    """What a normalisation's own numbers promise behind the activation.

    A normalised channel is taken for Gaussian with mean β and deviation γ. A normalisation that still is the
    identity promises what it was made for.
    """
    if _is_identity(norm):
        return Moments(norm.running_mean, norm.running_var)
    return after(activation, normalised(norm))


def _is_identity(norm: Any) -> bool:
    """Whether γ and β undo what the running statistics do, up to rounding: as `identity_norm` makes them."""
    if norm.weight is None or norm.bias is None or not torch.equal(norm.bias, norm.running_mean):
        return False
    made, bit = (norm.running_var.double() + norm.eps).sqrt(), torch.finfo(norm.weight.dtype).eps
    return torch.allclose(norm.weight.double(), made, rtol=bit, atol=0.0)


def normalised(norm: Any) -> Moments:
    """What a normalisation puts out in training mode: β and γ²."""
    own = norm.running_mean
    shift = torch.zeros_like(own) if norm.bias is None else norm.bias.detach()
    scale = torch.ones_like(own) if norm.weight is None else norm.weight.detach()
    return Moments(shift, scale**2)


def after(activation: nn.Module, before: Moments) -> Moments:
    """The moments behind an activation of what is Gaussian before it."""
    if isinstance(activation, nn.Hardtanh):
        return clipped(before, activation.min_val, activation.max_val)
    if isinstance(activation, nn.ReLU):
        return clipped(before, 0.0, float("inf"))
    return before


def clipped(gaussian: Moments, low: float, high: float) -> Moments:
    """The moments of a Gaussian that is held between two bounds.

    It is low + h(low) − h(high), where h(t) is what sticks out above t: its mean is σ φ(z) − (t − μ) Φ(−z)
    and its mean square (σ² + (t − μ)²) Φ(−z) − σ (t − μ) φ(z), with z = (t − μ)/σ.
    """
    mean, deviation = gaussian.mean.double(), gaussian.variance.double().clamp_min(1e-12).sqrt()
    first, square = _above(mean, deviation, low)
    if high < float("inf"):
        over, over_square = _above(mean, deviation, high)
        # where both stick out, that above `low` is longer by high − low
        square = square - over_square - 2 * (high - low) * over
        first = first - over
    return Moments(low + first, (square - first**2).clamp_min(0.0))


def _above(mean: Tensor, deviation: Tensor, bound: float) -> tuple[Tensor, Tensor]:
    """Mean and mean square of what sticks out above a bound."""
    gap = bound - mean
    z = gap / deviation
    share = torch.special.ndtr(-z)
    density = torch.exp(-0.5 * z**2) / (2 * torch.pi) ** 0.5
    return deviation * density - gap * share, (deviation**2 + gap**2) * share - deviation * gap * density


def measured(network: nn.Module, part: nn.Module, batch: Tensor, ahead: nn.Module) -> Moments:
    """The moments of what a part of the network puts out for a batch, normalised as in training.

    `ahead` is applied to it first. The network is left as it was, its running statistics and mode included.
    """
    seen: list[Tensor] = []

    def see(_part: nn.Module, _inputs: Any, output: Tensor) -> None:
        seen.append(ahead(output.clone()))

    handle = part.register_forward_hook(see)
    try:
        with _on_trial(network), torch.no_grad():
            network(batch)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise InputError(f"calibration: the network does not take this batch ({error})") from None
    finally:
        handle.remove()
    return _moments(seen)


def _moments(seen: list[Tensor]) -> Moments:
    if not seen:
        raise InputError("calibration: the network does not run the block for this batch; leave it out")
    output = seen[0].double()
    others = [axis for axis in range(output.dim()) if axis != 1]
    variance, mean = torch.var_mean(output, dim=others, correction=0)
    if not bool(torch.isfinite(variance).all()):
        raise InputError("calibration: what the block puts out for this batch is not finite; give another")
    return Moments(mean, variance)


@contextmanager
def _on_trial(network: nn.Module) -> Iterator[None]:
    """Normalisations use the batch and keep nothing of it; nothing is dropped at random."""
    modes = {module: module.training for module in network.modules()}
    statistics = Statistics(network)
    try:
        for module in modes:
            module.training = bool(vars(module).get("track_running_stats"))
        yield
    finally:
        statistics.restore()
        for module, mode in modes.items():
            module.training = mode
