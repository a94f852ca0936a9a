"""Steps that have weights, and the Keras layers for them. The layer has the name of the module."""

from typing import Any, cast

from torch import nn

from rota.training.keras.call import Call, Signal, pair

Margins = tuple[tuple[int, int], tuple[int, int]]
"""Above and below, left and right."""


def convolution(call: Call) -> Signal:
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
    """Whether Keras has this convolution as a layer of its own. It wants equal strides there."""
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
    module = cast(nn.Linear, call.module)
    layer = call.layer("Dense", units=module.out_features, use_bias=module.bias is not None)
    return Signal(layer(call.first(call.signal())))


def batch_normalisation(call: Call) -> Signal:
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
    module = cast(nn.LayerNorm, call.module)
    axes = list(range(-len(module.normalized_shape), 0))
    center, scale = module.bias is not None, module.weight is not None
    layer = call.layer("LayerNormalization", axis=axes, epsilon=module.eps, center=center, scale=scale)
    return Signal(layer(call.first(call.signal())))


def embedding(call: Call) -> Signal:
    module = cast(nn.Embedding, call.module)
    call.refuse(max_norm=module.max_norm is not None)
    layer = call.layer("Embedding", input_dim=module.num_embeddings, output_dim=module.embedding_dim)
    return Signal(layer(call.first(call.signal())))


def parameter(call: Call, inputs: Any) -> Signal:
    """A tensor that belongs to the network but to no layer: the only row of an embedding, looked up."""
    ops, value = call.keras.ops, call.result
    row = ops.zeros_like(ops.sum(inputs), dtype="int32")  # Keras wants every layer to depend on the input
    layer = call.layer("Embedding", input_dim=1, output_dim=value.numel(), trainable=value.requires_grad)
    return Signal(ops.reshape(layer(row), tuple(value.shape)))
