"""Random order: what a scheduler must beat to have decided anything."""

from dataclasses import dataclass

import numpy as np

from rota.core.calls import place, sort_rows
from rota.core.columns import JOB, PLACE
from rota.core.compiled import kernel
from rota.core.driver import CompiledPlan, decide_placed, options_of
from rota.core.memory import columns_of, engine_at, floats, ints, order_of_jobs
from rota.core.placement import STYLES, Style, first_fit
from rota.core.policy import Needs, Plan
from rota.core.view import ClusterView


@dataclass(frozen=True, slots=True)
class Random:
    """Running jobs keep running; of the others, those that fit start in a random order."""

    seed: int = 0
    """Number from which the order is drawn: the same seed gives the same order."""
    placement: Style = "consolidated"
    """How a gang is placed on nodes."""

    @property
    def needs(self) -> Needs:
        return Needs(durations="unused")

    @property
    def compiled(self) -> CompiledPlan:
        return CompiledPlan(plan_random, (self.seed, STYLES[self.placement]))

    def plan(self, view: ClusterView) -> Plan:
        key = np.zeros(view.capacity)
        draw(view.columns, view.order, self.seed, key)
        return first_fit(view, view.rank(key), style=self.placement, keep=True)


@kernel
def plan_random(address):
    """Plan as `Random.plan`."""
    e = engine_at(address)
    options, key, order = options_of(e), floats(e.keys, e.capacity), order_of_jobs(e)
    draw(columns_of(e), order, int(options[0]), key)
    ranked = ints(e.ranking, e.active)
    sort_rows(e, order, key, ranked)
    order[:] = ranked
    decide_placed(e, place(e, address, order, int(options[1]), 0, 1), np.inf)


@kernel
def draw(columns, order, seed, key):
    """Write -1 for a running job, and a random number from 0 to 1 for a waiting one."""
    for row in order:
        key[row] = -1.0 if columns[PLACE, row] >= 0.0 else drawn(seed, int(columns[JOB, row]))


@kernel
def drawn(seed, job):
    """Return the random number of a job: two numbers, mixed by multiplications and shifts."""
    mixed = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
    mixed += np.uint64(job + 1) * np.uint64(0xD1342543DE82EF95)
    for _ in range(3):
        mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return float(mixed >> np.uint64(11)) / 2.0**53
