"""New layers that compute the identity, made to fit their neighbours and their statistics."""

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
    """The network cannot grow there without changing what it computes; it is as it was."""


class Grown(nn.Sequential):
    """A part of a network as it was built, followed by the layers that growth has put behind it."""

    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.add_module(_ORIGINAL, part)
        self.train(part.training)

    @property
    def part(self) -> nn.Module:
        """The part that was there first."""
        return self[0]

    @property
    def new(self) -> list[nn.Module]:
        """The layers behind it."""
        return list(self)[1:]

    def forward(self, *given: Any, **named: Any) -> Any:
        """The part is given whatever it takes, and each new layer what comes of that."""
        output = self.part(*given, **named)
        for layer in self.new:
            output = layer(output)
        return output

    def __getattr__(self, name: str) -> Any:
        """What only the part has, such as its weight, for code that asks for it in this place.

        Not what Python itself asks for: if the part says how it is to be copied, only the part is.
        """
        try:
            return super().__getattr__(name)
        except AttributeError:
            part = self.__dict__.get("_modules", {}).get(_ORIGINAL)
            if part is None or name.startswith("__"):
                raise
        return getattr(part, name)

    def grow(self, layers: Iterable[nn.Module]) -> None:
        """Put layers behind all there are; their names cannot be mistaken for those of parts of the part."""
        for layer in layers:
            self.add_module(f"new{len(self)}", layer)


def original(network: nn.Module, name: str) -> nn.Module:
    """The part that had this dotted name before anything grew."""
    return network.get_submodule(present(network, name))


def present(network: nn.Module, name: str) -> str:
    """The dotted name that a part has now which had this one before anything grew around it."""
    part, steps = network, []
    for step in [*filter(None, name.split(".")), None]:
        if isinstance(part, Grown) and step not in part._modules:
            part = part.part
            steps.append(_ORIGINAL)
        if step is not None:
            part = part.get_submodule(step)
            steps.append(step)
    return ".".join(steps)


def before(network: nn.Module, name: str) -> str:
    """The dotted name that a part or weight had before anything grew; what is new keeps its name."""
    part: Any = network
    steps = []
    for step in name.split("."):
        if not (isinstance(part, Grown) and step == _ORIGINAL):
            steps.append(step)
        part = part._modules.get(step) if part is not None else None
    return ".".join(steps)


def around(network: nn.Module, name: str) -> str | None:
    """The dotted name of what has grown around a part, if anything has."""
    parent, _, step = name.rpartition(".")
    return parent if step == _ORIGINAL and isinstance(network.get_submodule(parent), Grown) else None


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
    """Whether a part is a convolution or linear layer, if only with weights that are computed from others."""
    return type(part) in LAYERS or (isinstance(part, LAYERS) and is_parametrized(part))


def refuse_computed(name: str, part: nn.Module) -> None:
    """Weights that are computed from others whenever the part runs are not its own to change or imitate."""
    if is_parametrized(part) or not {"weight", "bias"} <= part._parameters.keys():
        ways = "as with weight_norm, spectral_norm or pruning"
        raise NotGrowable(f"{name}: its weights are computed from others, {ways}; remove that first")


def identity_layer(like: Any) -> nn.Module:
    """A layer as wide at both ends as `like` is at its end, of the same kind, that changes nothing."""
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
    """Ones in the middle of the kernel from each channel to itself, zeros elsewhere."""
    channel = torch.arange(weight.shape[0], device=weight.device)
    middle = [torch.full_like(channel, size // 2) for size in weight.shape[2:]]
    with torch.no_grad():
        weight.zero_()
        weight[channel, channel % (len(channel) // groups), *middle] = 1.0


def identity_norm(like: Any, moments: Moments) -> nn.Module:
    """A batch normalisation that changes nothing in evaluation mode.

    In training mode it changes nothing where a batch has just these moments, and otherwise moves each channel
    from the batch's moments to these.
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
    """A layer of the same class and number format whose weights are not yet set: nothing random is drawn."""
    weight = like.weight
    options |= {"bias": like.bias is not None, "dtype": weight.dtype, "device": weight.device}
    return nn.utils.skip_init(type(like), *sizes, **options)  # type: ignore[no-untyped-call]


def _with_freedom_of(like: nn.Module, new: nn.Module) -> nn.Module:
    """Let the new layer's weights learn where those of `like` do."""
    for name, weight in new.named_parameters():
        twin = getattr(like, name)
        weight.requires_grad_(twin is None or twin.requires_grad)
    return new.train(like.training)
