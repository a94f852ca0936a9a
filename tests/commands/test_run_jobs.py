"""`rota run` of jobs, as its users call it, and what can be made of such a run."""

import json

import pytest

from rota.cli import main
from rota.commands.run_jobs import JobsRun, ordered_jobs
from rota.config.load import override, read
from rota.core.columns import FACTS, LISTED
from rota.core.costs import RESTART
from rota.core.engine import JobsEngine
from rota.core.errors import InputError
from rota.core.timeline import Failed
from rota.execution.entries import DECIDED
from rota.execution.folder import RealFolder
from rota.execution.journal import read_journal
from rota.recordings.profile import read_profiles
from rota.results.run import read_run

CONFIG = """
scheduler = "srtf"
job = "rota.execution.jobs.idle:idle_jobs"
assignment_s = 0.05

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


def test_its_folder_is_that_of_a_simulation(done, tmp_path, capsys):
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


def test_what_jobs_took_becomes_profiles_that_can_be_simulated(done, config, tmp_path, capsys):
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
        (["--set", "assignment_s=0"], "assignment_s is 0; it must be above 0"),
        (["--set", "workload.trace=nowhere.csv"], "nowhere.csv"),
        (["--repeat", "3"], "--repeat: is for populations"),
        (["--address", "127.0.0.1:1"], 'backend is "local"'),
        (["--set", "kinds={}"], "there are jobs of 'fast'; add [kinds.fast]"),
        (["--set", "kinds=3"], "'kinds' is a table; set one of its keys, as in kinds.KEY"),
        (["--set", "placement.types=slow"], "placement.types: unknown value 'slow'"),
        (["--set", "local.slots=[{count=1}]"], "needs 2 GPUs"),
        (["--set", "opportunistic={kind='fast', slots=3}"], "it must be a power of two"),
        (["--set", "opportunistic={kind='fast', slots=2}"], "has no slot left for jobs"),
        (["--set", "backend=ray", "--set", "ray.shared=false"], "gangs meet in the folder of the run"),
        (["--set", "job='os.system'"], "not the name of a function"),
        (["--set", "options.srtf.nothing=1"], "options.srtf"),
    ],
)
def test_wrong_input_is_named(config, tmp_path, capsys, words, said):
    assert main(["run", str(config), "--out", str(tmp_path / "run"), *words]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_run_of_jobs_has_no_best_trial(done, capsys):
    folder, _ = done
    assert main(["run", "--retrain-best", str(folder)]) == 2
    assert "is a run of jobs, and has no best trial" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("setup", "said"),
    [
        ("{ hyper = { batch_size = 6 } }", "kinds.fast: a batch of 6 cannot be shared equally by 4"),
        ("{ model = 'a2c', hyper = { batch_size = 16 } }", "kinds.fast: shared by 4: batch_size is 4"),
    ],
)
def test_an_opportunistic_job_whose_batch_cannot_be_shared_is_refused(config, tmp_path, capsys, setup, said):
    config.write_text(CONFIG.replace("count = 2", "count = 7") + "\n[opportunistic]\nkind = 'fast'\n")
    flags = [f"kinds.fast={{ setup = {setup} }}", "job=rota.training.job:networks"]
    words = [word for flag in flags for word in ("--set", flag)]
    assert main(["run", str(config), "--out", str(tmp_path / "run"), *words]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_an_agent_is_looked_for_from_the_folder_of_the_file(config, tmp_path):
    kinds = "\n[kinds.grows.adaptive]\nagent = 'agent'\n[opportunistic]\nkind = 'grows'\n"
    config.write_text(CONFIG.replace("count = 2", "count = 3") + kinds)
    order = ordered_jobs(read(config), config)
    assert order.kinds["grows"]["adaptive"]["agent"] == str(tmp_path / "agent")
    assert order.jobs_spec().opportunistic.until_s == 60.0
    assert order.jobs_spec().places == [1, 2]


def test_an_agent_in_a_flag_is_looked_for_where_the_user_is(config, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    kinds = "\n[kinds.grows.adaptive]\nagent = 'agent'\n[opportunistic]\nkind = 'grows'\n"
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


AGING = """
import rota

class Aging(rota.Scheduler):
    def plan(self, view):
        return view.first_fit(view.rank(view.remaining_s))
"""
GROWS = """
import rota

class Grows(rota.Growth):
    def choose(self, observation):
        return "nothing"
"""
NAMED = """
[kinds.grows.adaptive]
agent = 'grows.py:Grows'
[opportunistic]
kind = 'grows'
"""


def test_classes_and_functions_in_files_start_at_the_folder_and_belong_to_the_run(config, tmp_path):
    (tmp_path / "aging.py").write_text(AGING)
    (tmp_path / "grows.py").write_text(GROWS)
    (tmp_path / "mine.py").write_text("import csv\ndef read_mine(file):\n    return csv.DictReader(file)\n")
    text = CONFIG.replace('"srtf"', '"aging.py:Aging"').replace("count = 2", "count = 3")
    config.write_text(text.replace("[workload]", '[workload]\nformat = "mine.py:read_mine"') + NAMED)
    order = ordered_jobs(read(config), config)
    assert (order.scheduler, order.jobs.ids) == ("aging", ("a", "b", "c", "d"))
    assert order.jobs.iterations.tolist() == [60, 40, 40, 20]
    assert order.kinds["grows"]["adaptive"]["agent"] == f"{tmp_path / 'grows.py'}:Grows"
    assert {"aging.py", "grows.py"} <= {name.rpartition("/")[2] for name in order.config.code}
    config.write_text(order.text())
    assert ordered_jobs(read(config), config).text() == order.text()
    (tmp_path / "grows.py").write_text(GROWS + "# another thought\n")
    with pytest.raises(InputError, match=r"grows\.py: has been changed since the run began"):
        ordered_jobs(read(config), config)


def test_a_growth_policy_that_does_not_fit_is_refused_before_anything_runs(config, tmp_path):
    (tmp_path / "grows.py").write_text("class Grows: ...\n")
    config.write_text(CONFIG.replace("count = 2", "count = 3") + NAMED)
    with pytest.raises(InputError, match=r"Grows: is not a growth policy: it has no choose; write def ch"):
        ordered_jobs(read(config), config)


def test_kinds_that_are_not_tables_are_named(config, tmp_path, capsys):
    config.write_text(f"kinds = 3\n{CONFIG.partition('[kinds.fast]')[0]}")
    assert main(["run", str(config), "--out", str(tmp_path / "run")]) == 2
    assert "kinds is not a table of tables" in capsys.readouterr().err


# devices of unequal speed: slots 0 and 1 are on a slow node; of the other node, the last slot is the fastest

UNEQUAL = (
    "local.slots=[{count=2, cores=0, node='old', speed=0.5}, {count=2, cores=0, node='new'}, "
    "{count=1, cores=0, node='new', speed=2.0}]"
)


@pytest.mark.parametrize(
    ("types", "preferred", "places"),
    [("fastest", [1, 0], [0, 1, 4, 2, 3]), ("blind", [0, 1], [0, 1, 2, 3, 4])],
)
def test_slots_are_preferred_by_the_speed_that_is_expected_of_them(config, types, preferred, places):
    settings = [UNEQUAL, f"placement.types={types}"]
    spec = ordered_jobs(override(read(config), settings), config, settings).jobs_spec()
    state = JobsEngine(spec.table, spec.cluster, RESTART, preferences=spec.preferences)
    assert state.nodes[FACTS + LISTED].tolist() == preferred
    assert list(spec.places) == places


def test_a_run_says_which_types_it_prefers_and_runs_of_before_preferred_none(config, tmp_path):
    main(["run", str(config), "--out", str(tmp_path / "run"), "--set", UNEQUAL, "--set", "workload.jobs=1"])
    file = tmp_path / "run" / "config.toml"
    text = file.read_text()
    assert '[placement]\ntypes = "fastest"' in text
    assert JobsRun.resume(tmp_path / "run", "test").order.config.placement.types == "fastest"
    (frame,) = (
        entry for entry in read_journal(next(tmp_path.glob("run/**/journal*"))) if entry.kind == DECIDED
    )
    assert frame.body["decisions"][0][1] == [2]  # the first slot of the second node
    before = "".join(text.split('[placement]\ntypes = "fastest"\n'))
    begun = RealFolder(tmp_path / "before")
    begun.begin(before)
    assert JobsRun.resume(begun.path, "test").order.config.placement.types == "blind"


# jobs that are given up

SITE = """
from rota.execution.jobs.idle import IdleJob, idle_jobs

class Job(IdleJob):
    def compute(self):
        super().compute()
        if self.done == self._seconds.get("fails_at"):
            raise ValueError("odd")

class Site(type(idle_jobs({}, 0))):
    def open(self, job, kind, rank, size, meeting):
        return Job(self._kinds[kind])

def make(settings, seed) -> Site:
    return Site(settings)
"""


def test_a_job_that_is_given_up_counts_as_failed_everywhere(config, tmp_path, capsys, monkeypatch):
    (tmp_path / "odd_site.py").write_text(SITE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "run"
    words = ["--set", "job=odd_site:make", "--set", "attempts=2", "--set", "kinds.slow.fails_at=3"]
    assert main(["run", str(config), "--out", str(folder), *words]) == 0
    out = capsys.readouterr().out
    assert "2 of 4 finished, 2 failed" in out
    assert "failed (not in JCT, fairness)" in out
    assert " 2 of 4" in out.splitlines()[-2]
    found = json.loads((folder / "result.json").read_text())
    assert [job["status"] for job in found["jobs"]] == ["finished", "failed", "failed", "finished"]
    a, d = found["jobs"][0]["jct_s"], found["jobs"][3]["jct_s"]
    assert found["avg_jct_s"] == pytest.approx((a + d) / 2)
    assert found["metrics"]["avg_jct_s"] == pytest.approx((a + d) / 2)
    assert (found["metrics"]["jobs"], found["metrics"]["failed"]) == (4, 2)
    run = read_run(folder)
    assert run.times.failed.tolist() == [0, 1, 1, 0]
    failures = [event for event in run.timeline() if isinstance(event, Failed)]
    left = {event.job: event.remaining for event in failures}
    assert left == {job: 40.0 - found["jobs"][job]["done"] for job in (1, 2)}
    assert main(["status", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["failed"] == 2
    assert main(["report", str(folder), "--out", str(tmp_path / "page.html")]) == 0
    assert "2 of 4 jobs failed" in (tmp_path / "page.html").read_text()
    assert main(["plot", str(folder), "--out", str(tmp_path / "plots"), "--quick"]) == 0
