"""Features of layers, actions and time, and the cost of networks."""

import hashlib
import math
import re
from dataclasses import dataclass

import numpy as np

from rota.core.arrays import Floats
from rota.core.network import Change, Layer, Observation, Structure
from rota.policies.agents import Feature

POSITIONS = 32 * 32
"""Positions in the input."""
FLAT = 1 / POSITIONS
"""Area of a single position."""
_SHAPES = ("flatten", "reshape", "view")
"""Layers that flatten all positions into one, unless a convolution follows: then they only reorder channels.
"""


@dataclass(frozen=True, slots=True)
class LayerCost:
    """The cost of a layer."""

    area: float
    """Area of its output, as a share of the input's."""
    work: float
    weights: float


def costs(structure: Structure) -> list[LayerCost]:
    """Return the cost of each layer."""
    sources: list[list[int]] = [[] for _ in structure.layers]
    for tail, head in structure.edges:
        sources[head].append(tail)
    convolved = _before_convolutions(structure)
    found: list[LayerCost] = []
    for at, (layer, before) in enumerate(zip(structure.layers, sources, strict=True)):
        area = max((found[each].area for each in before), default=1.0)  # what is smaller is spread over it
        if not (layer.kind in _SHAPES and at in convolved):
            area = _area(layer, area)
        found.append(LayerCost(area, *_cost(layer, area)))
    return found


def added(structure: Structure, block: tuple[int, ...], change: Change) -> tuple[float, float]:
    """Return the work and the weights that a change of a block would add; 0 if it has no layer to change.

    The normalisation of a new layer is not counted.
    """
    at = changed(structure, block, change)
    if at is None:
        return 0.0, 0.0
    known, layer = costs(structure), structure.layers[at]
    if change.kind == "deepen":
        weights = _cost(layer, known[at].area)[1] * layer.size("out") / layer.size("in")
        return weights * POSITIONS * known[at].area, weights
    ratio = max(0.0, change.width / layer.size("out") - 1)
    wider = [known[each] for each in _reached(structure, at)]
    return ratio * sum(cost.work for cost in wider), ratio * sum(cost.weights for cost in wider)


def changed(structure: Structure, block: tuple[int, ...], change: Change) -> int | None:
    """Return the layer of a block that is widened, or that a new layer behind the block copies."""
    main = [at for at in block if is_main(structure.layers[at])]
    if not main or not change.grows:
        return None
    if change.kind == "widen":
        return main[0]
    depths: dict[int, int] = {}
    for at in block:
        before = (depths[tail] for tail, head in structure.edges if head == at and tail in depths)
        depths[at] = max(before, default=0) + is_main(structure.layers[at])
    return max(main, key=lambda at: (depths[at], at))  # not the one beside a skip connection


def is_main(layer: Layer) -> bool:
    """Whether a layer mixes channels; blocks are counted by such layers."""
    return bool(layer.size("in")) and bool(layer.size("out"))


def _area(layer: Layer, area: float) -> float:
    if layer.kind in (*_SHAPES, "mean"):
        return FLAT
    if layer.kind.endswith("pool") and not layer.size("kernel") and not layer.size("kernel0"):
        return max(FLAT, _product(layer, "out") * FLAT)
    return max(FLAT, area / max(1, _product(layer, "stride")))


def _cost(layer: Layer, area: float) -> tuple[float, float]:
    if is_main(layer):
        pairs = layer.size("in") * layer.size("out") / max(1, layer.size("groups"))
        weights = pairs * max(1, _product(layer, "kernel"))
    else:
        weights = float(layer.size("out") or layer.size("weights"))
    return weights * POSITIONS * area, weights


def _product(layer: Layer, name: str) -> int:
    if layer.size(name):
        digits = re.search(r"(\d)d$", layer.kind)
        dimensions = int(digits[1]) if digits else 2 if layer.kind.endswith("pool") else 1
        return math.prod([layer.size(name)] * dimensions)
    return math.prod(layer.size(f"{name}{axis}", 1) for axis in range(3))


def _before_convolutions(structure: Structure) -> set[int]:
    """Return the layers that a convolution follows somewhere."""
    found: set[int] = set()
    for tail, head in sorted(structure.edges, key=lambda edge: -edge[1]):
        if head in found or structure.layers[head].kind.startswith("conv"):
            found.add(tail)
    return found


def _reached(structure: Structure, start: int) -> set[int]:
    """Return a layer, those that pass its channels on unchanged, and the layers that mix them next."""
    found = {start}
    for tail, head in sorted(structure.edges):
        if tail in found and (tail == start or not is_main(structure.layers[tail])):
            found.add(head)
    return found


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
"""Groups of layers by function, and the kinds of layers in them."""
CODE = 8
"""Length of the code of an unknown kind."""
CHANGES = ("deepen", "widen", "shrink", "nothing")
ORIGINAL_TIME = 8
TIME = 8
LAYER_FEATURES = (
    Feature("layer.group", len(GROUPS), "1 for the function of the layer: " + ", ".join(GROUPS)),
    Feature("layer.code", CODE, "normal numbers from the name of a kind that is in no group; else 0"),
    Feature("layer.sizes", 5, "log2(1 + size) / 8 of its inputs, outputs, kernel, stride and groups"),
    Feature("layer.area", 1, "log2 of the area of its output, as a share of the input's, / 10"),
    Feature("layer.work", 1, "its share of the work of the network"),
)
ACTION_FEATURES = (
    Feature("action.kind", len(CHANGES), "1 for the kind of the change: " + ", ".join(CHANGES)),
    Feature("action.work", 1, "log(1 + work that it adds / work of the network)"),
    Feature("action.weights", 1, "log(1 + weights that it adds / weights of the network)"),
    Feature("block.work", 1, "share of the block that it changes in the work of the network"),
    Feature("block.area", 1, "log2 of the area of the layer that it changes, / 10"),
    Feature("block.depth", 1, "layers of the block that mix channels, / 4"),
    Feature("block.place", 1, "place of the block: 0 for the first, 1 for the last"),
    Feature("block.linear", 1, "1 if the layer that it changes is linear"),
    Feature("block.wider", 1, "log2(width that is asked for / width of the layer)"),
)
NETWORK_FEATURES = (
    Feature("network.depth", 1, "layers that mix channels, / 10"),
    Feature("network.changes", 1, "decisions that were made, / 3"),
)
TIME_FEATURES = (Feature("time", TIME, "left time as a share of the budget: -1 to 1, and sines of it"),)
LAYER, ACTION, NETWORK = (
    sum(each.size for each in features) for features in (LAYER_FEATURES, ACTION_FEATURES, NETWORK_FEATURES)
)
"""Numbers of features of a layer, of an action, and of a network."""
_GROUP = {kind: at for at, kinds in enumerate(GROUPS.values()) for kind in kinds}


def layers(structure: Structure) -> Floats:
    """Return a row of features per layer."""
    known = costs(structure)
    work = sum(cost.work for cost in known) or 1.0
    rows = [
        [*_kind(layer), *_sizes(layer), _log(cost.area) / 10, cost.work / work]
        for layer, cost in zip(structure.layers, known, strict=True)
    ]
    return np.array(rows).reshape(-1, LAYER)


def actions(observation: Observation) -> Floats:
    """Return a row of features per action: its kind, its cost, and the block that it changes."""
    structure = observation.structure
    known = costs(structure)
    work = sum(cost.work for cost in known) or 1.0
    weights = sum(cost.weights for cost in known) or 1.0
    rows = np.zeros((len(observation.actions), ACTION))
    for row, change in zip(rows, observation.actions, strict=True):
        row[CHANGES.index(change.kind)] = 1.0
        if not change.grows or change.block >= len(observation.blocks):
            continue
        block = observation.blocks[change.block]
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
            change.block / max(1, len(observation.blocks) - 1),
            structure.layers[last].kind == "linear",
            math.log2(max(1, change.width / max(1, structure.layers[last].size("out")))),
        )
    return rows


def network(observation: Observation) -> Floats:
    """Return the features of the network as a whole."""
    structure = observation.structure
    depth = sum(is_main(layer) for layer in structure.layers)
    return np.array([depth / 10, len(observation.made) / 3])


def time(left: float | Floats) -> Floats:
    """Return features of the remaining time: smooth, so that an agent can interpolate between scenarios."""
    shares = np.asarray(left)[..., None]
    return np.concatenate([2 * shares - 1, np.sin(np.pi / 2 * shares * np.arange(1, TIME))], axis=-1)


def original_time(left: float | Floats) -> Floats:
    """Return the time code of the original agent: `5·sin(2πi·left)`."""
    codes: Floats = 5 * np.sin(2 * np.pi * np.asarray(left)[..., None] * np.arange(1, ORIGINAL_TIME + 1))
    return codes


def code(text: str, length: int) -> Floats:
    """Return normal numbers that depend on a text only, on any machine."""
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
