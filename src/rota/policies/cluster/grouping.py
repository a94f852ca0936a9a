"""Grouping of jobs of equal gang size until they fit the cluster: by matching, or in runs of neighbours."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rota.policies.cluster.interleaving import Catalogue
from rota.policies.cluster.matching import assign, best_pairs

WEIGHT_UNIT = 1e9  # efficiencies become whole numbers of this unit, so that sums are exact
ALL = -1  # the set of all device kinds


@dataclass(slots=True)
class Bucket:
    """The groups of one gang size, by urgency, with their kinds and homes."""

    gpus: int
    groups: list[tuple[int, ...]]
    kinds: list[int] = field(default_factory=list)
    homes: list[int] = field(default_factory=list)
    """Unit that each group prefers to stay in; -1 for none."""
    devices: int = ALL
    """Set of device kinds that its jobs may use."""
    alone: bool = False
    """Whether its jobs cannot share slots, since their stages are not known."""

    def __post_init__(self) -> None:
        self.homes = self.homes or [-1] * len(self.groups)


class Shortage:
    """The number of missing slots: in total, and of each set of devices that jobs are restricted to."""

    def __init__(self, buckets: list[Bucket], slots: Mapping[int, int]) -> None:
        """`slots` has the number of slots of each set of devices, including ALL."""
        self._missing = {devices: -there for devices, there in slots.items()}
        for bucket in buckets:
            self._add(bucket.devices, bucket.gpus * len(bucket.groups))

    def hits(self, bucket: Bucket) -> bool:
        """Return whether jobs of a bucket have to share."""
        return not bucket.alone and (self._missing[ALL] > 0 or self._missing[bucket.devices] > 0)

    def release(self, bucket: Bucket) -> None:
        """Count two groups of a bucket that have become one."""
        self._add(bucket.devices, -bucket.gpus)

    def _add(self, devices: int, gpus: int) -> None:
        for others in self._missing:
            if others == ALL or (devices != ALL and devices & ~others == 0):
                self._missing[others] += gpus


def group_by_matching(
    buckets: list[Bucket],
    shortage: Shortage,
    largest: int,
    least: Callable[[int], float],
    catalogue: Catalogue,
) -> None:
    """Pair groups by maximum-weight matching, at most `largest` times, until they fit the slots.

    Pairs are merged bucket by bucket, in order, and only while slots are missing.
    """
    for _ in range(largest):
        merged = False
        for bucket in buckets:
            if shortage.hits(bucket):
                mates = match_bucket(bucket, largest, least, catalogue)
                merged |= _merge(bucket, mates, shortage, catalogue)
        if not merged:
            return


def match_bucket(
    bucket: Bucket, largest: int, least: Callable[[int], float], catalogue: Catalogue
) -> list[int]:
    """Return the best partner for each group of a bucket, or -1."""
    if len(bucket.groups) < 2:
        return [-1] * len(bucket.groups)
    counts = Counter(bucket.kinds)
    present = sorted(counts)
    key = tuple((kind, counts[kind]) for kind in present)
    pairs = catalogue.pairings.get(key)
    if pairs is None:
        weight = _weights(present, largest, least, catalogue)
        pairs = best_pairs(np.array([counts[kind] for kind in present]), weight)
        catalogue.pairings[key] = pairs
    types = {kind: number for number, kind in enumerate(present)}
    numbers = np.array([types[kind] for kind in bucket.kinds])
    mates: list[int] = assign(numbers, pairs, np.array(bucket.homes)).tolist()
    return mates


def _weights(
    present: list[int], largest: int, least: Callable[[int], float], catalogue: Catalogue
) -> NDArray[np.int64]:
    """Return the weight of a pair of each two kinds."""
    weight = np.zeros((len(present), len(present)), np.int64)
    worth = catalogue.worth
    for i, a in enumerate(present):
        for j, b in enumerate(present[: i + 1]):
            value = worth.get((a, b))
            if value is None:
                value = worth[a, b] = _worth(a, b, largest, least, catalogue)
            weight[i, j] = weight[j, i] = value
    return weight


def _worth(a: int, b: int, largest: int, least: Callable[[int], float], catalogue: Catalogue) -> int:
    """Return the efficiency of the group that two kinds form, as a whole number; 0 if it is not allowed."""
    size = len(catalogue.kinds[a].profiles) + len(catalogue.kinds[b].profiles)
    if size > largest:
        return 0
    efficiency = catalogue.kinds[catalogue.pair(a, b)].efficiency
    return round(efficiency * WEIGHT_UNIT) if efficiency > least(size) else 0


def _merge(bucket: Bucket, mates: list[int], shortage: Shortage, catalogue: Catalogue) -> bool:
    """Merge pairs in order; a pair takes the place of its later half. Return whether there was any."""
    groups, kinds, homes = [], [], []
    for later, earlier in enumerate(mates):
        if earlier > later:
            continue
        ahead = [] if earlier < 0 else [earlier]
        if ahead and shortage.hits(bucket):
            shortage.release(bucket)
            groups.append(bucket.groups[earlier] + bucket.groups[later])
            kinds.append(catalogue.pair(bucket.kinds[earlier], bucket.kinds[later]))
            homes.append(bucket.homes[earlier] if bucket.homes[earlier] >= 0 else bucket.homes[later])
            continue
        for i in (*ahead, later):
            groups.append(bucket.groups[i])
            kinds.append(bucket.kinds[i])
            homes.append(bucket.homes[i])
    merged = len(groups) < len(bucket.groups)
    bucket.groups, bucket.kinds, bucket.homes = groups, kinds, homes
    return merged


def group_in_runs(
    buckets: list[Bucket],
    shortage: Shortage,
    largest: int,
    least: Callable[[int], float],
    catalogue: Catalogue,
) -> None:
    """Cut buckets into runs of neighbours; the first of a run takes in the others while slots are missing."""
    for bucket in buckets:
        groups, kinds = [], []
        for first in range(0, len(bucket.groups), largest):
            leader, kind = bucket.groups[first], bucket.kinds[first]
            for i in range(first + 1, min(first + largest, len(bucket.groups))):
                if shortage.hits(bucket):
                    shortage.release(bucket)
                    leader, kind = leader + bucket.groups[i], catalogue.pair(kind, bucket.kinds[i])
                else:
                    groups.append(bucket.groups[i])
                    kinds.append(bucket.kinds[i])
            groups.append(leader)
            kinds.append(kind)
        bucket.groups, bucket.kinds = groups, kinds
