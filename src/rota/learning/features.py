"""Numbers for what is seen: of layers, of actions, of the time.

Layers are told by what they are, never by their name or by how a library prints them. A kind that is not in
the list gets a code from its name, so that two unknown kinds differ and the same one is always the same.
"""

import hashlib
import math

import numpy as np

from rota.core.arrays import Floats
from rota.core.sight import Sight
from rota.core.structure import Layer, Structure
from rota.learning.work import added, changed, costs, is_main

GROUPS = {
    "convolution": ("conv1d", "conv2d", "conv3d"),
    "linear": ("linear",),
    "normalisation": ("batchnorm", "layernorm", "groupnorm", "instancenorm"),
    "activation": ("relu", "relu6", "leakyrelu", "gelu", "silu", "hardswish", "elu", "sigmoid", "tanh"),
    "pool": ("avgpool", "maxpool"),
    "sum": ("add", "mul"),
    "join": ("cat", "stack", "chunk"),
    "shape": ("flatten", "reshape", "transpose", "permute", "contiguous", "mean"),
    "attention": ("attention", "softmax"),
    "recurrent": ("lstm", "gru", "rnn"),
    "embedding": ("embedding",),
    "passing": ("identity", "dropout", "dropout2d"),
}
"""What layers do, and the kinds of structures that do so."""
CODE = 8
"""Numbers that tell an unknown kind."""
SIZES = 7
LAYER = len(GROUPS) + CODE + SIZES
CHANGES = ("deepen", "widen", "shrink", "nothing")
ACTION = len(CHANGES) + 8
NETWORK = 2
ORIGINAL_TIME = 8
TIME = 8
_GROUP = {kind: at for at, kinds in enumerate(GROUPS.values()) for kind in kinds}


def layers(structure: Structure) -> Floats:
    """A row per layer."""
    known = costs(structure)
    work = sum(cost.work for cost in known) or 1.0
    rows = [
        [*_kind(layer), *_sizes(layer), _log(cost.area) / 10, cost.work / work]
        for layer, cost in zip(structure.layers, known, strict=True)
    ]
    return np.array(rows).reshape(-1, LAYER)


def actions(sight: Sight) -> Floats:
    """A row per action: what it is, what it would cost, and what the block is like that it changes."""
    structure = sight.structure
    known = costs(structure)
    work = sum(cost.work for cost in known) or 1.0
    weights = sum(cost.weights for cost in known) or 1.0
    rows = np.zeros((len(sight.actions), ACTION))
    for row, change in zip(rows, sight.actions, strict=True):
        row[CHANGES.index(change.kind)] = 1.0
        if not change.grows or change.block >= len(sight.blocks):
            continue
        block = sight.blocks[change.block]
        more_work, more_weights = added(structure, block, change)
        main = [at for at in block if is_main(structure.layers[at])] or list(block)
        at = changed(structure, block, change)
        last = main[-1] if at is None else at
        row[len(CHANGES) :] = (
            math.log1p(more_work / work),
            math.log1p(more_weights / weights),
            sum(known[at].work for at in block) / work,
            _log(known[last].area) / 10,
            len(main) / 4,
            change.block / max(1, len(sight.blocks) - 1),
            structure.layers[last].kind == "linear",
            math.log2(max(1, change.width / max(1, structure.layers[last].size("out")))),
        )
    return rows


def network(sight: Sight) -> Floats:
    """Of the network as a whole."""
    structure = sight.structure
    depth = sum(is_main(layer) for layer in structure.layers)
    return np.array([depth / 10, len(sight.made) / 3])


def time(left: float | Floats) -> Floats:
    """The time that is left: smooth, so that scenarios between those that were seen are between them here."""
    shares = np.asarray(left)[..., None]
    return np.concatenate([2 * shares - 1, np.sin(np.pi / 2 * shares * np.arange(1, TIME))], axis=-1)


def original_time(left: float | Floats) -> Floats:
    """The code of the original agent: `5·sin(2πi·left)`."""
    codes: Floats = 5 * np.sin(2 * np.pi * np.asarray(left)[..., None] * np.arange(1, ORIGINAL_TIME + 1))
    return codes


def code(text: str, length: int) -> Floats:
    """Numbers from a normal distribution that depend on a text only: the same on any machine."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).standard_normal(length)


def _kind(layer: Layer) -> list[float]:
    group = [0.0] * len(GROUPS)
    if layer.kind in _GROUP:
        group[_GROUP[layer.kind]] = 1.0
        return group + [0.0] * CODE
    return [*group, *code(layer.kind, CODE).tolist()]


def _sizes(layer: Layer) -> list[float]:
    names = ("in", "out", "kernel", "stride", "groups")
    return [_log(1 + layer.size(name)) / 8 for name in names]


def _log(value: float) -> float:
    return math.log2(value)
