"""Which nodes jobs prefer: the fastest for their model, those on which it gains most, or those listed first.

`fastest`    Each job prefers the device kind on which its model is fastest.
`advantage`  Each job prefers the kind on which its model is fast, also compared with the others: by its speed
             ÷ the (geometric) mean speed of all models to the power of `SHARE`. So of two kinds on which a
             model is about as fast, jobs take the one from which others gain less. Running jobs move to
             faster devices that come free, if that saves more time than a start costs.
`blind`      All jobs prefer the nodes that the cluster lists first.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rota.core.arrays import Floats
from rota.core.cluster import Cluster, Preferences, fastest_first
from rota.core.placement import Types

SHARE = 0.25
"""Power of the mean speed of all models: 0 is `fastest`, 1 the whole comparative advantage."""


def preferences(
    types: Types, cluster: Cluster, speeds: Floats, groups: NDArray[np.int32]
) -> Preferences | None:
    """Return the preferences of jobs; None if they prefer nodes as listed.

    `groups` has the group of each node, `speeds` (model × group) the speed of each model there.
    """
    if types == "blind":
        return None
    kinds = [cluster.nodes[int(np.argmax(groups == group))].kind for group in range(speeds.shape[1])]
    if types == "fastest":
        return fastest_first(cluster, speeds, groups)
    return replace(fastest_first(cluster, advantage(speeds, kinds), groups), moves=True)


def advantage(speeds: Floats, kinds: list[str]) -> Floats:
    """Return numbers (model × group) that are higher where a model gains more; equal only if all is equal.

    Among groups on which a model gains as much the faster ones come first, then those whose kind has the
    first name: what the cluster lists first does not matter.
    """
    logs = np.log(speeds)
    gains = np.round(logs - SHARE * logs.mean(axis=0), 9)
    wanted = np.empty_like(logs)
    for model in range(len(speeds)):
        keys = list(zip(-gains[model], -speeds[model], kinds, strict=True))
        places = {key: place for place, key in enumerate(sorted(set(keys)))}
        wanted[model] = [-places[key] for key in keys]
    return wanted
