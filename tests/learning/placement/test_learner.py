"""Learning to place: the same seed, the same agent; stopped or not, with however many workers."""

from dataclasses import replace

import numpy as np
import pytest

from rota.core.errors import InputError
from rota.learning import learner as module
from rota.learning.files import PlacementHistoryRow, read_history, write_history
from rota.learning.learner import CHECKPOINT
from rota.learning.placement import learner as placement
from rota.learning.placement.cases import CaseDistribution
from rota.learning.placement.config import PlacementAgentConfig
from rota.learning.placement.learner import PlacementLearner
from rota.learning.placement.run import PlacementRun
from rota.library.processes import SerialPool, worker_pool

SMALL = PlacementAgentConfig(
    updates=4,
    cases_per_update=2,
    episodes_per_case=2,
    hidden=6,
    cases=CaseDistribution(slots=(2, 3), trials=(3, 4), intervals=(2, 3)),
    tests=1,
)


@pytest.fixture(autouse=True)
def _few_held_out_cases(monkeypatch):
    """Which is what takes most of the time."""
    monkeypatch.setattr(placement, "TRIED", 6)


def learned(folder, config=SMALL, workers=1):
    learner = PlacementLearner(config, folder, "this")
    with worker_pool(workers) as pool:
        learner.learn(pool)
    return learner


def same(one, other):
    return all((a == b).all() for a, b in zip(one.network.weights, other.network.weights, strict=True))


def test_the_same_seed_gives_the_same_agent_and_another_one_another(tmp_path):
    one, other = learned(tmp_path), learned(tmp_path)
    assert same(one, other)
    assert not same(one, learned(tmp_path, replace(SMALL, seed=1)))
    assert [row.ratio for row in one.rows] == [row.ratio for row in other.rows]


def test_workers_make_no_difference(tmp_path):
    assert same(learned(tmp_path), learned(tmp_path, workers=2))


class Stopped(Exception):
    pass


@pytest.mark.parametrize("after", [1, 3])
def test_an_agent_that_is_stopped_and_goes_on_comes_to_the_same(tmp_path, monkeypatch, after):
    monkeypatch.setattr(module, "CHECKPOINT_EVERY_S", 0.0)
    whole = learned(tmp_path / "whole")

    def stop(row):
        if row.update == after:
            raise Stopped

    with pytest.raises(Stopped):
        PlacementLearner(SMALL, tmp_path, "this").learn(SerialPool(), stop)
    again = PlacementLearner(SMALL, tmp_path, "this")
    again.resume()
    assert len(again.rows) == after
    again.learn(SerialPool())
    assert same(whole, again)
    assert [row[2:] for row in whole.rows] == [row[2:] for row in again.rows]


def test_another_learning_that_is_under_way_is_written_over_only_if_that_is_said(tmp_path):
    learned(tmp_path).save()
    other = PlacementRun(tmp_path, replace(SMALL, seed=1))
    with pytest.raises(InputError, match=r"another agent is being learned here; .* --out, or --again"):
        other.begin(again=False)
    assert (tmp_path / CHECKPOINT).exists()
    assert other.begin(again=True).rows == []


def test_to_learn_again_goes_on_where_that_was_stopped(tmp_path):
    run = PlacementRun(tmp_path, SMALL)
    started = run.begin(again=True)
    started.learn(SerialPool())
    started.save()
    assert run.begin(again=True).rows == started.rows


@pytest.mark.parametrize("size", [0, 100])
def test_a_damaged_checkpoint_says_what_to_do(tmp_path, size):
    learned(tmp_path).save()
    file = tmp_path / CHECKPOINT
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(InputError, match=r"cannot be read.*delete it to begin anew"):
        PlacementLearner(SMALL, tmp_path, "this").resume()


def test_the_rate_falls_to_nothing_in_the_end(tmp_path):
    rates = [row.lr for row in learned(tmp_path).rows]
    assert rates == pytest.approx([0.004, 0.004, 0.004 * 0.5 / 0.6, 0.004 * 0.25 / 0.6])


def test_history_is_read_as_it_was_written(tmp_path):
    rows = learned(tmp_path).rows
    write_history(tmp_path, rows, PlacementHistoryRow)
    assert read_history(tmp_path, PlacementHistoryRow) == rows


def test_a_bandit_is_learned(tmp_path):
    """One slow slot beside one that is 100 times as fast, two trials: after learning, the slow one rests."""
    cases = CaseDistribution(
        slots=(2, 2), trials=(2, 2), spread=100.0, dispatch=0.0, noise=0.0, intervals=(2, 2)
    )
    config = replace(SMALL, updates=40, cases_per_update=4, episodes_per_case=8, cases=cases)
    rows = learned(tmp_path, config).rows
    first, last = (float(np.mean([row.ratio for row in some])) for some in (rows[:10], rows[-10:]))
    assert last < first
