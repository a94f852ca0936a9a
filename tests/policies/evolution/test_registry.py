"""What every evolution promises."""

import tomllib
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.config.bind import bind
from rota.core.cluster import Cluster
from rota.core.errors import ConfigError
from rota.core.population.events import Clone, Cloned, Continue, Reported, Stop, Stopped, TrialFinished
from rota.core.population.view import Terms, TrialStatus
from rota.policies.allocation.fifo import FifoAllocation
from rota.policies.evolution.registry import EVOLUTIONS, evolution_class
from rota.policies.population import PopulationPolicy
from rota.simulator.noise import TimingNoise
from rota.simulator.population import PopulationScenario, simulate_trials

PBT = """
quantile = 0.3
[space]
lr = { low = 1e-4, high = 1.0, log = true }
momentum = { low = 1e-4, below = 1.0 }
batch_size = { values = [16, 32, 64] }
[grow]
probability = 0.3
actions = ["deepen 0", "widen 1 64"]
most = 2
"""
MORE = {"pbt": PBT, "asha": "reduction_factor = 3\nmin_t = 2"}
"""Options in addition to the defaults that every evolution is tried with."""
WAYS = [(name, text) for name in EVOLUTIONS for text in dict.fromkeys(("", MORE.get(name, "")))]


class Counted:
    """Notes every decision of an evolution."""

    def __init__(self, inner: object) -> None:
        self.inner, self.decisions = inner, []

    def decide(self, view, trial):
        decision = self.inner.decide(view, trial)
        assert decision.trial == trial
        self.decisions.append(decision)
        return decision


@pytest.mark.parametrize(("name", "text"), WAYS)
class TestEveryEvolution:
    @given(
        trials=st.integers(1, 9),
        intervals=st.integers(1, 8),
        rest=st.integers(0, 9),
        speeds=st.lists(st.floats(0.1, 4.0), min_size=1, max_size=4),
        seed=st.integers(0, 10**6),
        report_each=st.booleans(),
    )
    def test_keeps_its_promises(
        self, name, text, slope, drawn, trials, intervals, rest, speeds, seed, report_each
    ):
        terms = Terms(10, 10 * intervals + rest)
        scene = PopulationScenario(
            drawn(trials, seed),
            Cluster.of_speeds(speeds),
            terms,
            noise=TimingNoise(0.2),
            report_each=report_each,
        )
        evolution = Counted(bind(evolution_class(name), tomllib.loads(text)))
        found = simulate_trials(scene, slope(), PopulationPolicy(FifoAllocation(), evolution), seed)
        self.check_decisions(found, evolution.decisions)
        self.check_ends(found, terms)
        self.check_bounds(found)
        again = simulate_trials(
            scene,
            slope(),
            PopulationPolicy(FifoAllocation(), bind(evolution_class(name), tomllib.loads(text))),
            seed,
        )
        assert again.timeline == found.timeline

    def check_decisions(self, found, decisions):
        """One for each report after which the trial was not finished, and what was decided has happened."""
        reports = sum(isinstance(event, Reported) for event in found.timeline)
        finished = sum(isinstance(event, TrialFinished) for event in found.timeline)
        assert len(decisions) == reports - finished
        kinds = Counter(type(decision) for decision in decisions)
        assert set(kinds) <= {Continue, Clone, Stop}
        assert kinds[Clone] == sum(isinstance(event, Cloned) for event in found.timeline)
        assert kinds[Stop] == sum(isinstance(event, Stopped) for event in found.timeline)

    def check_ends(self, found, terms):
        status, steps = found.state.status, found.state.steps
        assert (status >= TrialStatus.FINISHED).all()
        assert (steps[status == TrialStatus.FINISHED] == terms.steps).all()
        assert (steps[status == TrialStatus.STOPPED] < terms.steps).all()

    def check_bounds(self, found):
        for hyper, changes in zip(found.state.hyper, found.state.changes, strict=True):
            assert 1e-4 <= hyper["lr"] <= 1.0
            assert 1e-4 <= hyper["momentum"] < 1.0
            assert hyper["batch_size"] in (16, 32, 64)
            assert type(hyper["batch_size"]) is int
            assert len(changes) <= 2

    def test_leaves_the_random_numbers_of_others_alone(self, name, text, slope, drawn):
        before = np.random.get_state()[1].copy()
        scene = PopulationScenario(drawn(6, 1), Cluster.of_speeds([1.0, 0.5]), Terms(10, 80))
        evolution = bind(evolution_class(name), tomllib.loads(text))
        simulate_trials(scene, slope(), PopulationPolicy(FifoAllocation(), evolution))
        assert (np.random.get_state()[1] == before).all()


def test_clones_happen_where_they_should(slope, drawn):
    scene = PopulationScenario(drawn(8, 0), Cluster.of_speeds([1.0, 0.5]), Terms(10, 300))
    found = simulate_trials(
        scene, slope(), PopulationPolicy(FifoAllocation(), bind(evolution_class("pbt"), tomllib.loads(PBT)))
    )
    clones = [event for event in found.timeline if isinstance(event, Cloned)]
    assert len(clones) > 10
    assert {len(event.changes) for event in clones} == {0, 1, 2}


def test_an_unknown_evolution_suggests_what_was_probably_meant():
    with pytest.raises(
        ConfigError, match=r"^unknown evolution 'pbtt'\. Did you mean 'pbt'\? Known: none, pbt"
    ):
        evolution_class("pbtt")


def test_a_space_in_a_file_that_is_wrong_says_where():
    table = tomllib.loads("[space]\nlr = { low = 1.0, high = 0.1 }")
    with pytest.raises(ConfigError, match=r"^p\.toml: space\.lr: a range of 1 to 0\.1"):
        bind(evolution_class("pbt"), table, "p.toml")
