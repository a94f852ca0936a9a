"""`rota.tune`: code of the user's trained as a population, on real workers."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import rota
from rota.execution.status import read_status

ONE = rota.Cluster.local(1)
SPACE = {"lr": [0.1, 0.4]}


def climb(config):
    """After k steps 1 − distance ÷ k."""
    for step in range(1, 4):
        yield {"score": 1 - abs(config["lr"] - 0.1) / step, "step": step}


class Hill:
    """Adds up its learning rate."""

    def __init__(self, config, seed):
        self.lr, self.total, self.seed = config["lr"], 0.0, seed

    def step(self):
        self.total += self.lr
        return {"height": self.total}

    def save(self):
        return self.total

    def load(self, state):
        self.total = state


def tune(train, tmp_path, **given):
    settings = {"trials": 2, "cluster": ONE, "out": tmp_path / "run", "progress": False, **given}
    return rota.tune(train, settings.pop("space", SPACE), **settings)


def test_a_function_that_yields_metrics(tmp_path):
    found = tune(climb, tmp_path, metric="score", trials=4)
    assert found.best.config == {"lr": 0.1}
    assert found.best.metric == 1.0
    assert found.best.load() == {"score": 1.0, "step": 1}  # the first report that was as good
    assert found.trials["steps"].tolist() == [3] * 4  # it returned after three
    assert found.trials["status"].tolist() == ["finished"] * 4
    slow = found.trials["config.lr"] == 0.4
    assert found.trials.loc[slow, "best_metric"].tolist() == pytest.approx([1 - 0.3 / 3] * int(slow.sum()))
    assert found.folder == tmp_path / "run"
    assert repr(found) == f"TuneResult(4 trials, best 1 (trial {found.best.trial}), {str(found.folder)!r})"


def test_a_class_with_step_save_and_load(tmp_path):
    found = tune(Hill, tmp_path, metric="height", steps=5)
    best = found.best.load()
    assert isinstance(best, Hill)
    assert best.total == found.best.metric == pytest.approx(5 * found.best.config["lr"])
    assert isinstance(best.seed, int)


def test_less_is_better_if_that_is_said(tmp_path):
    found = tune(Hill, tmp_path, metric="height", mode="min", steps=3, trials=4)
    assert found.best.config["lr"] == 0.1
    assert found.best.metric == pytest.approx(0.1)
    assert (found.trials["metric"] > 0.0).all()


def test_values_may_be_anything(tmp_path):
    def count(config):
        yield float(len(config["layers"]))

    found = tune(count, tmp_path, space={"layers": [(8,), (8, 8, 8)]}, trials=6)
    assert found.best.config == {"layers": (8, 8, 8)}
    assert set(found.trials["config.layers"]) == {(8,), (8, 8, 8)}


def test_trials_are_cloned_and_functions_called_again(tmp_path):
    found = tune(climb, tmp_path, metric="score", evolution="pbt", allocation="finish", trials=6)
    assert found.run.evolution == "pbt"
    assert found.run.metrics.clones > 0
    assert (found.trials["status"] == "finished").all()


def test_policies_may_be_objects_of_a_script(tmp_path):
    class Backwards(rota.Allocation):
        def assign(self, view):
            while view.idle and view.waiting:
                yield view.idle[0], [view.part(view.waiting[-1])]

    found = tune(climb, tmp_path, metric="score", allocation=Backwards())
    assert found.run.allocation == "backwards"
    again = subprocess.run(
        [sys.executable, "-P", "-m", "rota", "run", "--resume", tmp_path / "run", "--json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["complete"]


def test_what_is_trained_may_be_in_a_file(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def climb(config):\n    for step in range(2):\n        yield config['lr'] + step\n")
    found = tune(f"{file}:climb", tmp_path)
    assert found.best.metric in (1.1, 1.4)
    assert found.best.load() == found.best.metric


SCRIPT = """
import sys, time
import rota

def train(config):
    for step in range(40):
        time.sleep(0.02)
        yield {"x": config["lr"] * step}

if __name__ == "__main__":
    found = rota.tune(
        train, {"lr": [0.1, 0.2, 0.3]}, metric="x", trials=3, cluster=rota.Cluster.local(1),
        out=sys.argv[1], resume=True,
    )
    print(len(found.trials), found.best.metric, found.run.metrics.finished)
"""


def test_it_goes_on_after_it_was_killed(tmp_path):
    script, run = tmp_path / "script.py", tmp_path / "run"
    script.write_text(SCRIPT)
    command = [sys.executable, "-P", script, run]
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not _reports(run) >= 20:
        assert first.poll() is None
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    first.wait()
    before = _reports(run)
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert again.stdout.split()[0] == "3"
    assert again.stdout.split()[2] == "3"
    assert _reports(run) == 3 * 41 > before  # a report a step, and one that says that the function returned
    script.write_text(SCRIPT.replace("* step", "* (step + 1)"))
    changed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "begun with another train" in changed.stderr


def _reports(run: Path) -> int:
    try:
        return read_status(run / "runs/0/journal.sqlite")[0].reports
    except rota.RotaError:  # not begun yet
        return 0


def test_a_folder_is_not_written_over(tmp_path):
    tune(climb, tmp_path, metric="score")
    with pytest.raises(rota.RotaError, match="has a run already"):
        tune(climb, tmp_path, metric="score")
    assert tune(climb, tmp_path, metric="score", resume=True).best.metric == 1.0
    with pytest.raises(rota.RotaError, match="begun with another population and metric"):
        tune(climb, tmp_path, metric="step", trials=3, resume=True)


def fails(config):
    yield 0.5
    raise ValueError("no such luck")


def says_nothing(config):
    yield float("nan")


def test_all_failed_and_nothing_measured_are_errors(tmp_path):
    def at_once(config):
        raise ValueError("no such luck")
        yield

    with pytest.raises(rota.RotaError, match=r"every trial failed: ValueError: no such luck; rota status"):
        tune(at_once, tmp_path)
    with pytest.raises(rota.RotaError, match="nothing was measured: all metrics are NaN"):
        tune(says_nothing, tmp_path, out=tmp_path / "nan")


def test_trials_that_failed_say_why(tmp_path):
    found = tune(fails, tmp_path)
    assert found.trials["status"].tolist() == ["failed"] * 2
    assert found.trials["error"].tolist() == ["ValueError: no such luck"] * 2
    assert found.best.metric == 0.5


class NoLoad:
    def __init__(self, config): ...
    def step(self): ...
    def save(self): ...


@pytest.mark.parametrize(
    ("train", "given", "message"),
    [
        (lambda: None, {}, "cannot be called with a config alone"),
        (NoLoad, {}, "NoLoad: cannot be trained: it has no load"),
        (3, {}, "train is a int"),
        (climb, {"space": {}}, None),
        (climb, {"metric": "acc"}, "yielded no 'acc', but score, step"),
        (climb, {"backend": "cloud"}, "backend is 'cloud'; give one of local, ray, slurm"),
        (climb, {"cluster": 3}, "the cluster is a int"),
        (climb, {"evolution": "pbd"}, "unknown evolution 'pbd'"),
        (climb, {"settings": {"stpes": 3}}, "stpes"),
        (climb, {"mode": "best"}, "mode"),
    ],
)
def test_what_does_not_fit_is_said(train, given, message, tmp_path):
    if message is None:
        message = "lr"  # the function asks for what the space does not have
    with pytest.raises(rota.RotaError, match=message):
        tune(train, tmp_path, **given)


def test_without_a_folder_it_goes_to_a_new_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, second = (tune(climb, tmp_path, metric="score", out=None) for _ in range(2))
    assert first.folder.parent == second.folder.parent == Path("results/tune")
    assert first.folder != second.folder
    assert first.folder.name.startswith("climb-")


def test_slots_of_a_cluster_become_those_of_an_engine():
    from rota.library.tune import _local, _slots

    mixed = rota.Cluster.of({"cpu": 2}, a100=2, speeds={"a100": {"default": 4.0}})
    assert _local(mixed) == [
        {"node": "node0", "speed": 1.0, "count": 2},
        {"node": "node1", "speed": 4.0, "gpu": "0"},
        {"node": "node1", "speed": 4.0, "gpu": "1"},
    ]
    assert _slots(rota.Cluster.local(3), "ray") == {
        "ray": {"slots": [{"count": 3, "node": "here", "speed": 1.0, "gpus": 0.0}]}
    }
    assert _slots(rota.Cluster.uniform(1, 4), "slurm") == {
        "slurm": {"nodes": [{"slots": 4, "speed": 1.0, "gres": "gpu"}]}
    }
    assert _slots({"address": "auto"}, "ray") == {"ray": {"address": "auto"}}


def test_files_start_where_one_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(
        "import rota\n\ndef climb(config):\n    yield config['lr']\n\nclass Last(rota.Allocation):\n"
        "    def assign(self, view):\n        while view.idle and view.waiting:\n"
        "            yield view.idle[0], [view.part(view.waiting[-1])]\n"
    )
    found = tune("mine.py:climb", tmp_path, allocation="mine.py:Last", out="deep/run")
    assert found.run.allocation == "last"
    assert tune("mine.py:climb", tmp_path, allocation="mine.py:Last", out="deep/run", resume=True).best.metric
    Path("mine.py").write_text(Path("mine.py").read_text() + "# other\n")
    with pytest.raises(rota.RotaError, match="has been changed since the run began"):
        tune("mine.py:climb", tmp_path, allocation="mine.py:Last", out="deep/run", resume=True)


FACTOR = 1.0


def helped(config):
    yield FACTOR * config["lr"]


@dataclass(frozen=True)
class Continues(rota.Evolution):
    """Changes nothing, with an option."""

    least: float = 0.1

    def review(self, view, trial):
        return None


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"evolution": Continues(0.9)}, "policy, or options of one"),
        ({"cluster": {"slots": [{"count": 2, "cores": 0}]}}, "cluster"),
        ({"settings": {"costs": {"dispatch_s": 0.5}}}, None),
    ],
)
def test_what_a_run_goes_on_with_must_be_what_it_began_with(changed, named, tmp_path):
    begun = {"evolution": Continues(0.1)}
    tune(helped, tmp_path, **begun)
    if named is None:
        assert tune(helped, tmp_path, **{**begun, **changed}, resume=True).best.metric == 0.4
        return
    with pytest.raises(rota.RotaError, match=f"begun with another .*{named}"):
        tune(helped, tmp_path, **{**begun, **changed}, resume=True)


def test_what_a_function_uses_of_its_module_belongs_to_it(monkeypatch):
    from rota.library.tune import _source

    before = _source(helped)
    assert before == _source(helped)
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 2.0)
    assert _source(helped) != before


def test_a_wrong_metric_is_said_at_the_first_report(tmp_path):
    calls = tmp_path / "calls"

    def several(config):
        with calls.open("a") as stream:
            stream.write("x")
        yield {"a": 1.0, "b": 2.0}

    with pytest.raises(
        rota.RotaError, match=r"^several: yielded several metrics \(a, b\); `metric` says which"
    ):
        tune(several, tmp_path, trials=10)
    assert len(calls.read_text()) <= 3


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"lr": {0.1, 0.2}}, "space: lr is"),
        ({"lr": rota.Uniform}, "space: lr is"),
        ({"lr": iter([1, 2])}, "space: lr is"),
        ({"lr": rota.Uniform("a", 1)}, "a range of 'a' to 1; give numbers"),
    ],
)
def test_what_is_no_space_is_refused(space, message, tmp_path):
    with pytest.raises(rota.RotaError, match=message):
        tune(climb, tmp_path, space=space)


def test_arrays_are_lists_of_values_and_their_numbers_are_numbers(tmp_path):
    found = tune(helped, tmp_path, space={"lr": np.array([0.1, 0.3])}, trials=np.int64(4), steps=np.int64(1))
    assert set(found.trials["config.lr"]) <= {0.1, 0.3}
    assert found.best.config["lr"] in (0.1, 0.3)


def test_what_this_machine_does_not_have_is_refused(tmp_path):
    with pytest.raises(rota.RotaError, match="the cluster has 1000 cores, this machine"):
        tune(climb, tmp_path, cluster=rota.Cluster.local(1000))
    with pytest.raises(rota.RotaError, match="resume: which run"):
        tune(climb, tmp_path, out=None, resume=True)
    with pytest.raises(rota.RotaError, match="steps is None; give a whole number"):
        tune(climb, tmp_path, steps=None)


def test_a_run_that_was_not_finished_is_not_made_again(tmp_path):
    with pytest.raises(rota.RotaError, match="yielded no 'acc'"):
        tune(climb, tmp_path, metric="acc")
    with pytest.raises(rota.RotaError, match="was not finished; go on with rota run --resume"):
        rota.load(tmp_path / "run")
    with pytest.raises(rota.RotaError, match="no such folder"):
        rota.load(tmp_path / "nowhere")
