"""New layers that pass on what they are given, made to fit the layers they stand behind."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from rota.training.net2net.grown import NotGrowable
from rota.training.net2net.moments import Moments

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
