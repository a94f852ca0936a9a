"""A real run ends at its deadline: what is under way is completed, and nothing new begins."""

from itertools import count

import pytest

from rota.core.population.events import Assigned, Reported
from rota.core.population.view import Terms
from rota.execution import backend
from rota.execution.journaled import RunClock
from rota.execution.lineage import best_lineage
from rota.execution.status import best_checkpoint, read_status
from rota.policies.allocation.fifo import FifoAllocation
from rota.policies.population import PopulationPolicy

DEADLINE_S = 100.0
POLICY = PopulationPolicy(FifoAllocation())


@pytest.fixture(autouse=True)
def _slow_clock(monkeypatch):
    """A clock that advances by a second whenever it is looked at: a few times for each interval."""
    ticks = count()
    monkeypatch.setattr(backend, "RunClock", lambda: RunClock(lambda: float(next(ticks))))


def test_a_run_ends_at_its_deadline_and_is_complete(small, local, paths):
    wanted = small(trials=3, slots=1, terms=Terms(50, 100_000), deadline_s=DEADLINE_S)
    done = local(wanted, POLICY)
    events = list(done.timeline)
    done.timeline.close()
    reports = [event for event in events if isinstance(event, Reported)]
    assert done.complete
    assert done.state.left == 3
    assert len(reports) > 2
    assert sum(report.at_s >= DEADLINE_S for report in reports) <= 1  # what was under way, on one slot
    assert max(event.at_s for event in events if isinstance(event, Assigned)) < DEADLINE_S
    status, phase = read_status(paths.journal)
    in_time = [event for event in reports if event.at_s <= DEADLINE_S]
    assert (phase, status.reports, status.frame.deadline_s) == ("complete", len(in_time), DEADLINE_S)
    best = max(event.metric for event in in_time)
    assert status.trials[status.best].best == best
    assert best_lineage(paths.journal).stages[-1].metric == best
    assert best_checkpoint(paths.journal).trial == status.best
    assert {trial.status for trial in status.trials} == {"waiting"}
    again = local(wanted, POLICY)  # nothing is trained again, nor more
    assert (again.complete, list(again.timeline)) == (True, events)
    again.timeline.close()


def test_a_run_that_was_stopped_has_the_time_that_is_left(small, local, paths):
    wanted = small(trials=2, slots=1, terms=Terms(50, 100_000), deadline_s=DEADLINE_S)
    asked = iter([False] * 3)
    stopped = local(wanted, POLICY, asked_to_stop=lambda: next(asked, True))
    stopped.timeline.close()
    before = stopped.status.reports
    assert not stopped.complete
    assert 0.0 < stopped.status.left_s < DEADLINE_S
    resumed = local(wanted, POLICY)
    resumed.timeline.close()
    assert resumed.complete
    assert resumed.status.reports > before
    assert resumed.restored > 0
