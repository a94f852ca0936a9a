"""Sweeps on this machine: what becomes of their trials."""

import io
import math
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

import rota.sweeps as ss
from rota.core.errors import ConfigError, InputError
from rota.execution.journal import DamagedJournal, Journal, read_journal


def score(cfg):
    ss.log({"score": cfg["x"]}, 0)


def statuses(result: ss.Result) -> list[str | None]:
    return [trial.status for trial in result.trials]


def test_a_grid_is_run_whole_whatever_n_trials_is(sweep):
    result = sweep(score, {"x": ss.Grid([1, 2, 3]), "y": {"z": ss.Grid([4, 5])}}).run(n_trials=1)
    found = [(trial.cfg["x"], trial.cfg["y"]["z"]) for trial in result.trials]
    assert found == [(1, 4), (1, 5), (2, 4), (2, 5), (3, 4), (3, 5)]
    assert statuses(result) == ["completed"] * 6


def test_every_log_is_kept(sweep):
    def train(cfg):
        for step in range(5):
            ss.log({"loss": 1 / (step + 1), "steps": step}, step)
        ss.log({"loss": float("nan")}, 7)

    (trial,) = sweep(train, {}).run().trials
    assert trial.metrics["steps"] == {0: 0, 1: 1, 2: 2, 3: 3, 4: 4}
    loss = trial.metrics["loss"]
    assert [loss[step] for step in range(5)] == [1.0, 0.5, 1 / 3, 0.25, 0.2]
    assert math.isnan(loss[7])
    assert trial.runtime is not None
    assert 0 < trial.runtime.total_seconds() < 60
    assert trial.is_terminated()


def test_a_trial_that_crashes_has_failed_with_its_traceback_and_the_others_go_on(sweep, capsys):
    def train(cfg):
        ss.log({"score": 1.0}, 0)
        if cfg["x"] == 2:
            raise ArithmeticError("two is too much")

    result = sweep(train, {"x": ss.Grid([1, 2, 3])}).run()
    assert statuses(result) == ["completed", "failed", "completed"]
    failure = result.trials[1].failure or ""
    assert "two is too much" in failure
    assert 'raise ArithmeticError("two is too much")' in failure or "in train" in failure
    assert result.trials[0].failure is None
    line = f"the first to fail: {result.trials[1].trial_id}: ArithmeticError: two is too much"
    assert line in capsys.readouterr().out


def test_a_trial_that_is_killed_has_failed_and_says_how(sweep):
    def train(cfg):
        sys.stdout.write("so far")
        sys.stdout.flush()
        os.kill(os.getpid(), 9)

    for trial in sweep(train, {}).run(n_trials=2).trials:  # the same configuration, each with its own output
        assert trial.status == "failed"
        assert trial.failure == "ended without a result; exit code: -9\nso far"


@pytest.mark.parametrize(("code", "status"), [(0, "completed"), (3, "failed")])
def test_a_trial_that_exits_has_completed_if_it_says_so(sweep, code, status):
    (trial,) = sweep(lambda cfg: sys.exit(code), {}).run().trials
    assert trial.status == status


def test_trials_with_the_same_configuration_do_not_collide(sweep):
    result = sweep(score, {"x": 1.5}).run(n_trials=3)
    ids = [trial.trial_id for trial in result.trials]
    assert ids == [ids[0], f"{ids[0]}-2", f"{ids[0]}-3"]
    assert [trial.metrics for trial in result.trials] == [{"score": {0: 1.5}}] * 3


def test_the_worst_are_pruned_and_go_no_further(sweep):
    def train(cfg):
        for step in range(1, 9):
            ss.log({"loss": cfg["x"]}, step)

    cfg = {"x": ss.Grid([1, 2, 3])}
    result = sweep(train, cfg, asha=ss.ASHA("loss", "min", reduction_factor=2)).run(max_concurrent_trials=1)
    # one after the other: 1 is alone at every rung, 2 is worse than half way between 1 and 2, 3 than all
    assert statuses(result) == ["completed", "pruned", "pruned"]
    assert [len(trial.metrics["loss"]) for trial in result.trials] == [8, 1, 1]


def test_one_that_makes_something_else_of_being_pruned_is_pruned(sweep):
    def train(cfg):
        try:
            ss.log({"loss": cfg["x"]}, 1)
        except ss.TrialPruned as error:
            if cfg["x"] == 2:
                raise RuntimeError("wrapped") from error

    cfg = {"x": ss.Grid([1, 2, 3])}
    result = sweep(train, cfg, asha=ss.ASHA("loss", "min", reduction_factor=2)).run(max_concurrent_trials=1)
    assert statuses(result) == ["completed", "pruned", "pruned"]


def test_a_log_without_the_metric_prunes_no_trial(sweep):
    result = sweep(score, {"x": ss.Grid([1, 2])}, asha=ss.ASHA("loss", "min")).run(max_concurrent_trials=1)
    assert statuses(result) == ["completed", "completed"]


def test_at_most_so_many_run_at_once(sweep, tmp_path):
    running, begun, counted = (tmp_path / name for name in ("running", "begun", "counted"))
    for folder in (running, begun, counted):
        folder.mkdir()

    def meet(folder, x):
        """Until three have come."""
        import time

        (folder / str(x)).touch()
        until_s = time.monotonic() + 60
        while len(list(folder.iterdir())) < 3 and time.monotonic() < until_s:
            time.sleep(0.01)

    def train(cfg):
        (running / str(cfg["x"])).touch()
        meet(begun, cfg["x"])
        ss.log({"running": len(list(running.iterdir()))}, 0)
        meet(counted, cfg["x"])  # so that none of the first three has gone before all have counted
        (running / str(cfg["x"])).unlink()

    result = sweep(train, {"x": ss.Grid([1, 2, 3, 4, 5, 6])}).run(max_concurrent_trials=3)
    seen = [trial.metrics["running"][0] for trial in result.trials]
    assert seen[:3] == [3, 3, 3]
    assert max(seen[3:]) <= 3


def test_things_that_json_has_no_form_for_reach_the_trial(sweep):
    def train(cfg):
        assert cfg["root"] == Path("/somewhere")
        assert cfg["pair"] == (1, 2)
        ss.log({"value": cfg["function"](4.0)}, 0)

    cfg = {"function": ss.Grid([math.sqrt, math.exp]), "root": Path("/somewhere"), "pair": (1, 2)}
    result = sweep(train, cfg).run()
    assert [trial.metrics["value"][0] for trial in result.trials] == [2.0, math.exp(4.0)]
    assert repr(result.trials[0].cfg["function"]) == "<built-in function sqrt>"


def test_what_a_trial_prints_is_in_a_file_and_not_in_the_way(sweep, tmp_path, capfd):
    def train(cfg):
        sys.stdout.write("hello from the trial\n")
        sys.stdout.write('rota-sweep {"ended": "pruned"}\n')
        ss.log({"one": 1}, 0)

    (trial,) = sweep(train, {}).run().trials
    assert trial.status == "completed"
    text = (tmp_path / "sweeps" / "MySweep" / "output" / f"{trial.trial_id}.txt").read_text()
    assert text.startswith("hello from the trial\n")
    assert "hello" not in capfd.readouterr().out


@pytest.mark.parametrize("value", ["0.3", None, [1.0], 1j])
def test_a_metric_that_is_no_number_is_a_type_error(sweep, value):
    def train(cfg):
        try:
            ss.log({"loss": cfg["value"]}, 0)
        except TypeError as error:
            ss.log({"refused": int("give a float or an int" in str(error))}, 0)

    (trial,) = sweep(train, {"value": value}).run().trials
    assert trial.metrics == {"refused": {0: 1}}


def test_logging_outside_a_trial_is_a_type_error_with_the_reason():
    with pytest.raises(TypeError, match="outside a trial"):
        ss.log({"loss": 1.0}, 0)


def test_what_exists_is_not_touched_unless_told_to(sweep, tmp_path):
    sweep(score, {"x": 1}).run()
    with pytest.raises(ss.ExperimentExistsError, match=r"restore=True to go on with it, or overwrite=True"):
        sweep(score, {"x": 2})
    assert sweep(score, {"x": 2}, overwrite=True).run().trials[0].cfg == {"x": 2}
    (tmp_path / "sweeps" / "plain-folder").mkdir()
    with pytest.raises(ss.ExperimentExistsError):
        sweep(score, {"x": 2}, name="plain-folder")


def test_a_folder_with_something_else_in_it_is_not_overwritten(sweep, tmp_path):
    precious = tmp_path / "sweeps" / "thesis" / "chapter.txt"
    precious.parent.mkdir(parents=True)
    precious.write_text("years of work")
    with pytest.raises(ss.ExperimentExistsError, match="is not an experiment"):
        sweep(score, {"x": 1}, name="thesis", overwrite=True)
    assert precious.read_text() == "years of work"


def test_one_that_runs_is_neither_overwritten_nor_run_twice(sweep, tmp_path):
    experiment = sweep(score, {"x": 1})
    with Journal(tmp_path / "sweeps" / "MySweep" / "journal.sqlite"):
        with pytest.raises(ss.ExperimentExistsError, match="is running"):
            sweep(score, {"x": 1}, overwrite=True)
        with pytest.raises(Exception, match="another process runs this"):
            experiment.run()


def test_what_does_not_exist_cannot_be_restored(sweep):
    with pytest.raises(ss.ExperimentNotFoundError, match="no such experiment"):
        sweep(score, {"x": 1}, restore=True)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "..",
        "a/b",
        "../up",
        "/etc",
        "-rf",
        "a\nb",
        "a'b",
        'a"b',
        "$(id)",
        "`id`",
        "a;b",
        ".hidden",
        "x" * 101,
        "a\0b",
    ],
)
def test_a_hostile_name_is_refused_with_a_sentence(sweep, tmp_path, name):
    with pytest.raises(ConfigError, match="give a name of at most 100 letters"):
        sweep(score, {"x": 1}, name=name)
    with pytest.raises(ConfigError):
        ss.Result(name, tmp_path)
    assert not (tmp_path / "sweeps").exists()


@pytest.mark.parametrize("name", ["MySweep", "lr sweep 2", "a.b-c_d", "Größe=3"])
def test_ordinary_names_are_fine(sweep, name):
    assert sweep(score, {"x": 1}, name=name).name == name


def test_only_the_owner_can_read_an_experiment(sweep, tmp_path):
    sweep(score, {"x": 1}).run()
    folder = tmp_path / "sweeps" / "MySweep"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o077 for file in folder.iterdir() if file.is_file()} == {0}


def test_the_digest_of_the_train_function_is_in_the_journal_and_checked(sweep, tmp_path):
    folder = tmp_path / "sweeps" / "MySweep"

    def train(cfg):
        if cfg["x"] == 1:
            (folder / "train.pickle").write_bytes(b"something else")

    result = sweep(train, {"x": ss.Grid([1, 2])}).run(max_concurrent_trials=1)
    digests = [
        entry.body["sha256"] for entry in read_journal(folder / "journal.sqlite") if entry.kind == "train"
    ]
    assert [len(digest) for digest in digests] == [64]
    assert statuses(result) == ["completed", "failed"]
    assert "is not what the sweep wrote" in (result.trials[1].failure or "")


@pytest.mark.parametrize("options", [{"max_concurrent_trials": 0}, {"max_concurrent_trials": -1}])
def test_running_nothing_at_once_is_refused(sweep, options):
    with pytest.raises(ConfigError, match="give 1 or more"):
        sweep(score, {"x": 1}).run(**options)


class Paper(io.StringIO):
    """What is printed; there is a file as soon as some words are."""

    def __init__(self, words: str, file: Path) -> None:
        super().__init__()
        self._words, self._file = words, file

    def write(self, text: str) -> int:
        if self._words in text:
            self._file.touch()
        return super().write(text)


def test_the_table_is_printed_while_it_runs_and_at_the_end(sweep, tmp_path, monkeypatch):
    mark = tmp_path / "printed"

    def train(cfg):
        import time

        until_s = time.monotonic() + 60
        while not mark.exists() and time.monotonic() < until_s:
            time.sleep(0.01)
        ss.log({"loss": cfg["x"]}, 0)

    monkeypatch.setattr(sys, "stdout", paper := Paper("2 trials: 1 scheduled, 1 running", mark))
    sweep(train, {"x": ss.Grid([1, 2])}).run(max_concurrent_trials=1, summary_interval_in_sec=0.1)
    printed = paper.getvalue()
    assert "2 trials: 1 scheduled, 1 running" in printed
    assert printed.rindex("2 trials: 2 completed") > printed.rindex("1 running")


def test_what_comes_before_a_damaged_entry_can_be_restored(sweep, tmp_path, caplog):
    sweep(score, {"x": ss.Grid([1.0, 2.0, 3.0])}).run()
    (file,) = tmp_path.rglob("journal.sqlite")
    with closing(sqlite3.connect(file)) as journal, journal:
        (count,) = journal.execute("SELECT count(*) FROM entry").fetchone()
        journal.execute("UPDATE entry SET body = body || ' ' WHERE number = ?", (count,))
    with pytest.raises(DamagedJournal, match=f"entry {count} is damaged"):
        sweep(score, {"x": ss.Grid([1.0, 2.0, 3.0])}, restore=True).run()
    again = sweep(score, {"x": ss.Grid([1.0, 2.0, 3.0])}, restore="salvage").run()
    assert f"entry {count} is damaged" in caplog.text
    assert [trial.status for trial in again.trials] == ["completed"] * 3


def test_a_journal_that_has_lost_what_was_on_the_disk_is_missed(sweep, tmp_path):
    sweep(score, {"x": ss.Grid([1.0, 2.0, 3.0])}).run()
    (file,) = tmp_path.rglob("journal.sqlite")
    with closing(sqlite3.connect(file)) as journal, journal:
        (count,) = journal.execute("SELECT count(*) FROM entry").fetchone()
        journal.execute("DELETE FROM entry WHERE number > 2")
    with pytest.raises(DamagedJournal, match=f"has 2 entries, but {count} were on the disk"):
        sweep(score, {"x": ss.Grid([1.0, 2.0, 3.0])}, restore=True).run()
    file.unlink()
    with pytest.raises(InputError, match=f"is missing, but {count} entries of it were on the disk"):
        sweep(score, {"x": ss.Grid([1.0, 2.0, 3.0])}, restore=True)
