"""`rota.simulate_population`: populations from Python, as frames, figures and folders."""

from dataclasses import dataclass, replace

import pytest
from pandas.testing import assert_frame_equal

import rota
from rota.core.cluster import Node, NodeChange, Slowdown
from rota.library.spaces import starts

CURVES = "results/recordings/curves/convnet2-fashion-mnist"
SMALL = {"trials": 4, "steps": 200, "interval": 50}


@pytest.fixture(scope="module")
def evolved():
    """A population that evolves, with two seeds."""
    return rota.simulate_population(
        CURVES, [2.0, 1.0], allocation="finish", evolution="pbt", trials=6, steps=600, seeds=2
    )


def test_the_makespan_is_that_of_the_trials():
    """Three trials of 100 s: two on the fast slot take 50 s each, the third on the slow one 100 s."""
    run = rota.simulate_population(None, [2.0, 1.0], allocation="finish", trials=3, steps=100, interval=100)
    assert run.metrics.makespan_s == run.metrics.lower_bound_s == 100.0
    assert run.trials["training_s"].sum() == 200.0
    assert run.trials["steps"].tolist() == [100] * 3
    assert run.trials["status"].tolist() == ["finished"] * 3


def test_a_cluster_has_a_slot_per_gpu():
    cluster = rota.Cluster.of(v100=2, k80=1, speeds={"v100": {"default": 2.0}})
    run = rota.simulate_population(None, cluster, allocation="finish", trials=5, steps=100, interval=100)
    assert [(slot.node, slot.device, slot.speed) for slot in run.summary.slots] == [
        ("node0", "v100", 2.0),
        ("node0", "v100", 2.0),
        ("node1", "k80", 1.0),
    ]
    assert run.metrics.makespan_s == 100.0  # 5 × 100 s at 2 + 2 + 1: two trials a fast slot, one the slow one


def test_nodes_of_a_cluster_come_go_and_slow_down():
    """Node 1 leaves at 60 s; its trial, which last reported at 50 s, has its other 50 s on node 0."""
    leaves = replace(rota.Cluster.uniform(2, 1), changes=(NodeChange(60.0, 1, joins=False),))
    run = rota.simulate_population(None, leaves, allocation="finish", trials=2, steps=100, interval=100)
    assert run.metrics.makespan_s == 150.0
    slower = replace(rota.Cluster.uniform(1, 1), slowdowns=(Slowdown(0.0, 0, 2.0),))
    run = rota.simulate_population(None, slower, allocation="finish", trials=1, steps=100, interval=50)
    assert run.metrics.makespan_s == 200.0


def test_fractions_of_gpus_are_refused():
    cluster = rota.Cluster((Node(1),), slots_per_gpu=1)
    moving = rota.Cluster((Node(4),), slots_per_gpu=4)
    assert rota.simulate_population(None, cluster, **SMALL).metrics.finished == 4
    with pytest.raises(rota.RotaError, match="fractions of GPUs"):
        rota.simulate_population(None, moving, **SMALL)


def test_seeds_are_so_many_or_those_that_are_given(evolved):
    assert evolved.seeds == [0, 1]
    alone = rota.simulate_population(
        CURVES, [2.0, 1.0], allocation="finish", evolution="pbt", trials=6, steps=600, seeds=[1]
    )
    assert_frame_equal(alone.trials, evolved.trials.loc[[1]])
    assert alone.metrics.makespan_s == evolved.summary.repetitions[1].makespan_s


def test_trials_have_their_hyper_parameters_in_the_end(evolved):
    first = evolved.trials.loc[0]
    assert "config.lr" in first
    clones = evolved.timeline.query("seed == 0 and event == 'cloned'")
    assert first["clones"].sum() == evolved.metrics.clones == len(clones.query("donor != trial"))
    assert first["best_metric"].max() == evolved.metrics.best_accuracy


def test_what_trials_start_with_can_be_said():
    run = rota.simulate_population(CURVES, [1.0], start={"lr": [0.05, 0.1]}, **SMALL)
    assert set(run.trials["config.lr"]) <= {0.05, 0.1}
    with pytest.raises(rota.RotaError, match="unknown hyper-parameter 'ler'"):
        rota.simulate_population(CURVES, [1.0], start={"ler": [0.05]}, **SMALL)


def test_events_are_a_frame(evolved):
    timeline = evolved.timeline
    assert (timeline["event"] == "finished").sum() == 12
    reports = timeline[timeline["event"] == "reported"]
    assert reports["steps"].sum() == 6 * 600 * 2
    assert set(reports["node"]) == {"node0", "node1"}


def test_intervals_are_over_the_seeds(evolved):
    makespans = [each.makespan_s for each in evolved.summary.repetitions]
    row = evolved.intervals().loc["makespan_s"]
    assert row["mean"] == pytest.approx(sum(makespans) / 2)
    half = 12.706 * abs(makespans[0] - makespans[1]) / 2  # t for one degree of freedom × sd / √2
    assert row["high"] - row["mean"] == pytest.approx(half, rel=1e-3)


def test_saved_and_loaded_it_is_the_same(evolved, tmp_path):
    again = rota.load(evolved.save(tmp_path / "run"))
    assert isinstance(again, rota.PopulationRun)
    assert_frame_equal(again.trials, evolved.trials)
    assert_frame_equal(again.timeline, evolved.timeline)
    assert again.summary == evolved.summary
    evolved.save(tmp_path / "run")  # the same run, once more
    other = rota.simulate_population(None, [1.0], **SMALL)
    with pytest.raises(rota.RotaError, match="holds another run"):
        other.save(tmp_path / "run")


def test_figures_and_a_page(evolved, tmp_path):
    assert evolved.plot("gantt", tmp_path / "gantt.png").axes
    assert evolved.plot("accuracy").axes
    assert "6 trials" in evolved.report(tmp_path / "page.html").read_text()
    with pytest.raises(rota.RotaError, match="unknown figure 'gant'"):
        evolved.plot("gant")


def test_a_notebook_shows_a_table(evolved):
    assert "<th>makespan [s]</th>" in evolved._repr_html_()
    assert repr(evolved) == "PopulationRun('finish', 6 trials × 600 steps on 2 slots, 2 seeds)"


@dataclass(frozen=True)
class Backwards(rota.Allocation):
    """The last in the queue first."""

    def assign(self, view):
        while view.idle and view.waiting:
            yield view.idle[0], [view.part(view.waiting[-1])]


@dataclass(frozen=True)
class StopAll(rota.Evolution):
    """Stops every trial at its first report."""

    def review(self, view, trial):
        return self.stop(trial)


def test_policies_of_ones_own():
    run = rota.simulate_population(CURVES, [1.0], allocation=Backwards(), evolution=StopAll, **SMALL)
    assert (run.allocation, run.evolution) == ("backwards", "stop-all")
    assert run.trials["status"].tolist() == ["stopped"] * 4
    first = run.timeline[run.timeline["event"] == "reported"].iloc[0]
    assert first["trial"] == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"allocation": "hfrs"}, "unknown allocation 'hfrs'.*hrfs"),
        ({"evolution": "pbt"}, "evolution: nothing says how good trials are without curves"),
        ({"cluster": "nine"}, "the cluster is a str"),
        ({"seeds": []}, "seeds is empty"),
        ({"settings": {"cost": {}}}, "cost"),
        ({"trials": 0}, "trials is 0"),
    ],
)
def test_what_does_not_fit_is_said(settings, message):
    given = {"cluster": [1.0], **SMALL, **settings}
    with pytest.raises(rota.RotaError, match=message):
        rota.simulate_population(None, given.pop("cluster"), **given)


def test_spaces_become_tables():
    found = starts(
        {
            "lr": rota.LogUniform(1e-3, 1.0),
            "momentum": rota.Uniform(0.0, 0.9),
            "batch_size": [16, 32],
            "optimiser": rota.Choice(["sgd", "adam"]),
            "layers": [(8, 8), (16,)],
            "decay": 0.1,
        }
    )
    assert found.tables == {
        "lr": {"low": 1e-3, "high": 1.0, "log": True},
        "momentum": {"low": 0.0, "high": 0.9},
        "batch_size": {"values": [16, 32]},
        "optimiser": {"names": ["sgd", "adam"]},
        "layers": {"names": ["0: (8, 8)", "1: (16,)"]},
        "decay": {"values": [0.1]},
    }
    assert found.meanings == {"layers": {"0: (8, 8)": (8, 8), "1: (16,)": (16,)}}
    for wrong, message in (({"lr": []}, "lr has no values"), ([1], "space is a list"), ({1: [2]}, "no name")):
        with pytest.raises(rota.RotaError, match=message):
            starts(wrong)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"growth": "stump"}, "growth is an argument of its own"),
        ({"population": {"gain": 0.1}}, "trees and gain: .*; leave gain out"),
        ({"population": {"metric": "loss"}}, "trees and metric: .*; leave metric out"),
    ],
)
def test_on_trees_what_would_be_ignored_is_refused(settings, why):
    trees = "results/recordings/growth/convnet2-digits"
    with pytest.raises(rota.RotaError, match=why):
        rota.simulate_population(None, [1.0], trees=trees, trials=4, settings=settings)
