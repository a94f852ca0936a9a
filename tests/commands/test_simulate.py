"""`rota simulate`, as its user sees it."""

import csv
import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from rota.policies.cluster.registry import SCHEDULERS
from rota.results.metrics import Metrics
from rota.results.run import read_run
from rota.workload.jobs import draw_models
from rota.workload.profiles import startup_s

TWO_GPUS = ("--nodes", 1, "--gpus-per-node", 2)
RUN_FILES = {"config.toml", "timeline.npz", "jobs.csv", "metrics.json"}

ANEW = ": made anew, it was incomplete or made from other inputs\n"


def files_below(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def schedulers(said):
    return [row["scheduler"] for row in json.loads(said.out)]


# JSON and table


def test_json_is_one_array_with_every_metric(rota, trace):
    code, out, err = rota("--trace", trace, *TWO_GPUS, "--schedulers", "fifo,srtf", "--json")
    assert (code, err, out.count("\n")) == (0, "", 1)
    rows = json.loads(out)
    keys = ["scheduler", *(field.name for field in fields(Metrics)), "wall_s", "knows"]
    assert [list(row) for row in rows] == [keys, keys]
    # Under FIFO a starts at once, b after it, c after b: bert takes 10 s to start, vgg16 7 s and dqn 5 s, and
    # the trace's durations are taken at their word.
    fifo = {key: value for key, value in rows[0].items() if key not in ("wall_s", "knows")}
    assert [row["knows"] for row in rows] == ["none", "exact"]
    ends = (610, 610 + 307, 610 + 307 + 65)
    assert fifo == {
        "scheduler": "fifo",
        "jobs": 3,
        "avg_jct_s": pytest.approx((ends[0] + ends[1] - 10 + ends[2] - 20) / 3),
        "p50_jct_s": pytest.approx(ends[1] - 10),
        "p99_jct_s": pytest.approx(ends[2] - 20),
        "makespan_s": pytest.approx(ends[2]),
        "queueing_s": pytest.approx((0 + 600 + 897) / 3),
        "utilisation": pytest.approx((610 + 2 * 307 + 65) / (2 * ends[2])),
        "queue_length": pytest.approx((600 + 897) / ends[2]),
        "blocking_index": fifo["blocking_index"],
        "fairness_mean": fifo["fairness_mean"],
        "fairness_worst": fifo["fairness_worst"],
        "preemptions": 0,
        "migrations": 0,
        "failed": 0,
        "failed_attempts": 0,
        "lost_gpu_s": 0.0,
        "goodput": pytest.approx((600 + 2 * 300 + 60) / (2 * ends[2])),
        "availability": 1.0,
        "resizes": 0,
    }
    assert rows[1]["scheduler"] == "srtf"
    assert rows[1]["avg_jct_s"] < rows[0]["avg_jct_s"]
    assert 0 < rows[0]["wall_s"] < 10


@pytest.mark.parametrize("row", ["a,0,1,100,,0", "a,0,1,100,bert,0", "a,0,1,100,gpt9,0", "a,0,1,100,gpt9,1"])
@pytest.mark.parametrize(("flags", "jct_s"), [((), 100), (("--startup-s", 7), 107)])
def test_a_lone_job_takes_as_long_as_its_row_says(rota, here, write_trace, row, flags, jct_s):
    found = rota("--trace", write_trace(here / "one.csv", row), *TWO_GPUS, *flags, "--json")
    assert [line["avg_jct_s"] for line in json.loads(found.out)] == [pytest.approx(jct_s, rel=1e-12)] * 10


def test_models_are_drawn_if_asked_for(rota, here, write_trace):
    trace = write_trace(here / "one.csv", "a,0,1,100,,0")
    found = rota("--trace", trace, *TWO_GPUS, "--draw-models", "--schedulers", "srtf", "--json")
    [model] = draw_models(1, 0)
    assert json.loads(found.out)[0]["avg_jct_s"] == pytest.approx(100 + startup_s(model, 1))
    assert "no model in the trace for 1 job: drawn from the 8 measured ones with seed 0" in found.err


def test_jobs_without_stages_are_noted_to_run_alone(rota, here, write_trace):
    """One after the other: with stages they would share the two GPUs."""
    trace = write_trace(here / "two.csv", "a,0,2,100,,0", "b,0,2,100,,1")
    found = rota("--trace", trace, *TWO_GPUS, "--schedulers", "muri-l,antman", "--json")
    assert [row["makespan_s"] for row in json.loads(found.out)] == [200.0, 200.0]
    assert "note: no stages known for 2 jobs: schedulers that share GPUs run them alone" in found.err


def test_makespans_count_from_the_first_submit_everywhere(rota, here, write_trace):
    trace = write_trace(here / "late.csv", "a,5000,1,600,bert,0,10", "b,5100,1,300,bert,0,10")
    ask = ("--trace", trace, "--nodes", 1, "--gpus-per-node", 1, "--schedulers", "fifo")
    (row,) = json.loads(rota(*ask, "--json").out)
    assert row["makespan_s"] == pytest.approx(610 + 310)
    table = rota(*ask, "--out", here / "out").out.splitlines()
    assert table[1].split()[4] == f"{920 / 60:.2f}"
    written = json.loads((here / "out" / "fifo" / "metrics.json").read_text())
    assert written["metrics"]["makespan_s"] == row["makespan_s"]


def test_without_out_nothing_is_written(rota, trace, here):
    before = files_below(here)
    rota("--trace", trace, *TWO_GPUS, "--json")
    rota("--trace", trace, *TWO_GPUS)
    assert files_below(here) == before


def test_by_default_all_schedulers_are_in_the_table_one_to_a_line(rota, trace):
    code, out, err = rota("--trace", trace, *TWO_GPUS)
    assert (code, err) == (0, "")
    names = [line.split()[0] for line in out.splitlines()]
    assert names == [
        "scheduler", "fifo", "srtf", "srsf", "tiresias", "themis", "antman",
        "muri-s", "muri-l", "muri-l-worst-order", "muri-l-no-blossom",
    ]  # fmt: skip


def test_what_the_trace_leaves_out_is_noted_on_stderr(rota, here):
    bare = here / "bare.csv"
    bare.write_text("id,submit_s,gpus,duration_s\na,0,1,60\n")
    code, out, err = rota("--trace", bare, "--schedulers", "fifo", "--json")
    assert (code, len(json.loads(out))) == (0, 1)
    assert [line.split(":")[0] for line in err.splitlines()] == ["note", "note"]


def test_a_scheduler_may_be_called_as_in_the_muri_simulator(rota, trace):
    said = rota("--trace", trace, "--schedulers", "shortest,dlas-gpu", "--json")
    assert schedulers(said) == ["srtf", "tiresias"]


def test_the_interval_cost_charges_no_start_up_to_who_is_undisturbed(rota, write_trace, here):
    trace = write_trace(here / "one.csv", "a,0,1,600,bert,0,10")
    for cost, end_s in (("interval", 600), ("restart", 610)):
        (row,) = json.loads(rota("--trace", trace, "--schedulers", "fifo", "--cost", cost, "--json").out)
        assert row["makespan_s"] == pytest.approx(end_s)


def test_help_config_lists_the_keys_and_the_options_of_every_scheduler(rota):
    code, out, _ = rota("--help-config")
    assert code == 0
    for line in ("workload.trace", "cluster.nodes", "cost", "[options.fifo]", "backfill", "[options.muri-l]"):
        assert re.search(rf"^{re.escape(line)}\b|^{re.escape(line)}$", out, re.MULTILINE), line


# run folders


def test_out_keeps_a_folder_per_scheduler(rota, trace, here):
    said = rota("--trace", trace, *TWO_GPUS, "--schedulers", "fifo,srtf", "--out", "runs", "--json")
    assert said.code == 0
    assert files_below(here / "runs") == {"fifo", "srtf"} | {
        f"{name}/{file}" for name in ("fifo", "srtf") for file in RUN_FILES
    }
    for row in json.loads(said.out):
        run = read_run(here / "runs" / row["scheduler"])
        assert run.scheduler == row["scheduler"]
        assert run.metrics.avg_jct_s == row["avg_jct_s"]
        assert run.wall_s == row["wall_s"]


def test_a_second_call_reuses_the_runs_and_says_so(rota, trace, here):
    words = ("--trace", trace, *TWO_GPUS, "--schedulers", "fifo,srtf", "--out", "runs", "--json")
    first = rota(*words)
    stamps = {path: path.stat().st_mtime_ns for path in (here / "runs").rglob("*")}
    second = rota(*words)
    assert second.out == first.out
    assert second.err.splitlines() == [
        "runs/fifo: reused, its inputs are the same",
        "runs/srtf: reused, its inputs are the same",
    ]
    assert {path: path.stat().st_mtime_ns for path in (here / "runs").rglob("*")} == stamps


def test_only_what_is_new_is_run(rota, trace):
    rota("--trace", trace, "--schedulers", "fifo", "--out", "runs")
    said = rota("--trace", trace, "--schedulers", "fifo,srtf", "--out", "runs")
    assert said.err == "runs/fifo: reused, its inputs are the same\n"


@pytest.mark.parametrize(
    "words", [["--cost", "interval"], ["--set", "options.fifo.backfill=true"], ["--jobs", 2], ["--nodes", 4]]
)
def test_a_changed_setting_does_not_reuse(rota, trace, words):
    always = ["--trace", trace, "--schedulers", "fifo", "--out", "runs"]
    assert rota(*always).err == ""
    assert rota(*always, *words, "--replace").err.endswith(ANEW)


def test_what_another_command_has_made_is_not_replaced_unless_that_is_asked_for(rota, trace, here):
    rota("--trace", trace, "--schedulers", "srtf", "--out", "runs")
    before = {path: path.read_bytes() for path in (here / "runs").rglob("*.*")}
    said = rota("--trace", trace, *TWO_GPUS, "--schedulers", "fifo,srtf", "--out", "runs")
    made_by = f"rota simulate --trace {trace} --schedulers srtf --out runs"
    assert (said.code, said.out) == (2, "")
    assert said.err == (
        f"rota: error: runs/srtf: holds another run, made by: {made_by}; "
        "choose another --out, or add --replace\n"
    )
    assert {path: path.read_bytes() for path in (here / "runs").rglob("*.*")} == before  # fifo neither
    anew = rota("--trace", trace, *TWO_GPUS, "--schedulers", "srtf", "--out", "runs", "--replace")
    assert anew.err == f"runs/srtf{ANEW}"
    assert "--replace" not in read_run(here / "runs" / "srtf").command


def test_a_population_is_not_replaced_by_jobs_nor_jobs_by_a_population(rota, trace, here):
    population = ("--population", 2, "--steps", 50, "--slots", "1,1", "--allocations", "fifo")
    population += ("--out", "runs")
    jobs = ("--trace", trace, "--schedulers", "fifo", "--out", "runs")
    assert rota(*population).code == 0
    assert "runs/fifo: holds another run" in rota(*jobs).err
    (here / "runs").rename(here / "before")
    assert rota(*jobs).code == 0
    assert "runs/fifo: holds another run" in rota(*population).err


INPUTS = {
    # The work is given, so that it does not follow from the duration, nor the stages from the model.
    "full.csv": (
        "id,submit_s,gpus,duration_s,iterations,iteration_s,load_s,compute_s,sync_s,model,priority,kinds\n"
        "x,0,1,60,60,1,0.2,0.7,0.1,bert,0,\n"
    ),
    "machines.csv": "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n1,1,2,92,520\n",
}


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("three.csv", ",600,", ",601,"),
        ("three.csv", "bert", "gpt2"),
        ("three.csv", "c,20", "c,21"),
        ("three.csv", "c,20", "d,20"),
        ("full.csv", ",60,1,0.2", ",61,1,0.2"),
        pytest.param("machines.csv", "1,1,2", "1,2,2"),
        pytest.param("full.csv", ",60,60,", ",70,60,"),  # Muri-S ranks by it
        pytest.param("full.csv", "bert", "a2c"),  # takes 38 s to start instead of 10
        pytest.param("full.csv", "bert,0,", "bert,0,gpu"),
    ],
)
def test_a_changed_input_does_not_reuse(rota, here, trace, name, old, new):
    for file, text in INPUTS.items():
        (here / file).write_text(text)
    words = ["--schedulers", "muri-s", "--out", "runs", "--set", "cluster.file=machines.csv"]
    words += ["--trace", "full.csv" if name == "full.csv" else "three.csv"]
    assert rota(*words).err == ""
    before = (here / name).read_text()
    (here / name).write_text(before.replace(old, new))
    assert (here / name).read_text() != before
    assert rota(*words).err.endswith(ANEW)


def test_a_run_that_is_not_complete_is_made_again(rota, trace, here):
    words = ("--trace", trace, "--schedulers", "fifo", "--out", "runs")
    rota(*words)
    (here / "runs" / "fifo" / "metrics.json").unlink()
    assert rota(*words).err.endswith(ANEW)
    assert read_run(here / "runs" / "fifo").metrics.jobs == 3


def test_the_run_remembers_its_resolved_configuration(rota, trace, here):
    rota("--trace", trace, *TWO_GPUS, "--schedulers", "srtf", "--set", "placement=spread", "--out", "runs")
    config = tomllib.loads((here / "runs" / "srtf" / "config.toml").read_text())
    assert config["schedulers"] == ["srtf"]
    assert config["cluster"]["gpus_per_node"] == 2
    assert config["options"]["srtf"] == {"placement": "spread"}


@pytest.mark.parametrize(
    "named",
    [
        "absolute",
        pytest.param(
            "relative",
        ),
    ],
)
def test_the_configuration_of_a_run_can_be_run_as_it_is(rota, trace, here, named):
    first = rota(
        "--trace", trace if named == "absolute" else trace.name, *TWO_GPUS, "--schedulers", "fifo",
        "--out", "runs", "--json",
    )  # fmt: skip
    again = rota(here / "runs" / "fifo" / "config.toml", "--json")
    assert again.code == 0
    rows = [json.loads(said.out)[0] for said in (first, again)]
    assert [row["avg_jct_s"] for row in rows] == [rows[0]["avg_jct_s"]] * 2


# configuration

CONFIG = """
schedulers = ["fifo"]
[workload]
trace = "traces/three.csv"
[cluster]
nodes = 1
gpus_per_node = 2
"""


@pytest.fixture
def config(here, trace):
    """A TOML file in a folder of its own, with its trace below it."""
    folder = here / "experiment"
    (folder / "traces").mkdir(parents=True)
    trace.rename(folder / "traces" / "three.csv")
    path = folder / "question.toml"
    path.write_text(CONFIG)
    return path


def test_a_relative_trace_starts_at_the_folder_of_the_file(rota, config):
    assert json.loads(rota(config, "--json").out)[0]["jobs"] == 3


@pytest.mark.parametrize("words", [["--trace", "other.csv"], ["--set", "workload.trace=other.csv"]])
def test_a_trace_on_the_command_line_starts_where_the_user_is(rota, config, here, write_trace, words):
    write_trace(here / "other.csv", "x,0,1,60,bert,0")
    assert json.loads(rota(config, *words, "--json").out)[0]["jobs"] == 1


def test_flags_and_set_win_over_the_file(rota, config):
    words = [
        "--schedulers",
        "srtf,srsf",
        "--gpus-per-node",
        4,
        "--set",
        "cost=interval",
        "--out",
        "runs",
        "--json",
    ]
    assert schedulers(rota(config, *words)) == ["srtf", "srsf"]
    written = tomllib.loads(Path("runs/srtf/config.toml").read_text())
    assert (written["cluster"]["gpus_per_node"], written["cost"]) == (4, "interval")


def test_the_options_table_sets_a_scheduler_up(rota, config):
    # Without backfilling c waits for b, with it c starts at 20 s: 5 s start-up, 60 s.
    strict = json.loads(rota(config, "--json").out)[0]
    config.write_text(CONFIG + "[options.fifo]\nbackfill = true\n")
    relaxed = json.loads(rota(config, "--json").out)[0]
    assert strict["makespan_s"] == pytest.approx(610 + 307 + 65)
    assert relaxed["makespan_s"] == pytest.approx(610 + 307)


def test_options_may_use_the_names_of_the_muri_simulator(rota, config):
    words = ["--schedulers", "shortest", "--set", "options.shortest.placement=spread", "--out", "runs"]
    assert rota(config, *words).code == 0
    assert tomllib.loads(Path("runs/srtf/config.toml").read_text())["options"] == {
        "srtf": {"placement": "spread"}
    }


@pytest.mark.parametrize("placement", ["consolidated", "spread", "anywhere"])
def test_the_placement_is_that_of_all_who_leave_the_choice(rota, here, write_trace, placement):
    # Two nodes of two. a takes a slot; b, a gang of two, goes to node 1, to both nodes, or to slots 1 and 2.
    trace = write_trace(here / "two.csv", "a,0,1,600,bert,0", "b,10,2,300,vgg16,1")
    words = ["--nodes", 2, "--gpus-per-node", 2, "--set", f"placement={placement}", "--out", "runs"]
    assert rota("--trace", trace, *words).code == 0
    slots = {"consolidated": (2, 3), "spread": (1, 2), "anywhere": (1, 2)}[placement]
    for name in ("fifo", "srtf", "srsf", "tiresias", "themis"):
        starts = [event for event in read_run(here / "runs" / name).timeline() if hasattr(event, "slots")]
        assert {event.slots for event in starts if event.job == 1} == {slots}


def test_an_option_of_one_scheduler_wins_over_the_placement_of_all(rota, config):
    config.write_text(f'placement = "spread"\n{CONFIG}[options.fifo]\nplacement = "anywhere"\n')
    rota(config, "--schedulers", "fifo,srtf", "--out", "runs")
    found = {
        name: tomllib.loads(Path(f"runs/{name}/config.toml").read_text())["options"][name]["placement"]
        for name in ("fifo", "srtf")
    }
    assert found == {"fifo": "anywhere", "srtf": "spread"}


def test_a_grid_gives_a_row_and_a_folder_per_point(rota, config, here):
    config.write_text(CONFIG + '[grid]\n"cluster.gpus_per_node" = [2, 4]\ncost = ["restart", "interval"]\n')
    said = rota(config, "--out", "runs", "--json")
    names = [f"gpus_per_node={gpus},cost={cost}" for gpus in (2, 4) for cost in ("restart", "interval")]
    rows = json.loads(said.out)
    assert [row["point"] for row in rows] == names
    assert {row["scheduler"] for row in rows} == {"fifo"}
    assert {path.parent.relative_to(here / "runs").as_posix() for path in here.rglob("metrics.json")} == {
        f"{name}/fifo" for name in names
    }
    assert rows[0]["avg_jct_s"] > rows[2]["avg_jct_s"]  # on four GPUs nobody waits
    table = rota(config).out.splitlines()
    assert [" ".join(line.split()[:3]) for line in table[1:]] == [
        f"{name.replace(',', ' ')} fifo" for name in names
    ]


def test_a_flag_that_is_given_is_not_varied(rota, config):
    config.write_text(CONFIG + '[grid]\n"cluster.gpus_per_node" = [2, 4]\n')
    (row,) = json.loads(rota(config, "--gpus-per-node", 8, "--json").out)
    assert row["scheduler"] == "fifo"


def test_quick_is_sixty_jobs(rota, here, write_trace):
    trace = write_trace(here / "many.csv", *(f"j{i},{i},1,60,bert,0" for i in range(100)))
    words = ("--trace", trace, "--schedulers", "fifo", "--json")
    assert json.loads(rota(*words, "--quick").out)[0]["jobs"] == 60
    assert json.loads(rota(*words).out)[0]["jobs"] == 100
    assert json.loads(rota(*words, "--jobs", 7).out)[0]["jobs"] == 7


def test_quick_is_sixty_jobs_at_most(rota, trace):
    said = rota("--trace", trace, "--schedulers", "fifo", "--quick", "--jobs", 2, "--json")
    assert json.loads(said.out)[0]["jobs"] == 2


def test_without_anything_it_is_the_shipped_workload(rota):
    said = rota("--quick", "--schedulers", "srtf", "--json")
    assert (said.code, said.err) == (0, "note: quick: the first 60 of 1,000 jobs\n")
    assert json.loads(said.out)[0]["jobs"] == 60


@pytest.mark.parametrize(
    "path",
    sorted((Path(__file__).parents[2] / "config" / "simulate").glob("*.toml")),
    ids=lambda path: path.name,
)
def test_every_shipped_configuration_runs(rota, path):
    if "population" in tomllib.loads(path.read_text("utf-8")):
        said = rota(path, "--quick", "--allocations", "fifo,finish", "--json")
        assert said.code == 0
        assert {row["allocation"] for row in json.loads(said.out)} == {"fifo", "finish"}
    else:
        said = rota(path, "--jobs", 20, "--schedulers", "fifo,srtf", "--json")
        assert said.code == 0
        assert {row["jobs"] for row in json.loads(said.out)} == {20}


# bad input: one line that says what, where and what would be right


def bad(rota, here, *words):
    """The one line of complaint, without the prefix; nothing else may have been said or written."""
    before = files_below(here)
    code, out, err = rota(*words)
    assert (code, out) == (2, "")
    assert err.startswith("rota: error: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert "Traceback" not in err
    assert files_below(here) == before
    return err.removeprefix("rota: error: ").rstrip("\n")


FINE = "a,0,1,60,bert,0"


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        (["a,0,1,soon,bert,0"], "bad.csv: line 2: duration_s: 'soon' is not a number"),
        (["a,0,1,nan,bert,0"], "bad.csv: line 2: duration_s: 'nan' is not a number of 0 or more"),
        (["a,0,1,-60,bert,0"], "bad.csv: line 2: duration_s: '-60' is not a number of 0 or more"),
        (["a,-5,1,60,bert,0"], "bad.csv: line 2: submit_s: '-5' is not a number of 0 or more"),
        (["a,0,0,60,bert,0"], "bad.csv: line 2: gpus: '0' is not a number above 0"),
        ([FINE, "b,0,none,60,bert,0"], "bad.csv: line 3: gpus: 'none' is not a number"),
        (
            [FINE, "b,0,1,60,bert,0,10,0"],
            "bad.csv: line 3: 8 fields; expected 7: id,submit_s,gpus,duration_s,model,priority,startup_s",
        ),
        ([FINE, "b,0,1,60,bert,0", FINE], "bad.csv: line 4: id: 'a' is not unique: line 2 has it too"),
        (
            ["a,0,65,60,bert,0"],
            "bad: job a needs 65 GPUs; the cluster has 64. Use a larger cluster or leave the job out",
        ),
    ],
)
@pytest.mark.parametrize("words", [[], ["--json"], ["--out", "runs"]], ids=["table", "json", "out"])
def test_a_trace_that_makes_no_sense_names_the_file_the_line_and_the_field(
    rota, here, write_trace, rows, complaint, words
):
    write_trace(here / "bad.csv", *rows)
    assert bad(rota, here, "--trace", "bad.csv", *words) == complaint


def test_a_trace_is_not_remarked_upon_before_it_is_refused(rota, here):
    (here / "bare.csv").write_text("id,submit_s,gpus,duration_s\na,0,65,60\n")
    assert bad(rota, here, "--trace", "bare.csv").startswith("bare: job a needs 65 GPUs; the cluster has 64.")


def test_an_empty_trace_is_refused(rota, here):
    (here / "empty.csv").write_text("")
    assert bad(rota, here, "--trace", "empty.csv", "--out", "runs").startswith(
        "empty.csv: cannot tell its format"
    )
    assert bad(rota, here, "--trace", "empty.csv", "--format", "csv").startswith(
        "empty.csv: the file is empty; "
    )


def test_a_trace_without_jobs_is_refused(rota, here):
    (here / "header.csv").write_text("id,submit_s,gpus,duration_s\n")
    assert bad(rota, here, "--trace", "header.csv", "--out", "runs") == "header: no jobs in it"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--trace", "nowhere.csv"], "nowhere.csv: cannot be read: No such file or directory"),
        (["--trace", "."], ".: is a folder; expected a file"),
        (["nowhere.toml"], "nowhere.toml: no such file"),
        (["."], ".: cannot be read: Is a directory"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(rota, here, words, complaint):
    assert bad(rota, here, *words) == complaint


def test_a_configuration_with_nearly_that_name_is_suggested(rota, config, here):
    assert bad(rota, here, "experiment/qestion.toml") == (
        "experiment/qestion.toml: no such file. Did you mean 'experiment/question.toml'?"
    )


@pytest.fixture
def as_a_user(here, humble):
    """Gives a function that runs `rota simulate …` as somebody who may not enter the folder `closed`."""
    (here / "closed").mkdir(mode=0o000)

    def run(*words):
        command = [*humble, sys.executable, "-m", "rota", "simulate", *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    yield run
    (here / "closed").chmod(0o755)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("closed/a.toml", "closed/a.toml: cannot be read: Permission denied"),
        pytest.param(
            "--trace closed/a.csv",
            "closed/a.csv: cannot be read: Permission denied",
        ),
        pytest.param(
            "--trace three.csv --schedulers fifo --out closed/runs",
            "closed/runs/fifo: cannot be read (Permission denied); choose another folder",
        ),
    ],
)
def test_a_folder_that_may_not_be_entered_is_named(as_a_user, here, trace, words, complaint):
    assert bad(as_a_user, here, *words.split()) == complaint


@pytest.mark.parametrize("out", ["three.csv", "three.csv/below", "three.csv/far/below"])
def test_a_place_for_runs_that_is_below_a_file_is_refused(rota, here, trace, out):
    said = bad(rota, here, "--trace", trace, "--schedulers", "fifo", "--out", out)
    assert said == f"{out}/fifo: cannot be written (Not a directory); choose another folder"


KNOWN = ", ".join(SCHEDULERS)


KEYS = "workload, cluster, schedulers, cost, checkpoint_every_s, placement, durations, failures"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("--schedulers srft", f"unknown scheduler 'srft'. Did you mean 'srtf'? Known: {KNOWN}"),
        ("--schedulers fifo,qqq", f"unknown scheduler 'qqq'. Known: {KNOWN}"),
        ("--schedulers ,", "schedulers is empty; name at least one"),
        ("--schedulers fifo,fifo", "schedulers names fifo twice"),
        (
            "--cost restrat",
            "cost: unknown value 'restrat'. Did you mean 'restart'? Known: restart, interval",
        ),
        ("--nodes 0", "cluster: nodes is 0; it must be at least 1"),
        ("--nodes abc", "cluster.nodes: 'abc' is not an integer"),
        ("--nodes 1.5", "cluster.nodes: 1.5 is not an integer"),
        ("--gpus-per-node -1", "cluster: gpus_per_node is -1; it must be at least 1"),
        ("--jobs 0", "three: cannot keep the first 0 jobs; ask for at least 1"),
        (
            "--set placement=spred",
            "placement: unknown value 'spred'. Did you mean 'spread'? Known: consolidated, spread, anywhere",
        ),
        ("--set clutser.nodes=4", f"unknown key 'clutser'. Did you mean 'cluster'? Known: {KEYS}"),
        (
            "--set options.srtf.plcement=spread",
            "options.srtf: unknown key 'plcement'. Did you mean 'placement'? Known: placement",
        ),
        (
            "--set options.muri-l.packing_num=9",
            "options.muri-l: packing_num 9: it must be 1 to 4 (multi_resource)",
        ),
        ("--set options.nobody.x=1", f"unknown scheduler 'nobody'. Known: {KNOWN}"),
        ("--set options=1", "options is not a table"),
        (
            "--cost interval --set checkpoint_every_s=60",
            "checkpoint_every_s has no meaning with cost = 'interval'; leave it out",
        ),
    ],
)
def test_a_setting_that_makes_no_sense_is_named_with_what_would(rota, here, trace, words, complaint):
    said = bad(rota, here, "--trace", trace, "--out", "runs", *words.split())
    assert said.removeprefix("command line: ") == complaint


def test_options_that_are_not_a_table_are_refused(rota, here, trace):
    assert "srtf" in bad(rota, here, "--trace", trace, "--set", "options.srtf=1")


def test_options_under_two_names_of_one_scheduler_are_refused(rota, here, trace):
    both = ["--set", "options.srtf.placement=spread", "--set", "options.shortest.placement=anywhere"]
    assert "srtf" in bad(rota, here, "--trace", trace, *both)


@pytest.mark.parametrize(
    ("assignment", "complaint"),
    [
        ("cluster.nodes", "no value; write key.path=value, for example --set cluster.nodes=8"),
        ("cluster.nodes=", "no value; write key.path=value, for example --set cluster.nodes=8"),
        ("=4", "'' is not a key; a key looks like cluster.nodes"),
        ("cluster..nodes=4", "'cluster..nodes' is not a key; a key looks like cluster.nodes"),
        ("cluster.nodes=[1", "the value is not valid TOML: "),
        ("cost.x=1", "'cost' is not a table"),
    ],
)
def test_a_malformed_set_is_quoted_with_how_to_write_it(rota, config, here, assignment, complaint):
    config.write_text(f'cost = "restart"\n{CONFIG}')
    assert bad(rota, here, config, "--set", assignment).startswith(f"--set {assignment}: {complaint}")


def test_a_file_that_is_not_toml_is_named_with_the_place(rota, here):
    (here / "broken.toml").write_text("[workload\n")
    assert re.fullmatch(r"broken\.toml: not valid TOML: .*line 1.*", bad(rota, here, "broken.toml"))


def test_the_conflict_of_cost_and_checkpoint_is_found_in_a_file_too(rota, config, here):
    config.write_text(f'cost = "interval"\ncheckpoint_every_s = 60\n{CONFIG}')
    assert bad(rota, here, config) == (
        f"{config}: checkpoint_every_s has no meaning with cost = 'interval'; leave it out"
    )


def test_a_grid_with_one_bad_point_is_refused_before_anything_runs(rota, config, here):
    config.write_text(CONFIG + '[grid]\n"cluster.gpus_per_node" = [2, 0]\n')
    assert bad(rota, here, config, "--out", "runs") == (
        f"{config}: cluster: gpus_per_node is 0; it must be at least 1"
    )


def test_a_grid_with_a_point_too_small_for_a_job_is_refused_before_anything_runs(rota, config, here):
    config.write_text(CONFIG + '[grid]\n"cluster.gpus_per_node" = [2, 1]\n')
    assert bad(rota, here, config, "--out", "runs").startswith(
        "three: job b needs 2 GPUs; the cluster has 1."
    )


def test_jobs_that_can_never_run_are_a_failed_run_not_bad_input(rota, config, here):
    config.write_text(CONFIG + '[[cluster.changes]]\nat_s = 50\nnode = 0\nwhat = "leave"\n')
    code, out, err = rota(config, "--out", "runs")
    assert (code, out) == (1, "")
    assert re.fullmatch(r"rota: error: at 50 s nothing runs .* 3 jobs wait; .*\n", err)
    assert not (here / "runs").exists()


# the process


def test_it_imports_neither_torch_nor_ray(trace, here):
    for name in ("torch", "ray", "tensorflow"):  # there to be imported, so that it would be seen
        (here / f"{name}.py").write_text("")
    code = (
        "import sys; from rota.cli import main; "
        f"code = main(['simulate', '--trace', {str(trace)!r}, '--out', 'runs']); "
        "print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert "rota.simulator.jobs" in done.stderr.split()
    assert not {"torch", "ray", "tensorflow", "matplotlib"} & set(done.stderr.split())


def test_stdout_of_the_process_is_json_and_nothing_else(trace, here):
    command = [
        sys.executable,
        "-m",
        "rota",
        "simulate",
        "--trace",
        "three.csv",
        "--schedulers",
        "muri-l",
        "--json",
    ]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert not done.stderr or done.stderr.startswith(
        "compiling"
    )  # said where it takes long, on a busy machine
    assert [row["scheduler"] for row in json.loads(done.stdout)] == ["muri-l"]


def test_bad_input_ends_the_process_with_2_and_one_line(here):
    command = [sys.executable, "-m", "rota", "simulate", "--trace", "nowhere.csv"]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "rota: error: nowhere.csv: cannot be read: No such file or directory\n"


def test_the_run_remembers_the_command_that_made_it(trace, here):
    command = [
        sys.executable,
        "-m",
        "rota",
        "simulate",
        "--trace",
        "three.csv",
        "--schedulers",
        "fifo",
        "--out",
        "my runs",
    ]
    subprocess.run(command, cwd=here, capture_output=True, check=True)
    made_by = "rota simulate --trace three.csv --schedulers fifo --out 'my runs'"
    assert read_run(here / "my runs" / "fifo").command == made_by


HELP = """
import atexit, resource, sys
from rota.cli import main

def tell():
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(used.ru_utime + used.ru_stime, *{name.partition(".")[0] for name in sys.modules})

atexit.register(tell)
main(["--help"])
"""


def test_help_is_instant():
    done = subprocess.run([sys.executable, "-P", "-c", HELP], capture_output=True, text=True, check=True)
    seconds, *loaded = done.stdout.splitlines()[-1].split()
    assert not {"numpy", "numba", "rustworkx", "matplotlib", "tqdm", "rich", "torch"} & set(loaded)
    assert float(seconds) < 2.0  # a fifth of a second, whatever else the machine does meanwhile


def test_the_jobs_of_a_run_are_a_csv_with_a_row_each(rota, trace, here):
    rota("--trace", trace, *TWO_GPUS, "--schedulers", "fifo", "--out", "runs")
    with (here / "runs" / "fifo" / "jobs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "words", [("--schedulers", "fifo,srtf,srsf"), ("--population", 2, "--steps", 100, "--slots", "1")]
)
def test_that_something_is_compiled_is_said_once(rota, trace, monkeypatch, words):
    from rota.commands import common

    class AtOnce:
        def __init__(self, interval, function, args, kwargs):
            self.start = lambda: function(*args, **kwargs)

        def cancel(self):
            """Too late."""

    monkeypatch.setattr(common, "Timer", AtOnce)
    given = () if "--population" in words else ("--trace", trace)
    said = rota(*given, *words)
    assert said.code == 0
    assert said.err.count("compiling") == 1


# devices of unequal speed

UNEQUAL = """
schedulers = ["srtf"]
[workload]
trace = "one.csv"
[cluster]
groups = [{ count = 1, gpus = 1, kind = "k80" }, { count = 1, gpus = 1, kind = "a100" }]
[cluster.speeds]
k80 = { default = 0.2 }
a100 = { default = 2.0 }
"""


@pytest.fixture
def unequal(here):
    """An hour of work; 1800 s on the A100, which is listed last, and 18000 s on the K80."""
    (here / "one.csv").write_text("id,submit_s,gpus,duration_s\na,0,1,3600\n")
    (here / "unequal.toml").write_text(UNEQUAL)
    return here / "unequal.toml"


@pytest.mark.parametrize(
    ("words", "jct_s"),
    [
        ((), 1800.0),
        (("--set", "placement.types=fastest"), 1800.0),
        (("--set", "placement.types=blind"), 18000.0),
        (("--set", "placement.types=blind", "--set", "placement.style=spread"), 18000.0),
        (("--set", "placement=spread"), 1800.0),
    ],
)
def test_types_are_preferred_as_the_configuration_says(rota, unequal, words, jct_s):
    (row,) = json.loads(rota(unequal, "--json", *words).out)
    assert row["avg_jct_s"] == jct_s


def test_types_are_part_of_what_a_run_follows_from(rota, unequal, here):
    for types, jct_s in (("fastest", 1800.0), ("blind", 18000.0)):
        words = ("--set", f"placement.types={types}", "--out", "runs", "--replace")
        assert "reused" not in rota(unequal, *words).err
        assert "reused" in rota(unequal, *words).err
        file = here / "runs" / "srtf" / "config.toml"
        assert tomllib.loads(file.read_text())["placement"] == {"types": types}
        (row,) = json.loads(rota(file, "--json").out)  # it can be given back
        assert row["avg_jct_s"] == jct_s


def test_types_can_vary_in_a_grid(rota, unequal):
    unequal.write_text(UNEQUAL + '[grid]\n"placement.types" = ["fastest", "blind"]\n')
    rows = json.loads(rota(unequal, "--json").out)
    assert [(row["point"], row["avg_jct_s"]) for row in rows] == [
        ("types=fastest", 1800.0),
        ("types=blind", 18000.0),
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--set", "placement.types=fast"),
            "placement.types: unknown value 'fast'. Did you mean 'fastest'? Known: fastest, advantage, blind",
        ),
        (
            ("--set", "placement=spread", "--set", "placement.types=blind"),
            "'placement' is not a table: it is 'spread'",
        ),
        (
            ("--set", "placement.types=blind", "--set", "placement=spread"),
            "'placement' is a table; set one of its keys, as in placement.KEY",
        ),
    ],
)
def test_a_wrong_preference_is_named(rota, unequal, words, message):
    said = rota(unequal, *words)
    assert said.code == 2
    assert message in said.err


def test_a_speed_of_a_model_that_no_job_has_is_noted(rota, unequal, here):
    (here / "one.csv").write_text("id,submit_s,gpus,duration_s,model\na,0,1,3600,mynet\n")
    unequal.write_text(UNEQUAL + "[cluster.speeds.v100]\n")
    assert (
        "cluster.speeds: unknown device kind 'v100'. Did you mean 'a100'? Known: k80, a100"
        in rota(unequal).err
    )
    unequal.write_text(
        UNEQUAL.replace("k80 = { default = 0.2 }", "k80 = { mynte = 0.2, mynet = 0.5, bert = 3 }")
    )
    said = rota(unequal)
    assert said.code == 0
    note = "note: cluster.speeds.k80: unknown model 'mynte'. Did you mean 'mynet'? Known: default, mynet"
    assert [line for line in said.err.splitlines() if "speeds" in line] == [f"{note}; no job has it"]
