"""Metrics against the parameters of a grid: the numbers behind the lines, and that they are drawn."""

import argparse
import math
from dataclasses import replace
from pathlib import Path

import pytest

from rota.commands import plot
from rota.core.cluster import Cluster
from rota.core.errors import ConfigError
from rota.figures.grid import axis_of, caption, draw_grid, facets, is_geometric, panels, sheets
from rota.figures.grid_runs import GridMetric, GridRun, ParameterGrid, by_grid, trace_grid
from rota.figures.groups import Options, groups
from rota.results.run import read_head

JCT = GridMetric("average JCT", "time")
OPTIONS = Options("rota plot")


def grid_of(*rows: tuple[str, dict, float]) -> ParameterGrid:
    """From (policy, parameters, average JCT)."""
    runs = tuple(GridRun(name, point, "rota simulate", ({JCT.name: value},)) for name, point, value in rows)
    return ParameterGrid("mine", "scheduler", (JCT,), runs)


def drawn(capsys):
    return [Path(line) for line in capsys.readouterr().out.splitlines()]


def run_plot(*arguments):
    parser = argparse.ArgumentParser()
    plot.add_parser(parser.add_subparsers(dest="command"))
    return plot.run(parser.parse_args(["plot", *map(str, arguments)]))


# numbers


def test_a_line_has_the_mean_over_seeds_and_its_interval():
    """Two values, 10 and 14: mean 12, standard error 2, Student's t for one degree of freedom 12.706."""
    seeds = [("srtf", {"load": load, "seed": seed}, 10.0 + 4 * seed) for load in (1, 2) for seed in (0, 1)]
    (panel,) = panels(grid_of(*seeds))
    (line,) = panel.lines
    assert (panel.axis.name, panel.axis.places) == ("load", (1.0, 2.0))
    assert line.mean == (12.0, 12.0)
    assert line.low == pytest.approx([12 - 2 * 12.706] * 2)
    assert line.high == pytest.approx([12 + 2 * 12.706] * 2)


def test_other_parameters_are_averaged_with_each_seed_before_seeds_are():
    """At load 1: with seed 0 (1 + 3) / 2 = 2, with seed 1 (5 + 7) / 2 = 6: mean 4, standard error 2."""
    values = {(1, 8, 0): 1, (1, 16, 0): 3, (1, 8, 1): 5, (1, 16, 1): 7}
    values |= {(2, nodes, seed): 10 * value for (_, nodes, seed), value in values.items()}
    grid = grid_of(
        *(
            ("srtf", {"load": load, "nodes": nodes, "seed": seed}, float(value))
            for (load, nodes, seed), value in values.items()
        )
    )
    by_load, by_nodes = panels(grid)
    assert by_load.lines[0].mean == (4.0, 40.0)
    assert by_load.lines[0].high[0] == pytest.approx(4 + 2 * 12.706)
    assert by_nodes.lines[0].mean == ((1 + 5 + 10 + 50) / 4, (3 + 7 + 30 + 70) / 4)
    assert caption(grid, averaged=True) == (
        "8 points; mean over 2 seeds, with its 95 % interval; averaged over the other parameters"
    )


def test_a_panel_for_each_combination_of_the_other_parameters():
    grid = grid_of(
        *(
            ("srtf", {"load": load, "nodes": nodes}, load * nodes)
            for load in (1.0, 2.0, 3.0)
            for nodes in (16, 8)
        )
    )
    found = facets(grid)
    assert [(panel.title, panel.lines[0].mean) for panel in found] == [
        ("nodes=8", (8.0, 16.0, 24.0)),
        ("nodes=16", (16.0, 32.0, 48.0)),
    ]
    assert facets(grid_of(("srtf", {"load": 1}, 1.0), ("srtf", {"load": 2}, 1.0))) == []


def test_without_seeds_there_is_no_interval():
    grid = grid_of(("srtf", {"load": 1}, 1.0), ("srtf", {"load": 2}, 3.0), ("fifo", {"load": 1}, 2.0))
    (panel,) = panels(grid)
    fifo, srtf = panel.lines
    assert (srtf.mean, fifo.mean[0]) == ((1.0, 3.0), 2.0)
    assert math.isnan(fifo.mean[1])
    assert all(math.isnan(end) for end in (*srtf.low, *srtf.high))
    assert caption(grid, averaged=True) == "2 points; one seed each: no interval; 1 runs are missing"


def test_only_seeds_are_a_category_of_their_own():
    (panel,) = panels(grid_of(*(("srtf", {"seed": seed}, float(seed)) for seed in range(3))))
    assert panel.axis.names == ("3 seeds",)
    assert panel.lines[0].mean == (1.0,)


@pytest.mark.parametrize(
    ("values", "numeric", "log", "places"),
    [
        ([16, 8, 4], True, False, (4, 8, 16)),
        ([1, 0.01, 0.1], True, True, (0.01, 0.1, 1)),
        ([0, 0.01, 1], True, False, (0, 0.01, 1)),
        ([True, False], False, False, (0, 1)),
        (["b", "a"], False, False, (0, 1)),
        ([1, "auto"], False, False, (0, 1)),
        ([[1, 2], [1]], False, False, (0, 1)),
    ],
)
def test_numbers_have_an_axis_and_everything_else_is_a_category(values, numeric, log, places):
    axis = axis_of(grid_of(*(("srtf", {"x": value}, 1.0) for value in values)), "x")
    assert (axis.numeric, axis.log, axis.places) == (numeric, log, places)


@pytest.mark.parametrize(
    ("values", "log"),
    [([1, 2, 4, 8, 16], True), (range(1, 21), False), ([1, 1000], True), ([1, 5], False), ([5], False)],
)
def test_an_axis_is_logarithmic_where_values_span_decades(values, log):
    assert is_geometric(list(values)) is log


# drawing


def test_metrics_are_rows_and_parameters_columns():
    rows = [
        (name, {"load": load, "kind": kind, "seed": seed}, load + seed + len(kind))
        for name in ("srtf", "mine")
        for load in (0.5, 1.0)
        for kind in ("a", "bb")
        for seed in (0, 1)
    ]
    figure = draw_grid(grid_of(*rows), ("rota simulate",))
    assert [axes.get_xlabel() for axes in figure.axes] == ["load", "kind"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["srtf", "mine"]
    assert [sheet.name for sheet in sheets(grid_of(*rows), OPTIONS)] == ["grid", "grid-facets"]


def test_intervals_and_points_are_all_in_the_picture():
    rows = [("srtf", {"x": 10.0**k, "seed": seed}, 100.0 + k + seed) for k in range(3) for seed in (0, 1)]
    figure = draw_grid(grid_of(*rows), ())
    (axes,) = figure.axes
    (panel,) = panels(grid_of(*rows))
    low, high = axes.get_ylim()
    assert low < min(panel.lines[0].low)
    assert high > max(panel.lines[0].high)
    assert axes.get_xscale() == "log"


# of runs on disk


def make_grid(make_run, loads=(1, 2), seeds=(0, 1)):
    for load in loads:
        for seed in seeds:
            for name in ("srtf", "fifo"):
                make_run(
                    f"grid/load={load},seed={seed}/{name}", name,
                    parameters={"workload.load": load, "workload.seed": seed},
                    cluster=Cluster.uniform(1, load + 1),
                )  # fmt: skip


def test_runs_side_by_side_are_one_grid(make_run, tmp_path):
    make_grid(make_run)
    make_run("other/fifo", "fifo")
    heads = [read_head(file.parent) for file in sorted(tmp_path.rglob("metrics.json"))]
    (found,) = by_grid(heads)
    grid = trace_grid(found)
    assert (grid.name, grid.points, len(grid.runs), grid.missing) == ("grid", 4, 8, 0)
    assert (grid.keys, grid.seeds) == (("workload.load",), ("workload.seed",))
    # 1 h, 2 h and 3 h one after the other: the shortest first, as it is written in every folder
    assert grid.runs[0].repetitions[0]["average JCT"] == pytest.approx((1 + 3 + 6) / 3 * 3600)


def test_titles_folders_and_labels_name_the_point(make_run):
    """Loads are on clusters of their own; both seeds are on each of them, and set its runs apart."""
    runs = []
    for load in (1, 2):
        for seed in (0, 1):
            point = {"parameters": {"workload.load": load, "workload.seed": seed, "cost": "restart"}}
            runs.append(make_run(f"{load}/{seed}/srtf", **point, cluster=Cluster.uniform(1, load)))
    found = groups(runs)
    assert [group.title for group in found] == [
        "by hand: 3 jobs on 1 GPUs, load=1",
        "by hand: 3 jobs on 2 GPUs, load=2",
    ]
    assert [group.name for group in found] == ["by-hand-3-jobs-1-gpus-load=1", "by-hand-3-jobs-2-gpus-load=2"]
    assert [each.label for each in found[0].runs] == ["srtf seed=0", "srtf seed=1"]


def test_twins_that_no_parameter_sets_apart_are_told_by_their_folders(make_run):
    point = {"parameters": {"load": 1}}
    (group,) = groups([make_run("a/srtf", **point), make_run("b/srtf", **point)])
    assert [each.label for each in group.runs] == ["srtf (a)", "srtf (b)"]


def test_plot_draws_a_grid_and_each_of_a_few_points(make_run, tmp_path, capsys):
    make_grid(make_run, seeds=(0,))
    names = ("--figure", "grid", "--figure", "jct")
    run_plot(tmp_path / "grid", "--quick", *names, "--out", tmp_path / "plots")
    assert [file.relative_to(tmp_path / "plots").as_posix() for file in drawn(capsys)] == [
        "grid/grid.png",
        "by-hand-3-jobs-2-gpus-load=1/jct.png",
        "by-hand-3-jobs-3-gpus-load=2/jct.png",
    ]


def test_plot_draws_points_of_a_large_grid_only_if_asked_to(make_run, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("rota.figures.grid_runs.MOST_POINTS", 1)
    make_grid(make_run, seeds=(0,))
    run_plot(tmp_path / "grid", "--quick", "--out", tmp_path / "plots")
    said = capsys.readouterr()
    assert said.out.splitlines() == [str(tmp_path / "plots" / "grid" / "grid.png")]
    assert said.err == (
        "note: 4 runs of grids with more than 1 points are not drawn one by one; "
        "name figures (--figure NAME), or the folders of some points\n"
    )
    run_plot(tmp_path / "grid", "--quick", "--figure", "jct", "--out", tmp_path / "plots")
    assert len(drawn(capsys)) == 2


def test_a_figure_of_a_grid_without_one_is_a_mistake(make_run, tmp_path):
    make_run("a/srtf")
    with pytest.raises(ConfigError, match="--figure grid: there are only runs of traces without a grid"):
        run_plot(tmp_path / "a", "--figure", "grid")


def test_parameters_stay_with_a_run(make_run):
    run = make_run("a/srtf", parameters={"cluster.nodes": 8, "workload.trace": "x.csv", "slots": [1, 2.5]})
    assert run.parameters == {"cluster.nodes": 8, "workload.trace": "x.csv", "slots": [1, 2.5]}
    assert read_head(run.folder.path).parameters == run.parameters
    assert replace(run, parameters={}).parameters == make_run("b/srtf").parameters == {}
