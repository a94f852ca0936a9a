"""Muri: jobs that need different resources at different times share GPUs, stage by stage.

Jobs are ranked by service. As many are taken as could run if GPUs were shared. Those with the same gang size
and devices are grouped by maximum-weight matching, round after round, until the groups fit.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rota.core.columns import KIND, KINDS, ROW, SIZE, UNIT, UP
from rota.core.costs import Ties
from rota.core.driver import CompiledPlan
from rota.core.errors import ConfigError
from rota.core.kernels import has_stages
from rota.core.placement import first_fit
from rota.core.policy import Needs, Plan
from rota.core.view import ClusterView
from rota.policies.cluster.grouping import ALL, Bucket, Shortage, group_by_matching, group_in_runs
from rota.policies.cluster.interleaving import CONTENTION, CONTENTION_UNMATCHED, Catalogue, Ordering
from rota.policies.cluster.muri_plan import plan_groups
from rota.policies.cluster.taking import take

LARGEST_GROUP = 8


@dataclass(frozen=True, slots=True)
class Muri:
    """The common part of the four variants, which differ in ranking, ordering and grouping."""

    packing_num: int = 4
    """Largest group."""
    multi_resource: int = 4
    """Number of resources that a job uses in turn; 4 splits loading into storage and CPU."""
    weight_lbd: float = 0.0
    """Group only if the efficiency is above this times group size ÷ resources."""
    autopack: bool = True
    """Split groups that would be faster one after another."""

    knows_durations: ClassVar[bool] = False
    ordering: ClassVar[Ordering] = "best"
    matches: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.multi_resource < 3:
            raise ConfigError(f"multi_resource {self.multi_resource}: a job has three stages, so at least 3")
        if not 1 <= self.packing_num <= self.multi_resource:
            raise ConfigError(
                f"packing_num {self.packing_num}: it must be 1 to {self.multi_resource} (multi_resource)"
            )
        if self.packing_num > LARGEST_GROUP:
            raise ConfigError(
                f"packing_num {self.packing_num}: at most {LARGEST_GROUP}, as all orders are tried"
            )
        if not self.weight_lbd >= 0.0:
            raise ConfigError(f"weight_lbd {self.weight_lbd}: it must be 0 or more")

    @property
    def needs(self) -> Needs:
        return Needs(
            sharing=self.packing_num,
            durations="needed" if self.knows_durations else "unused",
            ties=Ties(ends_rel=1e-9, arrivals_rel=1e-9, merge_rel=1e-9, merge_abs=1e-4),
        )

    @property
    def compiled(self) -> CompiledPlan:
        options = self.packing_num, self.multi_resource, self.weight_lbd, self.autopack
        return CompiledPlan(
            plan_groups,
            (*options, self.knows_durations, self.matches),
            otherwise=self.plan,
            memory=lambda view: self._catalogue(view).address,
        )

    def plan(self, view: ClusterView) -> Plan:
        key = self._key(view)
        order = view.rank(key)
        taken, ends = self._take(view, order)
        enough = view.gpus[taken].sum() <= _slots(view, ALL)
        if self.matches and enough and not (view.columns[KINDS, taken] >= 0.0).any():
            plan = first_fit(view, view.rank(key, taken))  # no job has to share
        else:
            plan = self._place(view, key, self._group(view, _buckets(view, taken, ends)))
        plan.order = view.rank(-view.gpus, order)
        return plan

    def _key(self, view: ClusterView) -> NDArray[np.float64]:
        """Return the remaining service if durations are known, else the attained service, in GPU-seconds."""
        if not self.knows_durations:
            return view.executed_s * view.gpus
        left_s = np.where(view.executed_s > 0.0, view.remaining * view.iteration_s, view.duration_s)
        return left_s * view.gpus

    def _take(
        self, view: ClusterView, order: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the jobs that would run if every GPU were shared, by bucket, and where each bucket ends."""
        taken, ends = np.empty_like(order), np.empty_like(order)
        buckets = take(view.columns, order, view.nodes, self.packing_num, view.scratch, taken, ends)
        return taken[: ends[buckets - 1] if buckets else 0], ends[:buckets]

    def _group(self, view: ClusterView, buckets: list[Bucket]) -> list[tuple[tuple[int, ...], float]]:
        """Return the groups to run, each with its step time."""
        catalogue = self._catalogue(view)
        for bucket in buckets:
            bucket.kinds = [catalogue.single(view.columns, group[0]) for group in bucket.groups]
            bucket.homes = [_home(view, group[0]) for group in bucket.groups]
        sets = {ALL, *(bucket.devices for bucket in buckets)}
        shortage = Shortage(buckets, {devices: _slots(view, devices) for devices in sets})
        grouping = group_by_matching if self.matches else group_in_runs
        grouping(buckets, shortage, self.packing_num, self._least, catalogue)
        groups: list[tuple[tuple[int, ...], float]] = []
        for bucket in buckets:
            for rows, number in zip(bucket.groups, bucket.kinds, strict=True):
                kind = catalogue.kinds[number]
                if len(rows) > 1 and self.autopack and kind.slower_than_in_turn:
                    groups += [((row,), float(view.iteration_s[row])) for row in rows]
                else:
                    groups.append((rows, kind.pace_s))
        return groups

    def _least(self, size: int) -> float:
        """Return the efficiency that a group of this size must exceed."""
        return self.weight_lbd * (size / self.multi_resource)

    def _catalogue(self, view: ClusterView) -> Catalogue:
        if "muri" not in view.memo:
            contention = CONTENTION if self.matches else CONTENTION_UNMATCHED
            view.memo["muri"] = Catalogue(self.multi_resource, self.ordering, contention, self.packing_num)
        catalogue: Catalogue = view.memo["muri"]
        return catalogue

    def _place(
        self, view: ClusterView, key: NDArray[np.float64], groups: list[tuple[tuple[int, ...], float]]
    ) -> Plan:
        """Place whole groups first fit, by their most urgent member; the members share its slots."""
        urgency = [min(key[row] for row in rows) if len(rows) > 1 else key[rows[0]] for rows, _ in groups]
        ranked = [groups[i] for i in np.argsort(urgency, kind="stable").tolist()]
        leaders = np.array([rows[0] for rows, _ in ranked], np.int32)
        anchors = np.array(
            [next((row for row in rows if view.place[row] >= 0.0), rows[0]) for rows, _ in ranked], np.int32
        )
        plan = first_fit(view, leaders, anchors=anchors)
        by_leader = {rows[0]: (rows, pace_s) for rows, pace_s in ranked}
        _share(plan, [by_leader[row] for row in plan.rows.tolist()])
        return plan


def _home(view: ClusterView, row: int) -> int:
    """Return the current unit of a job, if leaving it costs anything; -1 for none."""
    if view.cost.each_instant:
        return -1
    place = int(view.place[row])
    return int(view.current.index[UNIT, place]) if place >= 0 else -1


def _slots(view: ClusterView, devices: int) -> int:
    """Return the number of slots that are up of a set of device kinds."""
    up = view.nodes[SIZE] * view.nodes[UP]
    if devices == ALL:
        return int(up.sum())
    return int(up[(devices >> view.nodes[KIND].astype(np.int64)) & 1 == 1].sum())


def _buckets(view: ClusterView, taken: NDArray[np.int32], ends: NDArray[np.int32]) -> list[Bucket]:
    rows = taken.tolist()
    return [
        Bucket(
            int(view.gpus[rows[a]]),
            [(row,) for row in rows[a:b]],
            devices=int(view.columns[KINDS, rows[a]]),
            alone=not has_stages(view.columns, rows[a]),
        )
        for a, b in pairwise([0, *ends.tolist()])
    ]


def _share(plan: Plan, units: list[tuple[tuple[int, ...], float]]) -> None:
    """Turn a plan of leaders into one of whole groups."""
    rows = [row for members, _ in units for row in members]
    plan.jobs = len(rows)
    plan.index[ROW, : plan.jobs] = rows
    plan.index[UNIT, : plan.jobs] = [unit for unit, (members, _) in enumerate(units) for _ in members]
    plan.pace_s[: plan.jobs] = [pace_s for members, pace_s in units for _ in members]


@dataclass(frozen=True, slots=True)
class MuriS(Muri):
    """Muri with known durations: least remaining service first."""

    knows_durations: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class MuriL(Muri):
    """Muri with unknown durations: least attained service first."""


@dataclass(frozen=True, slots=True)
class MuriLWorstOrder(Muri):
    """Muri-L whose groups interleave their stages in the worst order: the baseline of ordering."""

    ordering: ClassVar[Ordering] = "worst"


@dataclass(frozen=True, slots=True)
class MuriLNoBlossom(Muri):
    """Muri-L whose groups are neighbours in the queue: the baseline of matching."""

    matches: ClassVar[bool] = False
