"""`rota simulate` of grids, of traces and of populations: labels, workers, limits, JSON, a figure."""

import json
from dataclasses import fields

import pytest

from rota import cli
from rota.commands import simulate_flow
from rota.results.metrics import Metrics
from rota.results.population.run import read_population
from rota.results.run import read_run
from rota.simulator.jobs_config import SimulateConfig
from rota.simulator.population_config import PopulationsConfig

TRACE = """
schedulers = ["fifo", "srtf"]
[workload]
trace = "three.csv"
[cluster]
nodes = 1
[grid]
"cluster.gpus_per_node" = [2, 4]
cost = ["restart"]
"workload.seed" = [0, 1]
"""
POPULATION = """
allocations = ["fifo", "era"]
seeds = 2
slots = [2.0, 1.0]
[population]
trials = 3
steps = 100
[noise]
sigma = 0.1
[grid]
"costs.dispatch_s" = [0.5, 1.0]
"""


@pytest.fixture
def grid(here, trace):
    """Two sizes of a cluster, one cost, two seeds."""
    (here / "grid.toml").write_text(TRACE)
    return "grid.toml"


@pytest.fixture
def population(here):
    (here / "p.toml").write_text(POPULATION)
    return "p.toml"


def without(rows, *keys):
    """Rows without what the machine's pace decides."""
    return [{key: value for key, value in row.items() if key not in keys} for row in rows]


# labels, in the table, in JSON and on disk


def test_the_table_names_the_parameters_that_vary(rota, grid):
    lines = rota(grid).out.splitlines()[1:]
    points = [f"gpus_per_node={gpus} seed={seed}" for gpus in (2, 4) for seed in (0, 1)]
    assert [" ".join(line.split()[:3]) for line in lines] == [
        f"{point} {name}" for point in points for name in ("fifo", "srtf")
    ]


def test_json_has_the_point_and_each_parameter_of_it(rota, grid):
    row = json.loads(rota(grid, "--json").out)[-1]
    assert list(row)[:5] == ["point", "cluster.gpus_per_node", "cost", "workload.seed", "scheduler"]
    assert row["point"] == "gpus_per_node=4,cost=restart,seed=1"
    assert (row["cluster.gpus_per_node"], row["cost"], row["workload.seed"]) == (4, "restart", 1)


def test_a_run_keeps_the_parameters_of_its_point(rota, grid, here):
    rota(grid, "--out", "runs")
    found = read_run(here / "runs" / "gpus_per_node=2,cost=restart,seed=1" / "srtf")
    assert found.parameters == {"cluster.gpus_per_node": 2, "cost": "restart", "workload.seed": 1}
    again = rota(found.folder.config, "--out", "again", "--json")
    assert read_run(here / "again" / "srtf").parameters == {}
    assert "point" not in json.loads(again.out)[0]


def test_a_population_keeps_the_parameters_of_its_point(rota, population, here):
    rows = json.loads(rota(population, "--out", "runs", "--json").out)
    assert [(row["point"], row["costs.dispatch_s"], row["allocation"]) for row in rows] == [
        ("dispatch_s=0.5", 0.5, "fifo"), ("dispatch_s=0.5", 0.5, "era"),
        ("dispatch_s=1.0", 1.0, "fifo"), ("dispatch_s=1.0", 1.0, "era"),
    ]  # fmt: skip
    found = read_population(here / "runs" / "dispatch_s=1.0" / "era")
    assert found.parameters == {"costs.dispatch_s": 1.0}
    table = rota(population, "--out", "runs").out.splitlines()
    assert [line.split()[:2] for line in table[1:3]] == [
        ["dispatch_s=0.5", "fifo"],
        ["dispatch_s=0.5", "era"],
    ]


def test_json_of_a_population_has_what_the_table_has(rota, population):
    """Two slots, of speeds 2 and 1, and three trials: the bound is 300 steps ÷ 3 = 100 s."""
    header, *table = rota(population).out.splitlines()
    lines = [line.split() for line in table]
    rows = json.loads(rota(population, "--json").out)
    words = "allocation makespan [s] lower bound [s] ratio idle clones decisions/s"
    assert " ".join(header.split()) == words
    for line, row in zip(lines, rows, strict=True):
        assert line[2:7] == [
            f"{row['makespan_s']:,.2f}", f"{row['lower_bound_s']:,.2f}", f"{row['ratio']:.3f}",
            f"{row['idle']:.1%}", f"{row['clones']:,.1f}",
        ]  # fmt: skip
        assert row["lower_bound_s"] == 100.0
        assert row["decisions_per_s"] > 0.0


def test_no_parameter_is_called_like_a_metric():
    """Keys of a table within one have dots; those of the file itself must not be taken."""
    of_traces = {"point", "scheduler", "wall_s", *(field.name for field in fields(Metrics))}
    assert not of_traces & {field.name for field in fields(SimulateConfig)}
    from rota.commands.simulate_population import JSON_KEYS, MEASURED

    of_populations = {"point", "allocation", *JSON_KEYS, *MEASURED}
    assert not of_populations & {field.name for field in fields(PopulationsConfig)}


# workers


def test_results_do_not_depend_on_the_number_of_workers(rota, grid, here):
    one, two = (json.loads(rota(grid, "--out", f"runs{n}", "--workers", n, "--json").out) for n in (1, 2))
    assert without(one, "wall_s") == without(two, "wall_s")
    for run in sorted((here / "runs1").glob("*/*")):
        other = here / "runs2" / run.relative_to(here / "runs1")
        for name in ("timeline.npz", "jobs.csv"):
            assert (run / name).read_bytes() == (other / name).read_bytes()
        assert read_run(run).parameters == read_run(other).parameters


def test_populations_do_not_depend_on_the_number_of_workers(rota, population, here):
    words = ("--out", "runs1", "--json"), ("--out", "runs2", "--workers", 2, "--json")
    one, two = (json.loads(rota(population, *each).out) for each in words)
    assert without(one, "decisions_per_s") == without(two, "decisions_per_s")
    files = sorted(file.relative_to(here / "runs1") for file in (here / "runs1").rglob("timeline.jsonl"))
    assert len(files) == 2 * 2 * 2
    for file in files:
        assert (here / "runs1" / file).read_bytes() == (here / "runs2" / file).read_bytes()


def test_workers_make_only_what_is_missing(rota, grid, here):
    rota(grid, "--out", "runs")
    point = here / "runs" / "gpus_per_node=2,cost=restart,seed=0"
    before = (point / "srtf" / "metrics.json").stat().st_mtime_ns
    (point / "fifo" / "metrics.json").unlink()
    said = rota(grid, "--out", "runs", "--workers", 2, "--replace")
    assert said.code == 0
    assert said.err.count("reused, its inputs are the same") == 7
    assert (point / "srtf" / "metrics.json").stat().st_mtime_ns == before
    assert (point / "fifo" / "metrics.json").exists()


def test_many_runs_that_are_reused_are_one_line(rota, grid, monkeypatch):
    monkeypatch.setattr(simulate_flow, "LISTED", 7)
    rota(grid, "--out", "runs")
    assert rota(grid, "--out", "runs").err == "runs: 8 runs are reused, their inputs are the same\n"


def test_an_error_in_a_process_is_told_as_in_this_one(rota, grid, here):
    (here / "grid.toml").write_text(TRACE + '[[cluster.changes]]\nat_s = 50\nnode = 0\nwhat = "leave"\n')
    said = rota(grid, "--workers", 2)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("rota: error: at 50 s nothing runs")


@pytest.mark.parametrize("flag", ["--workers", "--max-simulations"])
@pytest.mark.parametrize("value", ["0", "-1", "many"])
def test_a_number_that_is_none_is_refused(rota, grid, flag, value, capsys):
    refused(capsys, flag, rota, grid, flag, value)


def refused(capsys, flag, call, *words):
    with pytest.raises(SystemExit) as caught:
        call(*words)
    assert caught.value.code == 2
    assert flag in capsys.readouterr().err


@pytest.mark.parametrize("command", ["learn", "evaluate"])
@pytest.mark.parametrize("value", ["0", "many", "rays"])
def test_other_commands_refuse_it_too(capsys, command, value):
    refused(capsys, "--workers", cli.main, [command, "--workers", value])


# limits


def test_a_million_points_are_refused_before_they_are_made(rota, here, trace):
    axes = "".join(
        f"{key} = {list(range(1, 101))}\n" for key in ('"cluster.nodes"', '"workload.seed"', "a.b")
    )
    (here / "grid.toml").write_text(TRACE.partition("[grid]")[0] + f"[grid]\n{axes}")
    code, out, err = rota("grid.toml", "--out", "runs")
    assert (code, out) == (2, "")
    assert err == (
        "rota: error: grid: 1,000,000 points are at least as many simulations; the limit is 10,000: "
        "shorten its lists (--set grid.KEY=[…]), leave policies or seeds out, "
        "or add --max-simulations 1000000\n"
    )
    assert not (here / "runs").exists()


def test_the_limit_counts_schedulers_and_can_be_raised(rota, grid, here):
    said = rota(grid, "--max-simulations", 7, "--out", "runs")
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("rota: error: 8 simulations of 4 points; the limit is 7: ")
    assert not (here / "runs").exists()
    assert rota(grid, "--max-simulations", 8).code == 0
    assert rota(grid, "--max-simulations", 7, "--set", "grid.workload.seed=[0]").code == 0


def test_the_limit_counts_seeds_of_populations(rota, population):
    said = rota(population, "--max-simulations", 7)
    assert said.code == 2
    assert said.err.startswith("rota: error: 8 simulations of 2 points; the limit is 7: ")


def test_many_simulations_are_announced(rota, grid, population, monkeypatch):
    assert rota(grid).err == ""
    monkeypatch.setattr(simulate_flow, "ANNOUNCED", 7)
    assert rota(grid).err == "8 simulations of 4 points\n"
    assert rota(population).err == "8 simulations of 2 points\n"


# a figure


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_a_figure_of_metrics_against_parameters(rota, grid, here, suffix):
    said = rota(grid, "--figure", f"plots/grid.{suffix}", "--json")
    assert (said.code, said.err) == (0, f"note: drawn into plots/grid.{suffix}\n")
    head = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
    assert (here / "plots" / f"grid.{suffix}").read_bytes().startswith(head)


def test_a_figure_of_a_population_names_its_parameters(rota, population, here):
    assert rota(population, "--figure", "p.svg").code == 0
    assert b"dispatch_s" in (here / "p.svg").read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("grid.toml", "--figure", "grid.txt"), "grid.txt: a figure is written as .png, .svg, .pdf"),
        (
            ("--trace", "three.csv", "--figure", "x.png"),
            "command line: --figure: is of a grid; give a [grid]",
        ),
        (("--population", 2, "--figure", "x.png"), "command line: --figure: is of a grid; give a [grid]"),
    ],
)
def test_a_figure_that_cannot_be_drawn_is_refused_before_anything_runs(rota, grid, here, words, message):
    code, out, err = rota(*words, "--out", "runs")
    assert (code, out) == (2, "")
    assert err.startswith(f"rota: error: {message}")
    assert not (here / "runs").exists()
