"""Rota's own networks: convolutional, feed-forward, a causal transformer, and two for games."""

from collections import OrderedDict
from functools import partial
from math import prod
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from rota.core.errors import ConfigError


class Block(nn.Sequential):
    """A layer with its activation, one step of the network; deepening appends to it."""


def conv_block(inputs: int, outputs: int, kernel: int = 3) -> Block:
    """Return a convolution that keeps height and width, batch normalisation and ReLU."""
    convolution = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2)
    return Block(convolution, nn.BatchNorm2d(outputs), nn.ReLU())


def linear_block(inputs: int, outputs: int) -> Block:
    """Return a linear layer and ReLU."""
    return Block(nn.Linear(inputs, outputs), nn.ReLU())


def answer_block(inputs: int, outputs: int) -> Block:
    """Return a linear block that scores classes.

    Its biases start at 1. A class whose score is below 0 for all inputs gets no gradient and is never
    predicted again; with biases around 0, that happens to a third of ten classes in the first steps.
    """
    linear = nn.Linear(inputs, outputs)
    nn.init.ones_(linear.bias)
    return Block(linear, nn.ReLU())


def images(inputs: tuple[int, ...], least: int = 1) -> int:
    """Return the number of channels; raise unless images are at least `least` pixels high and wide."""
    if len(inputs) != 3 or min(inputs) < 1:
        raise ConfigError(f"takes images of shape (channels, height, width), not inputs of shape {inputs}")
    channels, height, width = inputs
    if min(height, width) < least:
        small = f"takes images of {least}×{least} or more, not {height}×{width}"
        raise ConfigError(f"{small}; give a larger size or another model")
    return channels


def vector(inputs: tuple[int, ...], what: str) -> int:
    """Return the length of one-dimensional inputs, or raise; `what` says what they hold."""
    if len(inputs) != 1 or inputs[0] < 1:
        raise ConfigError(f"takes {what}, not inputs of shape {inputs}")
    return inputs[0]


def convnet(inputs: tuple[int, ...], outputs: int) -> nn.Sequential:
    """Return three convolution blocks with a pool after the second."""
    return _named(
        conv1=conv_block(images(inputs, least=2), 32),
        conv2=conv_block(32, 32),
        pool=nn.AvgPool2d(2),
        conv3=conv_block(32, 64),
        squeeze=nn.AdaptiveAvgPool2d(1),
        flatten=nn.Flatten(),
        linear=answer_block(64, outputs),
    )


def convnet2(inputs: tuple[int, ...], outputs: int) -> nn.Sequential:
    """Return two convolution blocks with a pool between them."""
    return _named(
        conv1=conv_block(images(inputs, least=2), 32),
        pool=nn.AvgPool2d(2),
        conv2=conv_block(32, 32),
        squeeze=nn.AdaptiveAvgPool2d(1),
        flatten=nn.Flatten(),
        linear=answer_block(32, outputs),
    )


def convnet3(inputs: tuple[int, ...], outputs: int) -> nn.Sequential:
    """Return two convolution blocks at full resolution, the first one wide."""
    return _named(
        conv1=conv_block(images(inputs), 64),
        conv2=conv_block(64, 32),
        squeeze=nn.AdaptiveAvgPool2d(1),
        flatten=nn.Flatten(),
        linear=answer_block(32, outputs),
    )


def convnet_large(inputs: tuple[int, ...], outputs: int) -> nn.Sequential:
    """Return three pairs of convolution blocks with pools between them, a linear block and a linear head."""
    return _named(
        conv1=conv_block(images(inputs, least=4), 64),
        conv2=conv_block(64, 64),
        pool1=nn.MaxPool2d(2),
        conv3=conv_block(64, 128),
        conv4=conv_block(128, 128),
        pool2=nn.MaxPool2d(2),
        conv5=conv_block(128, 256),
        conv6=conv_block(256, 256),
        squeeze=nn.AdaptiveAvgPool2d(1),
        flatten=nn.Flatten(),
        linear=linear_block(256, 128),
        head=nn.Linear(128, outputs),
    )


def resnet8(inputs: tuple[int, ...], outputs: int) -> nn.Sequential:
    """Return a small residual network: a convolution and three residual blocks of 16, 32 and 64 channels."""
    return _named(
        conv=nn.Conv2d(images(inputs, least=4), 16, 3, padding=1, bias=False),
        norm=nn.BatchNorm2d(16),
        relu=nn.ReLU(),
        block1=ResidualBlock(16, 16),
        block2=ResidualBlock(16, 32, stride=2),
        block3=ResidualBlock(32, 64, stride=2),
        squeeze=nn.AdaptiveAvgPool2d(1),
        flatten=nn.Flatten(),
        head=nn.Linear(64, outputs),
    )


class ResidualBlock(nn.Module):
    """Two convolutions whose output is added to the block's input, or to a projection of it."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.relu2 = nn.ReLU()
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            projection = nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)
            self.shortcut = nn.Sequential(projection, nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """Return images of half the height and width with a stride of 2."""
        inner = self.norm2(self.conv2(self.relu1(self.norm1(self.conv1(x)))))
        after: Tensor = self.relu2(inner + self.shortcut(x))
        return after


def _named(**parts: nn.Module) -> nn.Sequential:
    return nn.Sequential(OrderedDict(parts))


HIDDEN, WIDTH = 128, 64


def feedforward(inputs: tuple[int, ...], outputs: int, blocks: int) -> nn.Sequential:
    """Return a feed-forward network of some blocks: a linear layer of width 128 and a ReLU each."""
    if not inputs or min(inputs) < 1:
        raise ConfigError(f"takes inputs of at least one number, not of shape {inputs}")
    widths = [prod(inputs), *[HIDDEN] * blocks]
    parts: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())
    for index in range(blocks):
        parts[f"linear{index + 1}"] = linear_block(widths[index], widths[index + 1])
    parts["head"] = nn.Linear(HIDDEN, outputs)
    return nn.Sequential(parts)


feedforward1 = partial(feedforward, blocks=1)
feedforward2 = partial(feedforward, blocks=2)
feedforward3 = partial(feedforward, blocks=3)


HEADS, LAYERS = 4, 3


def transformer(inputs: tuple[int, ...], outputs: int) -> "Transformer":
    """Return a causal transformer for texts of shape (symbols,); `outputs` is the size of the vocabulary."""
    context = vector(inputs, "texts of shape (symbols,)")
    network = Transformer(context, outputs)
    for module in network.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
    return network


class Transformer(nn.Module):
    """A causal transformer: texts (batch, symbols) to logits of next symbols (batch, symbols, vocabulary)."""

    def __init__(self, context: int, vocabulary: int) -> None:
        super().__init__()
        self.symbols = nn.Embedding(vocabulary, WIDTH)
        self.positions = nn.Parameter(torch.randn(context, WIDTH) * 0.02)
        self.layers = nn.Sequential(*(TransformerLayer() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, vocabulary, bias=False)

    def forward(self, text: Tensor) -> Tensor:
        """Return logits of shape (batch, symbols, vocabulary) for texts of shape (batch, symbols)."""
        positions = torch.narrow(self.positions, 0, 0, text.size(1))
        logits: Tensor = self.head(self.norm(self.layers(self.symbols(text) + positions)))
        return logits


class TransformerLayer(nn.Module):
    """Causal attention and a feed-forward network, each with a normalised input and a residual connection."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.Sequential(nn.LayerNorm(WIDTH), Attention())
        self.feedforward = nn.Sequential(
            nn.LayerNorm(WIDTH),
            nn.Linear(WIDTH, 4 * WIDTH),
            nn.GELU(),
            nn.Linear(4 * WIDTH, WIDTH),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(x)
        after: Tensor = x + self.feedforward(x)
        return after


class Attention(nn.Module):
    """Causal multi-head attention."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        heads = self.project(x).unflatten(2, (3, HEADS, WIDTH // HEADS)).permute(2, 0, 3, 1, 4)
        seen = scaled_dot_product_attention(heads[0], heads[1], heads[2], is_causal=True)
        output: Tensor = self.output(seen.transpose(1, 2).flatten(2))
        return output


OBSERVATIONS = "observations of shape (numbers,)"


def a2c(inputs: tuple[int, ...], outputs: int) -> "ActorCritic":
    """Return an actor-critic for observations of shape (numbers,); `outputs` is the number of actions."""
    return ActorCritic(vector(inputs, OBSERVATIONS), outputs)


def dqn(inputs: tuple[int, ...], outputs: int) -> nn.Sequential:
    """Return a network from observations to the value of each action."""
    return nn.Sequential(*_body(vector(inputs, OBSERVATIONS)), nn.Linear(WIDTH, outputs))


class ActorCritic(nn.Module):
    """A network from observations (batch, numbers) to logits (batch, actions) and a value (batch,)."""

    def __init__(self, observations: int, actions: int) -> None:
        super().__init__()
        self.body = _body(observations)
        self.policy = nn.Linear(WIDTH, actions)
        self.value = nn.Linear(WIDTH, 1)

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits of shape (batch, actions) and values of shape (batch,)."""
        seen = self.body(observations)
        return self.policy(seen), cast(Tensor, self.value(seen)).squeeze(1)


def _body(observations: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(observations, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU())
