"""Some examples set apart from the others, the same share of every class."""

import numpy as np

from rota.core.arrays import Array
from rota.training.data.chance import chance


def stratified(labels: Array, count: int, seed: int) -> tuple[Array, Array]:
    """Indices that stay and `count` indices drawn by the seed, both ascending and without overlap."""
    random = chance(seed)
    classes, sizes = np.unique(labels, return_counts=True)
    drawn = [
        random.choice(np.flatnonzero(labels == found), share, replace=False)
        for found, share in zip(classes, _shares(sizes, count), strict=True)
    ]
    apart = np.zeros(len(labels), dtype=bool)
    apart[np.concatenate(drawn)] = True
    return np.flatnonzero(~apart), np.flatnonzero(apart)


def _shares(sizes: Array, count: int) -> Array:
    """`count` divided among the classes by size; what rounding leaves goes to the largest remainders."""
    whole, remainder = np.divmod(sizes * count, sizes.sum())
    missing = count - whole.sum()
    whole[np.argsort(-remainder, kind="stable")[:missing]] += 1
    return np.asarray(whole)
