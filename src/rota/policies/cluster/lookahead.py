"""Lookahead: preview the jobs that are present under several policies, and follow the best for a while.

A preview is an engine of its own with the present jobs on their slots (`rota.core.preview`): nothing in
it is known of jobs to come, of failures, or of durations that the policy does not know; those are drawn, the
same for all candidates, from what gittins expects. Time is budgeted in previewed instants, not in seconds, so
that the same run decides the same again.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from rota.core import columns as c
from rota.core.arrays import Floats
from rota.core.errors import ConfigError, unknown
from rota.core.policy import Needs, Plan, Policy
from rota.core.preview import Preview
from rota.core.view import ClusterView
from rota.policies.cluster.gittins import FIRST_OF_PRIOR, LAST_OF_PRIOR, TOTAL, Gittins, learn
from rota.policies.cluster.registry import scheduler_class

Objective = Literal["avg_jct", "slowdown", "p99", "makespan"]
SHORT_S = 10.0
"""Jobs shorter than this count as so long in slowdowns."""

BY_DEFAULT = (
    *("srtf", "srsf"),
    *("muri-s", "muri-s packing_num=2", "muri-s packing_num=3", "muri-s weight_lbd=0.5"),
    *("gittins", "tiresias"),
)
STATE = ("followed", "asked", "next", "reseated")
"""What is remembered from one instant to the next: rows of the policy's own columns over groups."""


class PreviewChoice(NamedTuple):
    """A candidate, and whether running jobs may be moved at this instant."""

    candidate: int
    reseats: bool


@dataclass(frozen=True, slots=True)
class Lookahead:
    """Preview the present jobs under several policies, and follow the best for a while."""

    candidates: tuple[str, ...] = BY_DEFAULT
    """Schedulers to preview, with their options: `muri-s packing_num=2`, or `file.py:Class`. Those that need
    durations are left out where none are known; where they are, those that do not use them."""
    every: int = 5
    """Least number of instants from one preview to the next."""
    every_s: float = 0.0
    """Least number of seconds from one preview to the next."""
    budget: int = 300
    """Instants that each candidate is previewed for; what is not done by then is estimated."""
    per_instant: float = 16.0
    """Previewd instants per instant, on average: after costly previews, the next one is later."""
    horizon_s: float = np.inf
    """Seconds that are previewed; what is not done by then is estimated."""
    draws: int = 4
    """Times that durations are drawn where they are not known."""
    objective: Objective = "avg_jct"
    """What the best candidate minimises: the mean completion time, the mean slowdown of jobs, which count as
    10 s at least, the 99th percentile of completion times, or the makespan."""
    seed: int = 0
    """Seed of durations that are drawn."""

    def __post_init__(self) -> None:
        for name in ("every", "budget", "draws"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not self.every_s >= 0.0:
            raise ConfigError(f"every_s is {self.every_s}; it must be 0 or more")
        for name in ("per_instant", "horizon_s"):
            if not getattr(self, name) > 0.0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be above 0")
        if self.objective not in get_args(Objective):
            raise ConfigError(unknown("objective", self.objective, get_args(Objective)))
        if self.seed < 0:
            raise ConfigError(f"seed is {self.seed}; it must be 0 or more")
        _policies(self.candidates)

    @property
    def previewed(self) -> tuple[Policy, ...]:
        """The candidates, with their options."""
        return _policies(self.candidates)

    @property
    def needs(self) -> Needs:
        each = [policy.needs for policy in _policies(self.candidates)]
        desk = max(len(needs.own) for needs in each)
        shelves = [f"{k}_{name}" for k, needs in enumerate(each) for name in needs.own]
        slots = max((needs.own_slots for needs in each), key=len)
        return Needs(
            own=(*(f"own_{number}" for number in range(desk)), *shelves),
            own_slots=slots,
            own_groups=(*_known(each), *STATE),
            sharing=max(needs.sharing for needs in each),
            durations="optional",
            ties=each[0].ties,
        )

    def plan(self, view: ClusterView) -> Plan:
        state = view.memory[1]["own_groups"][-len(STATE) :, -1]
        reseats = False
        state[1] += 1
        if state[1] >= state[2] and (self.every_s == 0.0 or view.now_s >= state[3]):
            chosen, instants = self._choose(view, int(state[0]))
            self._follow(view, int(state[0]), chosen.candidate)
            reseats = chosen.reseats
            state[0], state[2] = chosen.candidate, state[1] + max(self.every, instants / self.per_instant)
            state[3] = view.now_s + self.every_s
        number = int(state[0])
        policy = _policies(self.candidates)[number]
        if not policy.needs.own_groups:
            learn(view.address)
        plan = decide(view, policy, number, reseats=reseats)
        if self.every_s and state[1] >= state[2] - 1:
            plan.wake_at_s = min(plan.wake_at_s, max(state[3], np.nextafter(view.now_s, np.inf)))
        return plan

    def _choose(self, view: ClusterView, followed: int) -> tuple[PreviewChoice, int]:
        """Preview all candidates; return the best, the one that is followed in a tie, and what it took."""
        choices = list(self._choices(view, followed))
        if view.active < 2:
            choices = [each for each in choices if each.candidate == choices[0].candidate]
        if len(choices) == 1:
            return choices[0], 0
        costs, instants = [], 0
        worlds = self._worlds(view)
        for choice in choices:
            cost = 0.0
            for left in worlds:
                found, took = self._preview(view, choice, followed, left)
                cost += found
                instants += took
            costs.append(cost)
        return choices[int(np.argmin(costs))], instants

    def _choices(self, view: ClusterView, followed: int) -> Iterator[PreviewChoice]:
        """Yield what there is to choose from, the candidate that is followed first if it may be."""
        policies = _policies(self.candidates)
        fitting = [k for k, policy in enumerate(policies) if _fits(policy, view)] or [
            k
            for k, policy in enumerate(policies)
            if policy.needs.durations != "needed" or view.knows != "none"
        ]
        if not fitting:
            names = ", ".join(self.candidates)
            raise ConfigError(f"candidates {names}: all need durations, and none are known; add gittins")
        moves = not view.memory[0]["is_even"][0] and bool((view.place[view.order] >= 0.0).any())
        for number in sorted(fitting, key=lambda number: number != followed):
            yield PreviewChoice(number, reseats=False)
            if moves:
                yield PreviewChoice(number, reseats=True)

    def _worlds(self, view: ClusterView) -> list[Floats]:
        """Return the iterations that are left of each job, in list order, in each world to preview."""
        if view.knows != "none":
            return [view.remaining[view.order]]
        return [drawn_iterations(view, (self.seed, number)) for number in range(self.draws)]

    def _preview(
        self, view: ClusterView, choice: PreviewChoice, followed: int, left: Floats
    ) -> tuple[float, int]:
        """Return the objective of a candidate in one world, and how many instants were previewed."""
        policy = _policies(self.candidates)[choice.candidate]
        if choice.candidate != followed:
            self._follow(view, followed, choice.candidate)
        try:
            found = Preview(view, policy.needs, left)
        finally:
            if choice.candidate != followed:
                self._follow(view, choice.candidate, followed)
        until_s = view.now_s + self.horizon_s
        found.go_on(
            policy,
            lambda previewed: decide(previewed, policy, choice.candidate, reseats=choice.reseats),
            self.budget,
            until_s,
        )
        return self._cost(view, found), found.instants

    def _cost(self, view: ClusterView, found: Preview) -> float:
        ends_s = found.ends_s()
        open_ = ~np.isfinite(ends_s)
        if open_.any():
            ends_s[open_] = found.estimated_ends_s()[open_]
        rows = view.order
        jct_s = ends_s - view.submit_s[rows]
        match self.objective:
            case "avg_jct":
                return float(jct_s.sum())
            case "slowdown":
                return float((jct_s / np.maximum(found.solo_s, SHORT_S)).sum())
            case "p99":
                return float(np.quantile(jct_s, 0.99))
            case _:
                return float(ends_s.max())

    def _follow(self, view: ClusterView, before: int, now: int) -> None:
        """Put away the own columns of one candidate, and take out those of another one."""
        if before == now:
            return
        sizes = [len(policy.needs.own) for policy in _policies(self.candidates)]
        desk = c.OWN
        shelf = [desk + max(sizes) + sum(sizes[:k]) for k in range(len(sizes))]
        columns, rows = view.columns, view.order
        columns[shelf[before] : shelf[before] + sizes[before], rows] = columns[
            desk : desk + sizes[before], rows
        ]
        columns[desk : desk + sizes[now], rows] = columns[shelf[now] : shelf[now] + sizes[now], rows]


def decide(view: ClusterView, policy: Policy, number: int, *, reseats: bool) -> Plan:
    """Return the plan of a candidate; with `reseats`, as if no job had slots that it would rather keep."""
    memo = view.memo
    view.memo = memo.setdefault(f"candidate {number}", {})
    places = view.columns[c.PLACE]
    before = places[view.order].copy()
    try:
        if reseats:
            places[view.order] = -1.0
        return policy.plan(view)
    finally:
        places[view.order] = before
        view.memo = memo


def _fits(policy: Policy, view: ClusterView) -> bool:
    """Return whether a candidate uses what is known of durations, and what the jobs can do."""
    if view.knows == "none":
        if policy.needs.durations == "needed":
            return False
    elif policy.needs.durations == "unused":
        return False
    stages = view.columns[c.LOAD_S : c.SYNC_S + 1, view.order]
    return policy.needs.sharing == 1 or bool(stages.any())


def drawn_iterations(view: ClusterView, seed: tuple[int, int]) -> Floats:
    """Return the iterations left of each job in list order, drawn from what gittins expects of it.

    The draw of a job is the same at each instant: with what it attains, only what was excluded changes.
    """
    rows = view.order
    rule, seen = Gittins(), view.memory[1]["own_groups"]
    counts = seen[:TOTAL]
    ended = max(float(seen[TOTAL, -1]), 1.0)
    weights = counts[:, view.columns[c.GROUP, rows].astype(np.int64)].copy()
    weights += (min(rule.others, seen[TOTAL, -1]) / ended) * counts[:, -1:]
    weights[FIRST_OF_PRIOR + 1 : LAST_OF_PRIOR + 1] += rule.prior / (LAST_OF_PRIOR - FIRST_OF_PRIOR)
    edges_s = np.concatenate(([0.0], 2.0 ** (np.arange(len(counts)) / 2.0)))
    iteration_s = view.iteration_s[rows]
    attained_s = (
        np.maximum(view.columns[c.ITERATIONS, rows] - view.columns[c.REMAINING, rows], 0.0) * iteration_s
    )
    low_s = np.maximum(edges_s[:-1, None], attained_s)
    widths_s = np.maximum(edges_s[1:, None] - low_s, 0.0)
    mass = np.cumsum(weights * widths_s / np.diff(edges_s)[:, None], axis=0)
    drawn = np.array([np.random.default_rng((*seed, int(job))).random() for job in view.columns[c.JOB, rows]])
    bins = np.minimum((mass < drawn * mass[-1]).sum(axis=0), len(counts) - 1)
    at = np.arange(len(rows))
    part = 1.0 - (mass[bins, at] - drawn * mass[-1]) / np.maximum(
        mass[bins, at] - np.where(bins, mass[bins - 1, at], 0.0), 1e-12
    )
    total_s = low_s[bins, at] + np.clip(part, 0.0, 1.0) * widths_s[bins, at]
    left: Floats = np.maximum(total_s - attained_s, 1.0) / iteration_s
    return left


def _known(each: list[Needs]) -> tuple[str, ...]:
    """Return the columns over groups that all candidates share: those of gittins, and more of one of them."""
    ours = Gittins().needs.own_groups
    more = [needs.own_groups for needs in each if needs.own_groups]
    longest = max((ours, *more), key=len)
    for names in more:
        if names != longest[: len(names)]:
            raise ConfigError(
                f"candidates: one has columns of its own over groups ({names[0]} …), another has others; "
                "leave one of them out"
            )
    return longest


@lru_cache(maxsize=64)
def _policies(candidates: tuple[str, ...]) -> tuple[Policy, ...]:
    """Return the candidates. Raises ConfigError if one cannot be previewed."""
    if not candidates:
        raise ConfigError("candidates is empty; name at least one scheduler")
    if len(set(candidates)) < len(candidates):
        raise ConfigError(f"candidates: {', '.join(candidates)}: each may be named once")
    found = tuple(_policy(each) for each in candidates)
    _known([policy.needs for policy in found])
    return found


def _policy(said: str) -> Policy:
    name, *settings = said.split()
    if name == "lookahead":
        raise ConfigError("candidates: lookahead cannot preview itself; leave it out")
    made = scheduler_class(name)
    options: dict[str, Any] = {}
    for setting in settings:
        try:
            options |= tomllib.loads(setting)
        except tomllib.TOMLDecodeError:
            raise ConfigError(
                f"candidates: {said!r}: {setting!r} is no option; write NAME=VALUE, without blanks"
            ) from None
    try:
        policy: Policy = made(**options)
    except TypeError as error:
        raise ConfigError(f"candidates: {said!r}: {error}") from None
    if policy.needs.resizes:
        raise ConfigError(f"candidates: {name} resizes gangs, which cannot be previewed; leave it out")
    return policy
