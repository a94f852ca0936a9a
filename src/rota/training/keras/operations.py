"""Steps without weights: pools, activations, arithmetic and changes of shape."""

from collections.abc import Callable
from typing import Any

from rota.training.keras.call import Call, Signal, pair

Step = Callable[[Call], Any]
"""Adds a step to the Keras model; gives a signal, or several."""


def same(call: Call) -> Signal:
    """What changes nothing."""
    return call.signal()


def dropout(call: Call) -> Signal:
    signal = call.signal()
    layer = call.layer("Dropout", "dropout", rate=call.option(1, "p", 0.5))
    return Signal(layer(signal.tensor), signal.channels_last)


def activation(function: str) -> Step:
    """A function of each number by itself that has the same name and form in Keras."""

    def step(call: Call) -> Signal:
        signal = call.signal()
        return Signal(
            call.layer("Activation", function, activation=function)(signal.tensor), signal.channels_last
        )

    return step


def gelu(call: Call) -> Signal:
    signal, approximate = call.signal(), call.option(1, "approximate", "none") == "tanh"
    return Signal(call.keras.ops.gelu(signal.tensor, approximate=approximate), signal.channels_last)


def leaky_relu(call: Call) -> Signal:
    signal, slope = call.signal(), call.option(1, "negative_slope", 0.01)
    layer = call.layer("LeakyReLU", "activation", negative_slope=slope)
    return Signal(layer(signal.tensor), signal.channels_last)


def softmax(call: Call) -> Signal:
    return Signal(call.keras.ops.softmax(call.first(call.signal()), axis=call.option(1, "dim")))


def log_softmax(call: Call) -> Signal:
    return Signal(call.keras.ops.log_softmax(call.first(call.signal()), axis=call.option(1, "dim")))


def max_pool(call: Call) -> Signal:
    call.refuse(
        dilation=pair(call.option(4, "dilation", 1)) != (1, 1),
        return_indices=call.option(6, "return_indices", False),
    )
    return _pool(call, "MaxPooling2D", float("-inf"))


def average_pool(call: Call) -> Signal:
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
    """A mean over equal windows; or, where the output is larger, each pixel as often as it is needed."""
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
    """An operation on two tensors, or on a tensor and a number."""

    def step(call: Call) -> Signal:
        left, right = call.args[:2]
        call.refuse(alpha="alpha" in call.kwargs, rounding_mode=call.kwargs.get("rounding_mode") is not None)
        last = all(side.channels_last for side in (left, right) if isinstance(side, Signal))
        both = (_operand(call, side, last) for side in (left, right))
        return Signal(getattr(call.keras.ops, function)(*both), last)

    return step


def matmul(call: Call) -> Signal:
    """Of the last two dimensions in PyTorch's order."""
    return Signal(call.keras.ops.matmul(*(_operand(call, side, last=False) for side in call.args[:2])))


def _operand(call: Call, side: Any, last: bool) -> Any:
    if not isinstance(side, Signal):
        return side
    return side.tensor if last else call.first(side)


def mean(call: Call) -> Signal:
    axes, keep = call.option(1, "dim"), call.option(2, "keepdim", False)
    call.refuse(dim=axes is None)
    axis = axes if isinstance(axes, int) else tuple(axes)
    return Signal(call.keras.ops.mean(call.first(call.signal()), axis=axis, keepdims=keep))


def reshape(call: Call) -> Signal:
    """Whatever changes the shape and not the order of the numbers: PyTorch says what comes out."""
    tensor, shape = call.first(call.signal()), tuple(call.result.shape)
    depends = any(size is None for size in tensor.shape)
    return Signal(call.keras.ops.reshape(tensor, (-1, *shape[1:]) if depends else shape))


def transpose(call: Call) -> Signal:
    tensor = call.first(call.signal())
    order = list(range(len(tensor.shape)))
    one, other = call.option(1, "dim0"), call.option(2, "dim1")
    order[one], order[other] = order[other], order[one]
    return Signal(call.keras.ops.transpose(tensor, order))


def permute(call: Call) -> Signal:
    given = call.kwargs.get("dims", call.args[1:])
    dimensions = given[0] if isinstance(given[0], tuple | list) else given
    tensor = call.first(call.signal())
    return Signal(call.keras.ops.transpose(tensor, [axis % len(dimensions) for axis in dimensions]))


def concatenate(call: Call) -> Signal:
    tensors = [call.first(signal) for signal in call.option(0, "tensors")]
    return Signal(call.keras.ops.concatenate(tensors, axis=call.option(1, "dim", 0)))


def split(call: Call) -> tuple[Signal, ...]:
    """Into the parts that PyTorch makes of it."""
    axis, tensor = call.option(2, "dim", 0), call.first(call.signal())
    sizes = [part.shape[axis] for part in call.result]
    ends = [sum(sizes[: index + 1]) for index in range(len(sizes) - 1)]
    return tuple(Signal(part) for part in call.keras.ops.split(tensor, ends, axis=axis))


def item(call: Call) -> Any:
    """A part of a tensor, or one of several."""
    whole, which = call.args
    if not isinstance(whole, Signal):
        return whole[which]
    return Signal(call.first(whole)[which if isinstance(which, tuple) else (which,)])


def narrow(call: Call) -> Signal:
    axis, start, length = (
        call.option(place, name) for place, name in ((1, "dim"), (2, "start"), (3, "length"))
    )
    tensor = call.first(call.signal())
    whole = [slice(None)] * len(tensor.shape)
    whole[axis] = slice(start, start + length)
    return Signal(tensor[tuple(whole)])


def attention(call: Call) -> Signal:
    """Scaled dot-product attention, with or without a look ahead."""
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
