"""What a recorded network looked like at each decision, built anew from its model and its changes.

A recording names the model and what was done to it. Networks that rota does not know, as in the tables of
others, are stood for by one layer per block.
"""

import logging
from collections.abc import Sequence
from copy import deepcopy
from functools import lru_cache
from itertools import product

from torch import nn

from rota.core.change import SHRINK, Change
from rota.core.errors import InputError
from rota.core.structure import Layer, Structure
from rota.recordings.tree import Prefix, Tree
from rota.training.data.catalogue import CATALOGUE
from rota.training.models.registry import MODELS, build
from rota.training.net2net import NotGrowable, blocks, deepen, layer_in, widen
from rota.training.sight import with_blocks

log = logging.getLogger(__name__)

Seen = tuple[Structure, tuple[tuple[int, ...], ...]]
"""A structure, and the layers of each block."""


def actions_of(tree: Tree) -> tuple[Change, ...]:
    """What can be done at a decision of a recorded tree."""
    try:
        return tuple(map(Change.parse, tree.actions))
    except InputError as error:
        raise InputError(f"tree {tree.model} {tree.scenario}: {error}") from None


def seen_in(tree: Tree) -> dict[Prefix, Seen]:
    """The network before each decision, by what was done until then."""
    asked = tree.details.get("asked") or {}
    size = asked.get("setup", {}).get("size")
    return _seen(tree.model, tree.data, size, actions_of(tree), tree.decisions)


@lru_cache(maxsize=32)
def _seen(
    model: str, data: str, size: int | None, actions: tuple[Change, ...], decisions: int
) -> dict[Prefix, Seen]:
    known = {name.replace("-", ""): name for name in MODELS}.get(model.lower().replace("-", ""))
    growth = {made: _growth(actions, made) for made in _prefixes(len(actions), decisions)}
    if known is None:
        log.warning("%s: not a model of rota's; each of its blocks is seen as one unknown layer", model)
        return {made: _stand_in(model, actions, grown) for made, grown in growth.items()}
    networks: dict[Prefix, nn.Module] = {(): _fresh(known, data, size)}
    for grown in growth.values():
        if grown not in networks:
            networks[grown] = _changed(networks[grown[:-1]], actions[grown[-1]], model)
    found = {grown: with_blocks(network) for grown, network in networks.items()}
    return {made: found[grown] for made, grown in growth.items()}


def _growth(actions: Sequence[Change], made: Prefix) -> Prefix:
    """What is left of what was done: to shrink takes back the last growth, to widen again does nothing."""
    grown: Prefix = ()
    for each in made:
        if actions[each] == SHRINK:
            grown = grown[:-1]
        elif actions[each].grows and not _is_so(actions[each], [actions[before] for before in grown]):
            grown = (*grown, each)
    return grown


def _is_so(change: Change, before: Sequence[Change]) -> bool:
    """Whether a block has been made as wide already."""
    wide = max((each.width for each in before if each.block == change.block), default=-1)
    return change.kind == "widen" and wide >= change.width


def _prefixes(actions: int, decisions: int) -> list[Prefix]:
    """Everything that can have been done before a decision, what is shorter first."""
    return [made for length in range(decisions) for made in product(range(actions), repeat=length)]


def _fresh(model: str, data: str, size: int | None) -> nn.Module:
    if MODELS[model].task == "classification":
        found = CATALOGUE.get(data, CATALOGUE["cifar10"])
        channels, *pixels = found.shape
        return build(model, (channels, *([size] * 2 if size else pixels)), len(found.classes))
    from rota.training.device import device
    from rota.training.tasks import task_of

    task = task_of(model, device=device("cpu"))
    return build(model, task.inputs, task.outputs)


def _changed(network: nn.Module, change: Change, model: str) -> nn.Module:
    names = blocks(network)
    if change.block >= len(names):
        raise InputError(f"{change}: {model} has {len(names)} blocks, counted from 0; was it another model?")
    changed, name = deepcopy(network), names[change.block]
    try:
        if change.kind == "deepen":
            deepen(changed, name)
        else:
            widen(changed, layer_in(changed, name), change.width)
    except NotGrowable as error:
        raise InputError(f"{change}: not possible in {model} ({error}); was it another model?") from None
    return changed


def _stand_in(model: str, actions: Sequence[Change], growth: Prefix) -> Seen:
    """A chain of unknown layers, named after the model, as many in each block as it has grown to."""
    count = 1 + max(0, *(change.block for change in actions))
    grown = [1 + sum(actions[each].block == block for each in growth) for block in range(count)]
    layers = [Layer(f"{model.lower()} {block}") for block, depth in enumerate(grown) for _ in range(depth)]
    ends = [sum(grown[: block + 1]) for block in range(count)]
    parts = tuple(tuple(range(end - depth, end)) for end, depth in zip(ends, grown, strict=True))
    return Structure(tuple(layers), tuple((at, at + 1) for at in range(len(layers) - 1))), parts
