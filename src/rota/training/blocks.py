"""Blocks that can be deepened: a layer, its normalisation if any, and its activation."""

from torch import nn


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
