"""New layers that compute the identity and fit their neighbours and their statistics."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from rota.core.errors import InputError
from rota.training.task import Statistics

_ORIGINAL = "original"


class NotGrowable(InputError):
    """The network cannot grow there without changing what it computes; it is unchanged."""


class GrownPart(nn.Sequential):
    """A part of a network, followed by the layers that growth has added."""

    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.add_module(_ORIGINAL, part)
        self.train(part.training)

    @property
    def part(self) -> nn.Module:
        """The original part."""
        return self[0]

    @property
    def new(self) -> list[nn.Module]:
        """The added layers."""
        return list(self)[1:]

    def forward(self, *given: Any, **named: Any) -> Any:
        """Run the part with its own arguments, then each added layer on the result."""
        output = self.part(*given, **named)
        for layer in self.new:
            output = layer(output)
        return output

    def __getattr__(self, name: str) -> Any:
        """Look up attributes that only the part has, such as its weight.

        Special names are not forwarded: how the part is copied, for one, holds for the part alone.
        """
        try:
            return super().__getattr__(name)
        except AttributeError:
            part = self.__dict__.get("_modules", {}).get(_ORIGINAL)
            if part is None or name.startswith("__"):
                raise
        return getattr(part, name)

    def grow(self, layers: Iterable[nn.Module]) -> None:
        """Add layers at the end, under names that no submodule of the part has."""
        for layer in layers:
            self.add_module(f"new{len(self)}", layer)


def original(network: nn.Module, name: str) -> nn.Module:
    """Return the part that had this dotted name before growth."""
    return network.get_submodule(present(network, name))


def present(network: nn.Module, name: str) -> str:
    """Return the present dotted name of a part that had this one before growth."""
    part, steps = network, []
    for step in [*filter(None, name.split(".")), None]:
        if isinstance(part, GrownPart) and step not in part._modules:
            part = part.part
            steps.append(_ORIGINAL)
        if step is not None:
            part = part.get_submodule(step)
            steps.append(step)
    return ".".join(steps)


def before(network: nn.Module, name: str) -> str:
    """Return the dotted name of a part or weight before growth; new ones keep theirs."""
    part: Any = network
    steps = []
    for step in name.split("."):
        if not (isinstance(part, GrownPart) and step == _ORIGINAL):
            steps.append(step)
        part = part._modules.get(step) if part is not None else None
    return ".".join(steps)


def around(network: nn.Module, name: str) -> str | None:
    """Return the dotted name of the growth around a part, or None."""
    parent, _, step = name.rpartition(".")
    return parent if step == _ORIGINAL and isinstance(network.get_submodule(parent), GrownPart) else None


@dataclass(frozen=True)
class Moments:
    """Mean and variance of each channel."""

    mean: Tensor
    variance: Tensor


def expected(norm: Any, activation: nn.Module) -> Moments:
    """Return the moments behind a normalisation and its activation.

    A normalised channel is assumed Gaussian with mean β and deviation γ. A normalisation that is still the
    identity gives the moments that it was made for.
    """
    if _is_identity(norm):
        return Moments(norm.running_mean, norm.running_var)
    return after(activation, normalised(norm))


def _is_identity(norm: Any) -> bool:
    """Return whether γ and β undo the running statistics, up to rounding, as `identity_norm` makes them."""
    if norm.weight is None or norm.bias is None or not torch.equal(norm.bias, norm.running_mean):
        return False
    made, bit = (norm.running_var.double() + norm.eps).sqrt(), torch.finfo(norm.weight.dtype).eps
    return torch.allclose(norm.weight.double(), made, rtol=bit, atol=0.0)


def normalised(norm: Any) -> Moments:
    """Return the moments of a normalisation's output in training mode: β and γ²."""
    own = norm.running_mean
    shift = torch.zeros_like(own) if norm.bias is None else norm.bias.detach()
    scale = torch.ones_like(own) if norm.weight is None else norm.weight.detach()
    return Moments(shift, scale**2)


def after(activation: nn.Module, before: Moments) -> Moments:
    """Return the moments behind an activation of a Gaussian input."""
    if isinstance(activation, nn.Hardtanh):
        return clipped(before, activation.min_val, activation.max_val)
    if isinstance(activation, nn.ReLU):
        return clipped(before, 0.0, float("inf"))
    return before


def clipped(gaussian: Moments, low: float, high: float) -> Moments:
    """Return the moments of a Gaussian that is clipped between two bounds.

    It is low + h(low) − h(high), where h(t) is the excess above t: its mean is σ φ(z) − (t − μ) Φ(−z) and its
    mean square (σ² + (t − μ)²) Φ(−z) − σ (t − μ) φ(z), with z = (t − μ)/σ.
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
    """Return mean and mean square of the excess above a bound."""
    gap = bound - mean
    z = gap / deviation
    share = torch.special.ndtr(-z)
    density = torch.exp(-0.5 * z**2) / (2 * torch.pi) ** 0.5
    return deviation * density - gap * share, (deviation**2 + gap**2) * share - deviation * gap * density


def measured(network: nn.Module, part: nn.Module, batch: Tensor, ahead: nn.Module) -> Moments:
    """Return the moments of a part's output for a batch, normalised as in training.

    `ahead` is applied to the output first. The network, its running statistics and its mode do not change.
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
    """Let normalisations use the batch without storing it, and switch off dropout."""
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


CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
LAYERS = (nn.Linear, *CONVOLUTIONS)
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


@dataclass(frozen=True)
class Neighbours:
    """The layers that new ones imitate: a convolution or linear layer, its normalisation, its activation."""

    layer: nn.Module
    norm: nn.Module | None
    activation: nn.Module


def is_layer(part: nn.Module | None) -> bool:
    """Return whether a part is a convolution or linear layer, also a parametrised one."""
    return type(part) in LAYERS or (isinstance(part, LAYERS) and is_parametrized(part))


def refuse_computed(name: str, part: nn.Module) -> None:
    """Raise if a part's weights are parametrised, as they cannot be changed or imitated."""
    if is_parametrized(part) or not {"weight", "bias"} <= part._parameters.keys():
        ways = "as with weight_norm, spectral_norm or pruning"
        raise NotGrowable(f"{name}: its weights are computed from others, {ways}; remove that first")


def identity_layer(like: Any) -> nn.Module:
    """Return an identity layer of the kind of `like`, as wide as the output of `like`."""
    if isinstance(like, nn.Linear):
        layer = _blank(like, like.out_features, like.out_features)
        _write_identity(layer.weight, 1)
    else:
        padding = tuple(size // 2 for size in like.kernel_size)
        width, kernel = like.out_channels, like.kernel_size
        layer = _blank(like, width, width, kernel, padding=padding, groups=like.groups)
        _write_identity(layer.weight, like.groups)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return _with_freedom_of(like, layer)


def _write_identity(weight: Tensor, groups: int) -> None:
    """Set the kernel's centre to 1 from each channel to itself, and all else to 0."""
    channel = torch.arange(weight.shape[0], device=weight.device)
    middle = [torch.full_like(channel, size // 2) for size in weight.shape[2:]]
    with torch.no_grad():
        weight.zero_()
        weight[channel, channel % (len(channel) // groups), *middle] = 1.0


def identity_norm(like: Any, moments: Moments) -> nn.Module:
    """Return a batch normalisation that is the identity in evaluation mode.

    In training mode it moves each channel from the batch's moments to these.
    """
    own = like.running_mean
    norm = type(like)(like.num_features, like.eps, like.momentum, device=own.device, dtype=own.dtype)
    with torch.no_grad():
        norm.running_mean.copy_(moments.mean)
        norm.running_var.copy_(moments.variance)
        norm.weight.copy_((moments.variance.double() + like.eps).sqrt())
        norm.bias.copy_(moments.mean)
    return _with_freedom_of(like, norm)


def _blank(like: Any, *sizes: Any, **options: Any) -> Any:
    """Return a layer of the same class and number format, with uninitialised weights."""
    weight = like.weight
    options |= {"bias": like.bias is not None, "dtype": weight.dtype, "device": weight.device}
    return nn.utils.skip_init(type(like), *sizes, **options)  # type: ignore[no-untyped-call]


def _with_freedom_of(like: nn.Module, new: nn.Module) -> nn.Module:
    """Let the new layer's weights be trained where those of `like` are."""
    for name, weight in new.named_parameters():
        twin = getattr(like, name)
        weight.requires_grad_(twin is None or twin.requires_grad)
    return new.train(like.training)
