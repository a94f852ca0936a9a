"""Blocks that are marked as such: a layer, its normalisation if it has one, and its activation."""

from torch import nn


class Block(nn.Sequential):
    """A layer with its activation.

    Deepening appends to it; what it computes stays one step of the network.
    """


def conv_block(inputs: int, outputs: int, kernel: int = 3) -> Block:
    """Convolution that keeps height and width, batch normalisation, ReLU."""
    convolution = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2)
    return Block(convolution, nn.BatchNorm2d(outputs), nn.ReLU())


def linear_block(inputs: int, outputs: int) -> Block:
    """Linear layer, ReLU."""
    return Block(nn.Linear(inputs, outputs), nn.ReLU())


def answer_block(inputs: int, outputs: int) -> Block:
    """A linear block that answers for each class.

    The biases start at 1: a class whose answer falls below 0 for all inputs gets no gradient any more and
    is never named again, which happens to a third of ten classes in the first steps if they start around 0.
    """
    linear = nn.Linear(inputs, outputs)
    nn.init.ones_(linear.bias)
    return Block(linear, nn.ReLU())
