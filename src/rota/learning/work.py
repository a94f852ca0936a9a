"""How much a network computes, and how much more it would after a change, worked out from its structure.

Work is counted in multiplications and additions for an image of 32×32. Only ratios are used, so that what
the images are really like matters little.
"""

import math
import re
from dataclasses import dataclass

from rota.core.change import Change
from rota.core.structure import Layer, Structure

POSITIONS = 32 * 32
"""In the input."""
FLAT = 1 / POSITIONS
"""The area that is left when all positions have become one."""
_WHOLE = ("flatten", "reshape", "mean", "view")


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a layer."""

    area: float
    """Of its output, as a share of the input's."""
    work: float
    weights: float


def costs(structure: Structure) -> list[Cost]:
    """Of each layer."""
    sources: list[list[int]] = [[] for _ in structure.layers]
    for tail, head in structure.edges:
        sources[head].append(tail)
    found: list[Cost] = []
    for layer, before in zip(structure.layers, sources, strict=True):
        area = _area(layer, min((found[at].area for at in before), default=1.0))
        found.append(Cost(area, *_cost(layer, area)))
    return found


def added(structure: Structure, block: tuple[int, ...], change: Change) -> tuple[float, float]:
    """The work and the weights that a change of a block would add; none if it has no layer to speak of."""
    known = costs(structure)
    main = [at for at in block if is_main(structure.layers[at])]
    if not main or not change.grows:
        return 0.0, 0.0
    layer, cost = structure.layers[main[-1]], known[main[-1]]
    outputs = layer.size("out")
    if change.kind == "deepen":
        weights = _cost(layer, cost.area)[1] * outputs / max(1, layer.size("in"))
        return weights * POSITIONS * cost.area, weights
    ratio = max(0.0, change.width / max(1, outputs) - 1)
    return ratio * cost.work * 2, ratio * cost.weights * 2  # what follows takes as many inputs more


def is_main(layer: Layer) -> bool:
    """Whether a layer mixes channels: what blocks are counted by."""
    return bool(layer.size("in")) and bool(layer.size("out"))


def _area(layer: Layer, area: float) -> float:
    if layer.kind in _WHOLE:
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
    """Of a size in all dimensions."""
    if layer.size(name):
        digits = re.search(r"(\d)d$", layer.kind)
        dimensions = int(digits[1]) if digits else 2 if layer.kind.endswith("pool") else 1
        return math.prod([layer.size(name)] * dimensions)
    return math.prod(layer.size(f"{name}{axis}", 1) for axis in range(3))
