"""Small convolutional networks of marked blocks, each of which can be deepened."""

from collections import OrderedDict

from torch import nn

from rota.training.blocks import answer_block, conv_block, linear_block
from rota.training.models.shapes import images


def convnet(inputs: tuple[int, ...], outputs: int) -> nn.Sequential:
    """Three convolution blocks with a pool after the second."""
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
    """Two convolution blocks with a pool between them."""
    return _named(
        conv1=conv_block(images(inputs, least=2), 32),
        pool=nn.AvgPool2d(2),
        conv2=conv_block(32, 32),
        squeeze=nn.AdaptiveAvgPool2d(1),
        flatten=nn.Flatten(),
        linear=answer_block(32, outputs),
    )


def convnet3(inputs: tuple[int, ...], outputs: int) -> nn.Sequential:
    """Two convolution blocks at full resolution, the first one wide."""
    return _named(
        conv1=conv_block(images(inputs), 64),
        conv2=conv_block(64, 32),
        squeeze=nn.AdaptiveAvgPool2d(1),
        flatten=nn.Flatten(),
        linear=answer_block(32, outputs),
    )


def large(inputs: tuple[int, ...], outputs: int) -> nn.Sequential:
    """Three pairs of convolution blocks with pools between them, a linear block and a linear head."""
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


def _named(**parts: nn.Module) -> nn.Sequential:
    return nn.Sequential(OrderedDict(parts))
