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
_SHAPES = ("flatten", "reshape", "view")
"""These make one position of all, unless a convolution comes behind them: then they only sort channels."""


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
    convolved = _before_convolutions(structure)
    found: list[Cost] = []
    for at, (layer, before) in enumerate(zip(structure.layers, sources, strict=True)):
        area = max((found[each].area for each in before), default=1.0)  # what is smaller is spread over it
        if not (layer.kind in _SHAPES and at in convolved):
            area = _area(layer, area)
        found.append(Cost(area, *_cost(layer, area)))
    return found


def added(structure: Structure, block: tuple[int, ...], change: Change) -> tuple[float, float]:
    """The work and the weights that a change of a block would add; none if it has no layer to speak of.

    The normalisation of a new layer is left out.
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
    """The layer of a block that is made wider, or that a new one behind the block is like."""
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
    """Whether a layer mixes channels: what blocks are counted by."""
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
    """Of a size in all dimensions."""
    if layer.size(name):
        digits = re.search(r"(\d)d$", layer.kind)
        dimensions = int(digits[1]) if digits else 2 if layer.kind.endswith("pool") else 1
        return math.prod([layer.size(name)] * dimensions)
    return math.prod(layer.size(f"{name}{axis}", 1) for axis in range(3))


def _before_convolutions(structure: Structure) -> set[int]:
    """The layers that a convolution comes behind, somewhere."""
    found: set[int] = set()
    for tail, head in sorted(structure.edges, key=lambda edge: -edge[1]):
        if head in found or structure.layers[head].kind.startswith("conv"):
            found.add(tail)
    return found


def _reached(structure: Structure, start: int) -> set[int]:
    """A layer, what its channels pass as they are, and the layers that mix them next."""
    found = {start}
    for tail, head in sorted(structure.edges):
        if tail in found and (tail == start or not is_main(structure.layers[tail])):
            found.add(head)
    return found
