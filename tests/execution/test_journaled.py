"""A run goes on from its journal with the same decisions, or not at all."""

import time
from dataclasses import dataclass

import pytest

from rota.core.errors import InputError
from rota.core.population.events import Assign, Reported
from rota.core.population.view import Terms
from rota.execution.journal import Journal, read_journal
from rota.execution.journaled import OtherDecision
from rota.execution.status import read_status
from rota.policies.allocation.fifo import FifoAllocation
from rota.policies.allocation.registry import ALLOCATIONS, allocation_class
from rota.policies.evolution.asha import Asha
from rota.policies.evolution.pbt import Pbt
from rota.policies.population import PopulationPolicy, RetireSlowest


@dataclass(frozen=True)
class LastFirst:
    """Hands out who came last."""

    def hand_out(self, view):
        while view.idle and view.waiting:
            yield Assign(view.idle[0], [view.part(view.waiting[-1])])


def stop_after(reports):
    seen = []
    return {
        "watch": lambda status, events: seen.extend(e for e in events if isinstance(e, Reported)),
        "asked_to_stop": lambda: len(seen) >= reports,
    }


def test_a_policy_that_decides_otherwise_than_it_did_is_an_error_that_says_so(local, small):
    local(small(), PopulationPolicy(FifoAllocation()), **stop_after(3))
    with pytest.raises(OtherDecision, match="the journal says"):
        local(small(), PopulationPolicy(LastFirst()))
    assert local(small(), PopulationPolicy(FifoAllocation())).complete


def test_a_journal_of_another_population_is_refused(local, small):
    local(small(), PopulationPolicy(FifoAllocation()), **stop_after(3))
    with pytest.raises(InputError, match="of another run"):
        local(small(trials=5), PopulationPolicy(FifoAllocation()))


@pytest.mark.parametrize("cut", range(1, 9))
def test_it_goes_on_from_wherever_the_journal_ends(local, small, paths, follows, cut):
    """As if the controller had been killed after any of its first entries."""
    wanted = small(slots=1, terms=Terms(10, 40))
    policy = PopulationPolicy(FifoAllocation(), Pbt(quantile=0.5))
    whole = local(wanted, policy)
    entries = list(read_journal(paths.journal))
    for file in paths.path.glob("journal*"):
        file.unlink()
    with Journal(paths.journal) as journal:
        journal.append_all([(entry.at_s, entry.kind, entry.body) for entry in entries[:cut]])
    again = local(wanted, policy)
    assert again.complete
    assert follows(again.timeline, wanted.hypers) == 16
    assert again.status.record()["trials"] == whole.status.record()["trials"]


def test_what_the_journal_says_is_what_the_run_looked_like(local, small, paths):
    outcome = local(small(), PopulationPolicy(FifoAllocation(), Pbt()))
    status, phase = read_status(paths.journal)
    assert phase == "complete"
    assert status.record() == outcome.status.record()


def test_the_time_in_which_it_was_not_run_does_not_count(local, small):
    first = local(small(), PopulationPolicy(FifoAllocation()), **stop_after(3))
    time.sleep(2.0)
    second = local(small(), PopulationPolicy(FifoAllocation()))
    at_s = [event.at_s for event in second.timeline]
    assert at_s == sorted(at_s)
    assert 0.0 < second.status.at_s - first.status.at_s < second.wall_s


@pytest.mark.parametrize("name", [name for name in ALLOCATIONS if name != "learned"])
@pytest.mark.parametrize("evolution", [Pbt(quantile=0.5), Asha()], ids=["pbt", "asha"])
def test_every_policy_decides_again_what_it_decided(local, small, name, evolution):
    """From real times, which are different in each run: all that it decides by is in the journal."""
    wanted = small(trials=6, slots=3)
    policy = PopulationPolicy(allocation_class(name)(), evolution, RetireSlowest(late=0.5))
    first = local(wanted, policy)
    again = local(wanted, policy)
    assert again.restored > 0
    assert list(again.timeline) == list(first.timeline)
    assert again.status.record() == first.status.record()
