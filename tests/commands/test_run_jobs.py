"""`rota run` of jobs, as its users call it, and what can be made of such a run."""

import json

import pytest

from rota.cli import main
from rota.commands.run_jobs_config import ordered_jobs
from rota.config.load import override, read
from rota.recordings.profile import read_profiles
from rota.results.run import read_run

CONFIG = """
scheduler = "srtf"
site = "rota.execution.jobs.idle:idle_jobs"
slice_s = 0.05

[workload]
trace = "jobs.csv"

[local]
slots = [{ count = 2, cores = 0 }]

[kinds.fast]
compute_s = 0.004

[kinds.slow]
fetch_s = 0.004
compute_s = 0.008
"""
JOBS = """id,submit_s,gpus,model,iterations,duration_s,priority
a,0,1,fast,60,1,0
b,0,2,slow,40,1,0
c,0.1,1,slow,40,1,0
d,0.2,1,fast,20,1,0
"""


@pytest.fixture
def config(tmp_path):
    (tmp_path / "jobs.csv").write_text(JOBS)
    file = tmp_path / "jobs.toml"
    file.write_text(CONFIG)
    return file


@pytest.fixture
def done(config, tmp_path, capsys):
    """A run that is over, and what it printed."""
    assert main(["run", str(config), "--out", str(tmp_path / "run"), "--json"]) == 0
    return tmp_path / "run", json.loads(capsys.readouterr().out)


def test_it_says_what_came_of_it(done):
    _, found = done
    assert (found["complete"], found["scheduler"], found["finished"], found["failed"]) == (True, "srtf", 4, 0)
    assert [job["id"] for job in found["jobs"]] == ["a", "b", "c", "d"]
    assert [job["metric"] for job in found["jobs"]] == [60.0, 40.0, 40.0, 20.0]
    assert found["avg_jct_s"] == pytest.approx(sum(job["jct_s"] for job in found["jobs"]) / 4)
    assert found["overhead_s_per_slice"] > 0.0
    assert found["metrics"]["avg_jct_s"] == pytest.approx(found["avg_jct_s"])


def test_its_folder_is_that_of_a_rehearsal(done, tmp_path, capsys):
    folder, found = done
    run = read_run(folder)
    assert run.scheduler == "srtf"
    assert run.metrics.avg_jct_s == pytest.approx(found["avg_jct_s"])
    assert json.loads((folder / "result.json").read_text())["finished"] == 4
    assert main(["plot", str(folder), "--out", str(tmp_path / "plots"), "--quick"]) == 0
    assert list((tmp_path / "plots").rglob("*.png"))


def test_status_says_how_each_job_is(done, capsys):
    folder, _ = done
    assert main(["status", str(folder)]) == 0
    text = capsys.readouterr().out
    assert "b    slow  finished" in text
    assert "complete: srtf: 0 running, 0 waiting, 4 of 4 finished" in text
    assert main(["status", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["phase"] == "complete"


def test_what_jobs_took_becomes_profiles_that_can_be_rehearsed(done, config, tmp_path, capsys):
    folder, found = done
    out = tmp_path / "recording"
    assert main(["recordings", "from-run", str(folder), "--out", str(out)]) == 0
    rows = {(row.model, row.gang): row for row in read_profiles(out).rows}
    assert rows["fast", 1].iteration_s >= 0.004
    assert rows["slow", 2].iteration_s >= 0.012
    assert rows["slow", 1].load_s >= 0.004
    assert rows["slow", 1].compute_s >= 0.008
    simulate = ["simulate", "--trace", str(tmp_path / "jobs.csv"), "--nodes", "1", "--gpus-per-node", "2"]
    capsys.readouterr()
    code = main([*simulate, "--schedulers", "srtf", "--set", f"workload.profiles={out}", "--json"])
    (row,) = json.loads(capsys.readouterr().out)
    assert code == 0
    assert 0.3 < row["avg_jct_s"] / found["avg_jct_s"] < 3.0


def test_a_folder_that_has_a_run_is_not_written_over(done, config, capsys):
    folder, _ = done
    assert main(["run", str(config), "--out", str(folder)]) == 2
    assert "has a run already" in capsys.readouterr().err


def test_a_run_that_is_over_is_not_run_again(done, capsys):
    folder, found = done
    assert main(["run", "--resume", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["slices"] == found["slices"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "scheduler=strf"], "strf"),
        (["--set", "slice_s=0"], "slice_s is 0; it must be above 0"),
        (["--set", "workload.trace=nowhere.csv"], "nowhere.csv"),
        (["--repeat", "3"], "--repeat: is for populations"),
        (["--address", "127.0.0.1:1"], 'backend is "local"'),
        (["--set", "kinds={}"], "there are jobs of 'fast'; add [kinds.fast]"),
        (["--set", "kinds=3"], "kinds is not a table of tables"),
        (["--set", "local.slots=[{count=1}]"], "needs 2 GPUs"),
        (["--set", "resident={kind='fast', slots=3}"], "it must be a power of two"),
        (["--set", "resident={kind='fast', slots=2}"], "has no slot left for jobs"),
        (["--set", "backend=ray", "--set", "ray.shared=false"], "gangs meet in the folder of the run"),
        (["--set", "site='os.system'"], "not the name of a function"),
        (["--set", "options.srtf.nothing=1"], "options.srtf"),
    ],
)
def test_wrong_input_is_named(config, tmp_path, capsys, words, said):
    assert main(["run", str(config), "--out", str(tmp_path / "run"), *words]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_run_of_jobs_has_no_best_trial(done, capsys):
    folder, _ = done
    assert main(["run", "--replay", str(folder)]) == 2
    assert "is a run of jobs, and has no best trial" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("setup", "said"),
    [
        ("{ hyper = { batch_size = 6 } }", "kinds.fast: a batch of 6 cannot be shared equally by 4"),
        ("{ model = 'a2c', hyper = { batch_size = 16 } }", "kinds.fast: shared by 4: batch_size is 4"),
    ],
)
def test_a_resident_whose_batch_cannot_be_shared_is_refused(config, tmp_path, capsys, setup, said):
    config.write_text(CONFIG.replace("count = 2", "count = 7") + "\n[resident]\nkind = 'fast'\n")
    flags = [f"kinds.fast={{ setup = {setup} }}", "site=rota.training.job:networks"]
    words = [word for flag in flags for word in ("--set", flag)]
    assert main(["run", str(config), "--out", str(tmp_path / "run"), *words]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_an_agent_is_looked_for_from_the_folder_of_the_file(config, tmp_path):
    kinds = "\n[kinds.grows.adaptive]\nagent = 'agent'\n[resident]\nkind = 'grows'\n"
    config.write_text(CONFIG.replace("count = 2", "count = 3") + kinds)
    order = ordered_jobs(read(config), config)
    assert order.kinds["grows"]["adaptive"]["agent"] == str(tmp_path / "agent")
    assert order.venture().resident.until_s == 60.0
    assert order.venture().places == [1, 2]


def test_an_agent_in_a_flag_is_looked_for_where_the_user_is(config, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    kinds = "\n[kinds.grows.adaptive]\nagent = 'agent'\n[resident]\nkind = 'grows'\n"
    config.write_text(CONFIG.replace("count = 2", "count = 3") + kinds)
    flags = ["kinds.grows.adaptive.agent=mine"]
    order = ordered_jobs(override(read(config), flags), config, flags)
    assert order.kinds["grows"]["adaptive"]["agent"] == str(tmp_path / "here" / "mine")
    assert order.config.workload.trace == tmp_path / "jobs.csv"


def test_without_a_folder_it_asks_for_one(config, capsys):
    assert main(["run", str(config)]) == 2
    assert "Give a new folder" in capsys.readouterr().err


def test_profiles_come_from_runs_of_jobs_only(tmp_path, capsys):
    assert main(["recordings", "from-run", str(tmp_path), "--out", str(tmp_path / "x")]) == 2
    assert "not a run of jobs" in capsys.readouterr().err
