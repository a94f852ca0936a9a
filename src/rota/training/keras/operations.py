"""Operations of a PyTorch network and their Keras layers."""

import operator
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

import torch
from torch import nn
from torch.fx.node import map_aggregate
from torch.nn import functional

from rota.core.errors import InputError


def keras() -> Any:
    """Import Keras without TensorFlow's messages, unless the environment configures them."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # Otherwise TensorFlow announces on stderr that its sums may be off, whatever the log level.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    try:
        return import_module("keras")
    except ModuleNotFoundError as error:
        missing = f"TensorFlow is not installed (no module {error.name!r})"
        raise InputError(f'{missing}; install it with: pip install "rota[tensorflow]"') from None


@dataclass(frozen=True)
class Signal:
    """A Keras tensor that stands for a PyTorch tensor."""

    tensor: Any
    channels_last: bool = False
    """Whether it is an image with channels last in Keras, second in PyTorch."""


@dataclass(frozen=True)
class Call:
    """A call of a module, function or method, and PyTorch's result."""

    keras: Any
    layers: dict[str, Any]
    """Name → layer of the Keras model so far."""
    name: str
    """Dotted name of the module, or the trace's name of the operation."""
    module: nn.Module | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any

    def signal(self, position: int = 0, name: str = "input") -> Signal:
        """Return an argument that is a tensor."""
        found = self.args[position] if position < len(self.args) else self.kwargs.get(name)
        if not isinstance(found, Signal):
            raise self.refused(f"its argument {name!r} is not a tensor that depends on the input")
        return found

    def option(self, position: int, name: str, default: Any = None) -> Any:
        """Return a setting: an attribute of the module, or an argument of the function."""
        if self.module is not None:
            return getattr(self.module, name)
        return self.args[position] if position < len(self.args) else self.kwargs.get(name, default)

    def layer(self, kind: str, suffix: str = "", **settings: Any) -> Any:
        """Return the Keras layer; a module that is called twice has one layer that is called twice."""
        name = f"{self.name}.{suffix}" if suffix else self.name
        if name not in self.layers:
            self.layers[name] = getattr(self.keras.layers, kind)(name=name, **settings)
        return self.layers[name]

    def first(self, signal: Signal) -> Any:
        """Return the tensor with its dimensions in PyTorch's order."""
        if not signal.channels_last:
            return signal.tensor
        return self.keras.ops.transpose(signal.tensor, (0, 3, 1, 2))

    def last(self, signal: Signal) -> Any:
        """Return the tensor of an image with channels last."""
        return (
            signal.tensor if signal.channels_last else self.keras.ops.transpose(signal.tensor, (0, 2, 3, 1))
        )

    def refuse(self, **settings: bool) -> None:
        """Raise for the first setting that is true, as it has no counterpart in Keras."""
        for name, is_set in settings.items():
            if is_set:
                raise self.refused(f"Keras has no counterpart for this {name}")

    def refused(self, reason: str) -> InputError:
        """Return the error that the layer has no counterpart in Keras."""
        return InputError(f"layer {self.name!r}: cannot be turned into Keras: {reason}")


def parts(structure: Any) -> list[Any]:
    """Return the leaves of nested tuples, lists and dictionaries."""
    found: list[Any] = []

    def keep(part: Any) -> Any:
        found.append(part)
        return part

    map_aggregate(structure, keep)
    return found


def pair(value: int | Sequence[int]) -> tuple[int, int]:
    """Return height and width, given as two numbers or as one for both."""
    if isinstance(value, int):
        return value, value
    height, width = value if len(value) == 2 else (value[0], value[0])
    return height, width


Margins = tuple[tuple[int, int], tuple[int, int]]
"""Padding above and below, left and right."""


def convolution(call: Call) -> Signal:
    """Add a convolution, with its weights."""
    module = cast(nn.Conv2d, call.module)
    call.refuse(padding_mode=module.padding_mode != "zeros")
    image, margins = call.last(call.signal()), _margins(module)
    if margins != ((0, 0), (0, 0)):  # Keras' own padding is not symmetric when the stride is 2
        image = call.layer("ZeroPadding2D", "padding", padding=margins, data_format="channels_last")(image)
    settings: dict[str, Any] = {
        "kernel_size": pair(module.kernel_size),
        "strides": pair(module.stride),
        "dilation_rate": pair(module.dilation),
        "use_bias": module.bias is not None,
        "data_format": "channels_last",
    }
    if is_depthwise(module):
        multiplier = module.out_channels // module.in_channels
        layer = call.layer("DepthwiseConv2D", depth_multiplier=multiplier, **settings)
    else:
        layer = call.layer("Conv2D", filters=module.out_channels, groups=module.groups, **settings)
    return Signal(layer(image), channels_last=True)


def is_depthwise(module: nn.Conv2d) -> bool:
    """Return whether Keras has this convolution as a layer of its own, which needs equal strides."""
    return 1 < module.groups == module.in_channels and module.stride[0] == module.stride[-1]


def _margins(module: nn.Conv2d) -> Margins:
    if module.padding == "valid":
        return (0, 0), (0, 0)
    if isinstance(module.padding, str):  # "same": the odd pixel, if there is one, goes below and to the right
        extents = zip(pair(module.kernel_size), pair(module.dilation), strict=True)
        height, width = ((kernel - 1) * dilation for kernel, dilation in extents)
        return (height // 2, height - height // 2), (width // 2, width - width // 2)
    height, width = pair(module.padding)
    return (height, height), (width, width)


def linear(call: Call) -> Signal:
    """Add a linear layer, with its weights."""
    module = cast(nn.Linear, call.module)
    layer = call.layer("Dense", units=module.out_features, use_bias=module.bias is not None)
    return Signal(layer(call.first(call.signal())))


def batch_normalisation(call: Call) -> Signal:
    """Add a batch normalisation, with its weights and statistics."""
    module = cast(nn.BatchNorm2d, call.module)
    call.refuse(track_running_stats=module.running_mean is None, momentum=module.momentum is None)
    signal = call.signal()
    image = len(signal.tensor.shape) == 4
    layer = call.layer(
        "BatchNormalization",
        axis=-1 if image else 1,
        epsilon=module.eps,
        momentum=1 - (module.momentum or 0.0),
        center=module.affine,
        scale=module.affine,
    )
    return Signal(layer(call.last(signal) if image else signal.tensor), channels_last=image)


def layer_normalisation(call: Call) -> Signal:
    """Add a layer normalisation, with its weights."""
    module = cast(nn.LayerNorm, call.module)
    axes = list(range(-len(module.normalized_shape), 0))
    center, scale = module.bias is not None, module.weight is not None
    layer = call.layer("LayerNormalization", axis=axes, epsilon=module.eps, center=center, scale=scale)
    return Signal(layer(call.first(call.signal())))


def embedding(call: Call) -> Signal:
    """Add an embedding, with its weights."""
    module = cast(nn.Embedding, call.module)
    call.refuse(max_norm=module.max_norm is not None)
    layer = call.layer("Embedding", input_dim=module.num_embeddings, output_dim=module.embedding_dim)
    return Signal(layer(call.first(call.signal())))


def parameter(call: Call, inputs: Any) -> Signal:
    """Add a tensor that belongs to no layer, as the only row of an embedding."""
    ops, value = call.keras.ops, call.result
    row = ops.zeros_like(ops.sum(inputs), dtype="int32")  # Keras wants every layer to depend on the input
    layer = call.layer("Embedding", input_dim=1, output_dim=value.numel(), trainable=value.requires_grad)
    return Signal(ops.reshape(layer(row), tuple(value.shape)))


Step = Callable[[Call], Any]
"""A function that adds an operation to the Keras model; it returns one signal or several."""


def same(call: Call) -> Signal:
    """Add nothing, for what changes nothing."""
    return call.signal()


def dropout(call: Call) -> Signal:
    """Add a dropout."""
    signal = call.signal()
    layer = call.layer("Dropout", "dropout", rate=call.option(1, "p", 0.5))
    return Signal(layer(signal.tensor), signal.channels_last)


def activation(function: str) -> Step:
    """Return the operation of an elementwise function of the same name in Keras."""

    def step(call: Call) -> Signal:
        signal = call.signal()
        return Signal(
            call.layer("Activation", function, activation=function)(signal.tensor), signal.channels_last
        )

    return step


def gelu(call: Call) -> Signal:
    """Add a GELU."""
    signal, approximate = call.signal(), call.option(1, "approximate", "none") == "tanh"
    return Signal(call.keras.ops.gelu(signal.tensor, approximate=approximate), signal.channels_last)


def leaky_relu(call: Call) -> Signal:
    """Add a leaky ReLU."""
    signal, slope = call.signal(), call.option(1, "negative_slope", 0.01)
    layer = call.layer("LeakyReLU", "activation", negative_slope=slope)
    return Signal(layer(signal.tensor), signal.channels_last)


def along(function: str) -> Step:
    """Return the operation of a function along an axis, of the same name in Keras."""

    def step(call: Call) -> Signal:
        return Signal(
            getattr(call.keras.ops, function)(call.first(call.signal()), axis=call.option(1, "dim"))
        )

    return step


def max_pool(call: Call) -> Signal:
    """Add a maximum pooling."""
    call.refuse(
        dilation=pair(call.option(4, "dilation", 1)) != (1, 1),
        return_indices=call.option(6, "return_indices", False),
    )
    return _pool(call, "MaxPooling2D", float("-inf"))


def average_pool(call: Call) -> Signal:
    """Add an average pooling."""
    padded = pair(call.option(3, "padding", 0)) != (0, 0)
    call.refuse(
        count_include_pad=padded and not call.option(5, "count_include_pad", True),
        divisor_override=call.option(6, "divisor_override") is not None,
    )
    return _pool(call, "AveragePooling2D", 0.0)


def _pool(call: Call, kind: str, outside: float) -> Signal:
    kernel = pair(call.option(1, "kernel_size"))
    strides = pair(call.option(2, "stride") or kernel)
    height, width = pair(call.option(3, "padding", 0))
    image = call.last(call.signal())
    if (height, width) != (0, 0):
        margins = ((0, 0), (height, height), (width, width), (0, 0))
        image = call.keras.ops.pad(image, margins, constant_values=outside)
    layer = call.layer(kind, "pool", pool_size=kernel, strides=strides, data_format="channels_last")
    return Signal(layer(image), channels_last=True)


def adaptive_average_pool(call: Call) -> Signal:
    """Average equal windows; where the output is larger, repeat each pixel."""
    image, after = call.last(call.signal()), tuple(call.result.shape[2:])
    before = tuple(image.shape[1:3])
    pairs = list(zip(before, after, strict=True))
    if all(size % wanted == 0 for size, wanted in pairs):
        window = tuple(size // wanted for size, wanted in pairs)
        layer = call.layer("AveragePooling2D", "pool", pool_size=window, data_format="channels_last")
    elif all(wanted % size == 0 for size, wanted in pairs):
        times = tuple(wanted // size for size, wanted in pairs)
        layer = call.layer("UpSampling2D", "pool", size=times, data_format="channels_last")
    else:
        raise call.refused(f"Keras has no windows of one size from {before} to {after} pixels")
    return Signal(layer(image), channels_last=True)


def arithmetic(function: str) -> Step:
    """Return the operation of a function of two tensors, or of a tensor and a number."""

    def step(call: Call) -> Signal:
        left, right = call.args[:2]
        call.refuse(alpha="alpha" in call.kwargs, rounding_mode=call.kwargs.get("rounding_mode") is not None)
        last = all(side.channels_last for side in (left, right) if isinstance(side, Signal))
        both = (_operand(call, side, last) for side in (left, right))
        return Signal(getattr(call.keras.ops, function)(*both), last)

    return step


def matmul(call: Call) -> Signal:
    """Multiply matrices in the last two dimensions of PyTorch's order."""
    return Signal(call.keras.ops.matmul(*(_operand(call, side, last=False) for side in call.args[:2])))


def _operand(call: Call, side: Any, last: bool) -> Any:
    if not isinstance(side, Signal):
        return side
    return side.tensor if last else call.first(side)


def mean(call: Call) -> Signal:
    """Add a mean over axes."""
    axes, keep = call.option(1, "dim"), call.option(2, "keepdim", False)
    call.refuse(dim=axes is None)
    axis = axes if isinstance(axes, int) else tuple(axes)
    return Signal(call.keras.ops.mean(call.first(call.signal()), axis=axis, keepdims=keep))


def reshape(call: Call) -> Signal:
    """Change the shape, but not the order of the numbers, to that of PyTorch's result."""
    tensor, shape = call.first(call.signal()), tuple(call.result.shape)
    depends = any(size is None for size in tensor.shape)
    return Signal(call.keras.ops.reshape(tensor, (-1, *shape[1:]) if depends else shape))


def transpose(call: Call) -> Signal:
    """Exchange two axes."""
    tensor = call.first(call.signal())
    order = list(range(len(tensor.shape)))
    one, other = call.option(1, "dim0"), call.option(2, "dim1")
    order[one], order[other] = order[other], order[one]
    return Signal(call.keras.ops.transpose(tensor, order))


def permute(call: Call) -> Signal:
    """Order axes anew."""
    given = call.kwargs.get("dims", call.args[1:])
    dimensions = given[0] if isinstance(given[0], tuple | list) else given
    tensor = call.first(call.signal())
    return Signal(call.keras.ops.transpose(tensor, [axis % len(dimensions) for axis in dimensions]))


def concatenate(call: Call) -> Signal:
    """Join tensors along an axis."""
    tensors = [call.first(signal) for signal in call.option(0, "tensors")]
    return Signal(call.keras.ops.concatenate(tensors, axis=call.option(1, "dim", 0)))


def split(call: Call) -> tuple[Signal, ...]:
    """Split a tensor into the parts that PyTorch makes of it."""
    axis, tensor = call.option(2, "dim", 0), call.first(call.signal())
    sizes = [part.shape[axis] for part in call.result]
    ends = [sum(sizes[: index + 1]) for index in range(len(sizes) - 1)]
    return tuple(Signal(part) for part in call.keras.ops.split(tensor, ends, axis=axis))


def item(call: Call) -> Any:
    """Take a part of a tensor, or one of several tensors."""
    whole, which = call.args
    if not isinstance(whole, Signal):
        return whole[which]
    return Signal(call.first(whole)[which if isinstance(which, tuple) else (which,)])


def narrow(call: Call) -> Signal:
    """Cut a range out of an axis."""
    axis, start, length = (
        call.option(place, name) for place, name in ((1, "dim"), (2, "start"), (3, "length"))
    )
    tensor = call.first(call.signal())
    whole = [slice(None)] * len(tensor.shape)
    whole[axis] = slice(start, start + length)
    return Signal(tensor[tuple(whole)])


def attention(call: Call) -> Signal:
    """Add scaled dot-product attention, causal or not."""
    call.refuse(
        attn_mask=call.option(3, "attn_mask") is not None, enable_gqa=call.option(7, "enable_gqa", False)
    )
    ops = call.keras.ops
    query, key, value = (
        call.first(call.signal(place, name)) for place, name in enumerate(("query", "key", "value"))
    )
    scale = call.option(6, "scale") or query.shape[-1] ** -0.5
    scores = ops.multiply(ops.matmul(query, ops.swapaxes(key, -1, -2)), scale)
    if call.option(5, "is_causal", False):
        seen = ops.tril(ops.ones_like(scores, dtype="bool"))
        scores = ops.where(seen, scores, -1e9)  # so far down that its share is zero
    return Signal(ops.matmul(ops.softmax(scores, axis=-1), value))


STEPS: dict[Step, tuple[Any, ...]] = {
    convolution: (nn.Conv2d,),
    linear: (nn.Linear,),
    batch_normalisation: (nn.BatchNorm1d, nn.BatchNorm2d),
    layer_normalisation: (nn.LayerNorm,),
    embedding: (nn.Embedding,),
    same: (nn.Identity, "contiguous", "clone", "detach"),
    dropout: (nn.Dropout, functional.dropout),
    activation("relu"): (nn.ReLU, functional.relu, torch.relu, "relu", "relu_"),
    activation("relu6"): (nn.ReLU6, functional.relu6),
    activation("tanh"): (nn.Tanh, functional.tanh, torch.tanh, "tanh"),
    activation("sigmoid"): (nn.Sigmoid, functional.sigmoid, torch.sigmoid, "sigmoid"),
    activation("silu"): (nn.SiLU, functional.silu),
    gelu: (nn.GELU, functional.gelu),
    leaky_relu: (nn.LeakyReLU, functional.leaky_relu),
    along("softmax"): (nn.Softmax, functional.softmax, torch.softmax, "softmax"),
    along("log_softmax"): (nn.LogSoftmax, functional.log_softmax, torch.log_softmax, "log_softmax"),
    max_pool: (nn.MaxPool2d, functional.max_pool2d, torch.max_pool2d),
    average_pool: (nn.AvgPool2d, functional.avg_pool2d),
    adaptive_average_pool: (nn.AdaptiveAvgPool2d, functional.adaptive_avg_pool2d),
    arithmetic("add"): (operator.add, operator.iadd, torch.add, "add", "add_"),
    arithmetic("subtract"): (operator.sub, operator.isub, torch.sub, "sub"),
    arithmetic("multiply"): (operator.mul, operator.imul, torch.mul, "mul"),
    arithmetic("divide"): (operator.truediv, torch.div, "div"),
    matmul: (operator.matmul, torch.matmul, "matmul"),
    mean: (torch.mean, "mean"),
    reshape: (
        *(nn.Flatten, nn.Unflatten, torch.flatten, torch.reshape, torch.squeeze, torch.unsqueeze),
        *("flatten", "unflatten", "reshape", "view", "squeeze", "unsqueeze"),
    ),
    transpose: (torch.transpose, "transpose"),
    permute: (torch.permute, "permute"),
    concatenate: (torch.cat, torch.concat),
    split: (torch.chunk, torch.split, "chunk", "split"),
    item: (operator.getitem,),
    narrow: (torch.narrow, "narrow"),
    attention: (functional.scaled_dot_product_attention,),
}

TABLE = {known: step for step, targets in STEPS.items() for known in targets}
"""Type of module, function, or name of method → its operation."""
