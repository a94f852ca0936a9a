"""Gittins index: durations are not known, but those of the jobs that ended say what to expect.

A job that has attained a seconds of work, of durations X like those of the jobs that ended, has the index

    max over x > a of  P(X ≤ x | X > a) / E[min(X, x) − a | X > a]

which is the best chance of an end per second of work that is still to be given. The job with the highest
index comes first. The durations are counted on a geometric grid, for each group and gang size and for all
jobs; a prior stands for what was not seen yet.
"""

from dataclasses import dataclass

import numpy as np

from rota.core.calls import place, sort_rows
from rota.core.columns import GPUS, GROUP, ITERATION_S, JOB, PACE_S, PLACE, REMAINING, ROW, STALL_S
from rota.core.compiled import kernel
from rota.core.driver import CompiledPlan, decide_placed, options_of
from rota.core.errors import ConfigError
from rota.core.kernels import FINISHED
from rota.core.memory import (
    columns_of,
    engine_at,
    events_of,
    floats,
    history_of,
    index_of,
    ints,
    order_of_jobs,
    own_groups_of,
    pace_of,
    plan_at,
    table_of,
)
from rota.core.placement import STYLES, Style
from rota.core.policy import Needs, Plan
from rota.core.view import ClusterView

PER_DOUBLING = 2
BINS = 24 * PER_DOUBLING  # up to 194 days
FIRST_OF_PRIOR = 6 * PER_DOUBLING  # from a minute …
LAST_OF_PRIOR = 20 * PER_DOUBLING  # … to 12 days, equally likely on a logarithmic scale
BEGAN = BINS + 1  # row that says, for all jobs, whether the history was counted
TOTAL = BINS  # row of the number of jobs that ended, after those of the bins

# The index of a job, the work up to which it holds, and a measure of the jobs that it is from.
COUNTS = tuple(f"ended_{number}" for number in range(BINS))
NEEDS = Needs(own=("index", "until", "seen"), own_groups=(*COUNTS, "ended", "began"), durations="unused")
INDEX, UNTIL, SEEN = map(NEEDS.row, NEEDS.own)


@dataclass(frozen=True, slots=True)
class Gittins:
    """Rank by the Gittins index of the durations of the jobs that ended, then first fit."""

    prior: float = 4.0
    """Number of jobs that the prior counts as: durations from a minute to 12 days, as likely in each
    doubling."""
    others: float = 8.0
    """Number of jobs that all jobs together count as, for those of one group and gang size."""
    stickiness: float = 0.25
    """Part by which the index of a running job is raised, so that it is not preempted for a trifle."""
    gang_power: float = 0.5
    """Power of the gang size by which the index is divided: 1 ranks by GPU-seconds, 0 by seconds."""
    placement: Style = "consolidated"
    """How a gang is placed on nodes."""

    def __post_init__(self) -> None:
        for name, low in (("prior", 1e-9), ("others", 0.0), ("stickiness", 0.0)):
            if not low <= getattr(self, name) < np.inf:
                what = "above 0" if low else "0 or more"
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be {what}")
        if not 0.0 <= self.gang_power <= 2.0:
            raise ConfigError(f"gang_power is {self.gang_power}; it must be between 0 and 2")

    @property
    def needs(self) -> Needs:
        return NEEDS

    @property
    def _options(self) -> tuple[float, ...]:
        return self.prior, self.others, self.stickiness, self.gang_power, STYLES[self.placement]

    @property
    def compiled(self) -> CompiledPlan:
        return CompiledPlan(plan_gittins, self._options)

    def plan(self, view: ClusterView) -> Plan:
        key = np.zeros(view.capacity)
        learn(view.address)
        rank_by_index(view.address, np.array(self._options), key)
        plan = view.first_fit(view.rank(key), style=self.placement)
        plan.wake_at_s = next_change_s(view.address, plan.address, plan.jobs)
        return plan


@kernel
def plan_gittins(address):
    """Plan as `Gittins.plan`."""
    e = engine_at(address)
    options, key, order = options_of(e), floats(e.keys, e.capacity), order_of_jobs(e)
    learn(address)
    rank_by_index(address, options, key)
    ranked = ints(e.ranking, e.active)
    sort_rows(e, order, key, ranked)
    order[:] = ranked
    keep = 1 - e.each_instant
    jobs = place(e, address, order, int(options[4]), 0, keep)
    decide_placed(e, jobs, next_change_s(address, e.draft, jobs))


@kernel
def bin_of(work_s):
    """Return the bin of a duration: bin b ends at 2^(b / 2) seconds."""
    if work_s <= 1.0:
        return 0
    return min(int(np.ceil(PER_DOUBLING * np.log2(work_s) - 1e-12)), BINS - 1)


@kernel
def end_of(number):
    return 2.0 ** (number / PER_DOUBLING)


@kernel
def learn(address):
    """Count the durations of the jobs that ended at this instant; first those of the history, if any."""
    e = engine_at(address)
    events, table, seen = events_of(e), table_of(e), own_groups_of(e)
    everyone = seen.shape[1] - 1
    if seen[BEGAN, everyone] == 0.0:
        seen[BEGAN, everyone] = 1.0
        history = history_of(e)
        for i in range(e.history_jobs):
            count(seen, bin_of(history[1, i]), int(history[0, i]), everyone)
    for i in range(e.before, e.count):
        if events[i].kind != FINISHED:
            continue
        job = events[i].job
        number, group = bin_of(table[REMAINING, job] * table[ITERATION_S, job]), int(table[GROUP, job])
        count(seen, number, group, everyone)


@kernel
def count(seen, number, group, everyone):
    """Count a duration in a bin for all jobs, and for its group and gang size unless that is −1."""
    seen[number, everyone] += 1.0
    seen[TOTAL, everyone] += 1.0
    if group >= 0:
        seen[number, group] += 1.0
        seen[TOTAL, group] += 1.0


@kernel
def rank_by_index(address, options, key):
    """Write the sort key of every active job: minus its index, found anew where that may have changed."""
    e = engine_at(address)
    columns, table, order, seen = columns_of(e), table_of(e), order_of_jobs(e), own_groups_of(e)
    prior, others, stickiness, gang_power = options[0], options[1], options[2], options[3]
    everyone = seen.shape[1] - 1
    ended = seen[TOTAL, everyone]
    weights = np.empty(BINS)
    for i in range(order.shape[0]):
        row = order[i]
        group = int(columns[GROUP, row])
        known = ended + 8.0 * seen[TOTAL, group]
        attained_s = attained(columns, table, row)
        if columns[UNTIL, row] <= attained_s or known > 1.05 * columns[SEEN, row] + 0.5:
            of_all = min(others, ended) / max(ended, 1.0)
            for number in range(BINS):
                weights[number] = seen[number, group] + of_all * seen[number, everyone]
                if FIRST_OF_PRIOR < number <= LAST_OF_PRIOR:
                    weights[number] += prior / (LAST_OF_PRIOR - FIRST_OF_PRIOR)
            columns[INDEX, row], columns[UNTIL, row] = gittins_index(weights, attained_s)
            columns[SEEN, row] = known
        index = columns[INDEX, row] / columns[GPUS, row] ** gang_power
        key[row] = -index * (1.0 + stickiness) if columns[PLACE, row] >= 0.0 else -index


@kernel
def attained(columns, table, row):
    """Return the seconds of work, alone on the reference device, that a job has attained."""
    done = table[REMAINING, int(columns[JOB, row])] - columns[REMAINING, row]
    return max(done, 0.0) * columns[ITERATION_S, row]


@kernel
def gittins_index(weights, attained_s):
    """Return the index of a job, and the attained work at which it is to be found anew.

    `weights` has a number of jobs per bin, uniform inside the bin; the bin in which the job is counts as far
    as it lies ahead.
    """
    first = bin_of(attained_s)
    if end_of(first) <= attained_s and first < BINS - 1:
        first += 1
    ahead = weights[first:].sum()
    best, ended, spent_s = 0.0, 0.0, 0.0
    begin_s = end_of(first - 1) if first > 0 else 0.0
    part = min(max((end_of(first) - attained_s) / (end_of(first) - begin_s), 1e-9), 1.0)
    ahead -= (1.0 - part) * weights[first]
    for number in range(first, BINS):
        end_s = end_of(number)
        low_s = max(attained_s, end_of(number - 1) if number > 0 else 0.0)
        weight = weights[number] * (part if number == first else 1.0)
        ended += weight
        spent_s += weight * ((low_s + end_s) / 2.0 - attained_s)
        rate = ended / max(spent_s + (end_s - attained_s) * (ahead - ended), 1e-9)
        best = max(best, rate)
    return best, max(end_of(first), attained_s * 1.0001)


@kernel
def next_change_s(address, plan, jobs):
    """Return when the index of a job of a plan is to be found anew; never if nobody waits.

    Where every instant costs a start-up, another one would only delay the jobs.
    """
    e = engine_at(address)
    if jobs == e.active or e.each_instant:
        return np.inf
    columns, table, draft = columns_of(e), table_of(e), plan_at(plan)
    index, pace_s = index_of(draft), pace_of(draft)
    earliest_s = np.inf
    for k in range(jobs):
        row = index[ROW, k]
        runs = columns[PLACE, row] >= 0.0
        stall_s = columns[STALL_S, row]
        pace = columns[PACE_S, row] if runs else pace_s[k]
        left_s = columns[UNTIL, row] - attained(columns, table, row)
        wait_s = max(left_s, 1.0) * pace / columns[ITERATION_S, row] + stall_s
        earliest_s = min(earliest_s, e.now_s + wait_s)
    return earliest_s
