"""The networks by name. To add one, write its function in this folder and add its line here.

Such a function takes the shape of one input and the number of outputs, and returns a module with new weights.
The contract tests over the table and the commands then cover it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

import torch
from torch import nn

from rota.core.errors import ConfigError, unknown


@dataclass(frozen=True)
class Model:
    """A network of the registry, and its task."""

    build: str
    """`module:function`, imported when needed."""
    task: str
    """Task that it learns: classification, language, a2c or dqn."""
    note: str
    """One line that describes it."""


_OURS, _VISION = "rota.training.models.networks", "rota.training.models.vision"

MODELS = {
    "convnet": Model(f"{_OURS}:convnet", "classification", "three conv blocks, one pool"),
    "convnet2": Model(f"{_OURS}:convnet2", "classification", "two conv blocks of 32, one pool"),
    "convnet3": Model(f"{_OURS}:convnet3", "classification", "conv blocks of 64 and 32, no pool"),
    "convnet-large": Model(f"{_OURS}:convnet_large", "classification", "six conv blocks, 64 to 256"),
    "feedforward1": Model(f"{_OURS}:feedforward1", "classification", "one hidden block of 128"),
    "feedforward2": Model(f"{_OURS}:feedforward2", "classification", "two hidden blocks of 128"),
    "feedforward3": Model(f"{_OURS}:feedforward3", "classification", "three hidden blocks of 128"),
    "resnet8": Model(f"{_OURS}:resnet8", "classification", "three residual blocks, 16 to 64"),
    "resnet18": Model(f"{_VISION}:resnet18", "classification", "ResNet-18 for small images"),
    "resnet50": Model(f"{_VISION}:resnet50", "classification", "ResNet-50 for small images"),
    "vgg16": Model(f"{_VISION}:vgg16", "classification", "VGG-16 with batch norm, one linear head"),
    "vgg19": Model(f"{_VISION}:vgg19", "classification", "VGG-19 with batch norm, one linear head"),
    "shufflenet": Model(f"{_VISION}:shufflenet", "classification", "ShuffleNet v2 for small images"),
    "transformer": Model(f"{_OURS}:transformer", "language", "causal, three layers of 64"),
    "a2c": Model(f"{_OURS}:a2c", "a2c", "policy and value on one body of 64"),
    "dqn": Model(f"{_OURS}:dqn", "dqn", "values of the actions, two layers of 64"),
}


def model(name: str) -> Model:
    """Return the entry of that name, or raise."""
    if name not in MODELS:
        raise ConfigError(unknown("model", name, MODELS))
    return MODELS[name]


def build(name: str, inputs: tuple[int, ...], outputs: int, seed: int = 0) -> nn.Module:
    """Return a new network on the CPU; its weights depend on the seed only.

    Global generators do not change.
    """
    function = _function(model(name))
    if outputs < 1:
        raise ConfigError(f"model {name!r}: needs at least one output, not {outputs}")
    # Not torch.manual_seed: that would seed the generators of the GPUs too.
    with torch.random.fork_rng(devices=()), torch.device("cpu"):
        torch.default_generator.manual_seed(seed)
        try:
            return function(inputs, outputs)
        except ConfigError as error:
            raise ConfigError(f"model {name!r}: {error}") from None


def _function(entry: Model) -> Callable[[tuple[int, ...], int], nn.Module]:
    module, attribute = entry.build.split(":")
    function: Callable[[tuple[int, ...], int], nn.Module] = getattr(import_module(module), attribute)
    return function
