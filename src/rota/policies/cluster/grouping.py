"""Grouping jobs of equal gang size until they fit the cluster: by matching, or simply in runs."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rota.policies.cluster.interleaving import Catalogue
from rota.policies.cluster.matching import match

WEIGHT_UNIT = 1e9  # efficiencies become whole numbers of this many parts, so that sums are exact


@dataclass(slots=True)
class Bucket:
    """The groups of one gang size, in order of urgency, and the kind of each."""

    gpus: int
    groups: list[tuple[int, ...]]
    kinds: list[int] = field(default_factory=list)


def group_by_matching(
    buckets: list[Bucket], capacity: int, largest: int, least: Callable[[int], float], catalogue: Catalogue
) -> None:
    """Pair groups up by maximum-weight matching, at most `largest` times, until the need for slots is met.

    Pairs are merged bucket by bucket, in order, and only while more slots are needed than there are.
    """
    need = sum(bucket.gpus * len(bucket.groups) for bucket in buckets)
    for _ in range(largest):
        if need <= capacity:
            return
        before = need
        for bucket in buckets:
            mates = match_bucket(bucket, largest, least, catalogue)
            need = _merge(bucket, mates, need, capacity, catalogue)
        if need == before:
            return


def match_bucket(
    bucket: Bucket, largest: int, least: Callable[[int], float], catalogue: Catalogue
) -> NDArray[np.int64]:
    """The best partner for each group of a bucket, or -1."""
    if len(bucket.groups) < 2:
        return np.full(len(bucket.groups), -1)
    present, types = np.unique(np.array(bucket.kinds), return_inverse=True)
    weight = np.zeros((len(present), len(present)), np.int64)
    numbers = present.tolist()
    for i, a in enumerate(numbers):
        for j in range(i, len(numbers)):
            size = len(catalogue.kinds[a].profiles) + len(catalogue.kinds[numbers[j]].profiles)
            if size <= largest:
                efficiency = catalogue.kinds[catalogue.pair(a, numbers[j])].efficiency
                if efficiency > least(size):
                    weight[i, j] = weight[j, i] = round(efficiency * WEIGHT_UNIT)
    return match(types.reshape(-1), weight)


def _merge(bucket: Bucket, mates: NDArray[np.int64], need: int, capacity: int, catalogue: Catalogue) -> int:
    """Go through the groups in order; a pair stands where its later half stood. Returns what is still needed."""
    groups, kinds = [], []
    for later, earlier in enumerate(mates.tolist()):
        if earlier > later:
            continue
        ahead = [] if earlier < 0 else [earlier]
        if ahead and need > capacity:
            need -= bucket.gpus
            groups.append(bucket.groups[earlier] + bucket.groups[later])
            kinds.append(catalogue.pair(bucket.kinds[earlier], bucket.kinds[later]))
            continue
        for i in (*ahead, later):
            groups.append(bucket.groups[i])
            kinds.append(bucket.kinds[i])
    bucket.groups, bucket.kinds = groups, kinds
    return need


def group_in_runs(
    buckets: list[Bucket], capacity: int, largest: int, least: Callable[[int], float], catalogue: Catalogue
) -> None:
    """Cut each bucket into runs of neighbours; the first of a run takes in the others while slots are needed."""
    need = sum(bucket.gpus * len(bucket.groups) for bucket in buckets)
    for bucket in buckets:
        groups, kinds = [], []
        for first in range(0, len(bucket.groups), largest):
            leader, kind = bucket.groups[first], bucket.kinds[first]
            for i in range(first + 1, min(first + largest, len(bucket.groups))):
                if need > capacity:
                    need -= bucket.gpus
                    leader, kind = leader + bucket.groups[i], catalogue.pair(kind, bucket.kinds[i])
                else:
                    groups.append(bucket.groups[i])
                    kinds.append(bucket.kinds[i])
            groups.append(leader)
            kinds.append(kind)
        bucket.groups, bucket.kinds = groups, kinds
