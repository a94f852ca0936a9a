"""A policy's own columns have the names that it declared, in Python and in kernels."""

from dataclasses import dataclass

import numpy as np
import pytest

import rota
from rota.core.calls import place, sort_rows
from rota.core.columns import OWN
from rota.core.compiled import kernel
from rota.core.driver import CompiledPlan, decide_placed
from rota.core.errors import ConfigError
from rota.core.memory import columns_of, engine_at, floats, ints, order_of_jobs
from rota.core.policy import Needs
from rota.core.room import CONSOLIDATED
from rota.simulator.jobs import simulate

NEEDS = Needs(own=("age", "turns"), own_slots=("wear",), own_groups=("met",))
TURNS = NEEDS.row("turns")


@dataclass(frozen=True)
class Rotating(rota.Scheduler):
    """The job that was looked at most often is first."""

    @property
    def needs(self):
        return NEEDS

    @property
    def compiled(self):
        return CompiledPlan(plan_turns)

    def plan(self, view):
        view.turns[view.order] += 1.0
        view.wear[0] += 1.0
        view.met[-1] = view.active
        assert np.shares_memory(view.turns, view.columns[OWN + 1])
        assert (len(view.wear), view.own_slots[0, 0], view.own["met"][-1]) == (4, view.wear[0], view.active)
        return view.first_fit(view.rank(-view.turns))


@kernel
def plan_turns(address):
    """Plan as `Rotating.plan`."""
    e = engine_at(address)
    columns, order, keys, ranked = (
        columns_of(e),
        order_of_jobs(e),
        floats(e.keys, e.capacity),
        ints(e.ranking, e.active),
    )
    for row in order:
        columns[TURNS, row] += 1.0
        keys[row] = -columns[TURNS, row]
    sort_rows(e, order, keys, ranked)
    order[:] = ranked
    decide_placed(e, place(e, address, order, CONSOLIDATED, 0, 1 - e.each_instant), np.inf)


def test_they_have_their_names_in_python_and_their_rows_in_kernels():
    jobs, cluster = rota.synthetic_trace(jobs=200, gpus=4, seed=1, load=1.5), rota.Cluster.uniform(1, 4)
    runs = [simulate(jobs, cluster, Rotating(), compiled=compiled) for compiled in (False, True)]
    assert np.array_equal(runs[0].timeline.events, runs[1].timeline.events)


def test_a_new_job_has_a_0():
    seen = {}

    class Looks(Rotating):
        def plan(self, view):
            for row in view.order:
                seen.setdefault(int(view.submit_s[row]), float(view.age[row]))
                view.age[row] = 7.0
            return super().plan(view)

    rota.simulate(rota.synthetic_trace(jobs=100, gpus=4, seed=1), rota.Cluster.uniform(1, 4), Looks())
    assert set(seen.values()) == {0.0}


@pytest.mark.parametrize(
    ("needs", "name"),
    [
        (Needs(own=("order",)), "order"),
        (Needs(own_slots=("gpus",)), "gpus"),
        (Needs(own=("a",), own_groups=("a",)), "a"),
    ],
)
def test_names_that_the_view_has_are_refused(needs, name):
    class Taken(Rotating):
        @property
        def needs(self):
            return needs

    with pytest.raises(ConfigError, match=f"no own column can be '{name}'"):
        rota.simulate(rota.synthetic_trace(jobs=2, gpus=1), rota.Cluster.uniform(1, 1), Taken())


def test_a_name_that_nobody_declared_is_an_error():
    class Mistaken(Rotating):
        def plan(self, view):
            return view.first_fit(view.rank(view.turn))

    with pytest.raises(AttributeError, match=r"unknown own column .turn.[.] Did you mean"):
        rota.simulate(rota.synthetic_trace(jobs=2, gpus=1), rota.Cluster.uniform(1, 1), Mistaken())
