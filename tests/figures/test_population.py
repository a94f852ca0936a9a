"""Figures of populations: the numbers behind them, and that they are drawn."""

import argparse
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.image import imread

from rota.commands import plot
from rota.core.cluster import Cluster, NodeChange, Slot
from rota.core.errors import ConfigError
from rota.core.population.events import (
    Assigned,
    Cloned,
    Event,
    Idled,
    Joined,
    NodeFailed,
    Reported,
    Retired,
    TrialFailed,
    TrialFinished,
)
from rota.figures.catalogue import POPULATIONS, figure
from rota.figures.groups import Options
from rota.figures.page import save
from rota.figures.population import (
    accuracy_curve,
    arranged,
    best_so_far,
    population_groups,
    ratios,
    reports,
    shares,
    slot_names,
    table,
)
from rota.figures.population_gantt import (
    LOWER,
    UNMEASURED,
    UPPER,
    away,
    clone_heights,
    copied,
    draw_population_gantt,
    population_chart,
    retired_at,
    scale_of,
    shading,
    undone,
)
from rota.results.population.metrics import SlotUse
from rota.results.population.repetition import measure
from rota.results.population.run import read_population, write_population
from rota.results.population.summary import PopulationSummary, SlotInfo

CLUSTER = Cluster.of_slots((Slot(0, 2.0), Slot(1, 1.0)), ("a", "b"), changes=(NodeChange(30.0, 1, False),))
OPTIONS = Options("rota plot")


def make_events(scale: float = 1.0, accuracy: float = 0.5) -> list[Event]:
    """Trial 1 goes on as trial 0 at 20, is lost with its node at 30, and done on the other one."""
    s = scale
    return [
        Joined(0.0, 0),
        Joined(0.0, 1),
        Assigned(0.0, 0, 1, 50),
        Assigned(0.0, 1, 1, 50),
        Reported(10.0 * s, 0, 0, 50, 0.0, 10.0 * s, 1.0 * s, accuracy),
        Idled(10.0 * s, 0),
        Reported(20.0 * s, 1, 1, 50, 0.0, 20.0 * s, 0.0, accuracy / 2),
        Idled(20.0 * s, 1),
        Cloned(20.0 * s, 1, 0, {}, ()),
        Assigned(20.0 * s, 0, 1, 50),
        Assigned(20.0 * s, 1, 1, 50),
        NodeFailed(30.0 * s, 1),
        Reported(35.0 * s, 0, 0, 50, 20.0 * s, 35.0 * s, 1.0 * s, accuracy + 0.25),
        TrialFinished(35.0 * s, 0),
        Idled(35.0 * s, 0),
        Assigned(35.0 * s, 0, 1, 50),
        Reported(50.0 * s, 0, 1, 50, 35.0 * s, 50.0 * s, 0.0, accuracy + 0.125),
        TrialFinished(50.0 * s, 1),
        Idled(50.0 * s, 0),
    ]


def write(folder: Path, allocation: str, *, cluster: str = "pair", accuracy: float = 0.5) -> None:
    """Two repetitions, the second twice as slow as the first."""
    timelines = {seed: make_events(seed + 1.0, accuracy) for seed in (0, 1)}
    about = {"target": 0.7, "lower_bound_s": 25.0, "decisions": 5, "wall_s": 0.1}
    done = tuple(measure(events, [{}, {}], CLUSTER, seed=seed, **about) for seed, events in timelines.items())
    slots = (SlotInfo("a", "gpu", 2.0), SlotInfo("b", "cpu", 1.0))
    summary = PopulationSummary(allocation, "pbt", "2 trials × 100 steps", cluster, 0.7, slots, done)
    write_population(
        folder / allocation, summary, timelines, config="", inputs="", command=f"rota simulate {cluster}"
    )


@pytest.fixture
def runs(tmp_path):
    write(tmp_path / "one", "learned")
    write(tmp_path / "one", "fifo")
    write(tmp_path / "two", "fifo", cluster="slots 2,1", accuracy=float("nan"))
    folders = sorted(path.parent for path in tmp_path.rglob("summary.json"))
    return [read_population(folder) for folder in folders]


@pytest.fixture
def groups(runs):
    return population_groups(runs)


def test_runs_of_the_same_trials_on_the_same_slots_are_together_in_the_order_of_the_colours(groups):
    assert [[run.summary.allocation for run in group.runs] for group in groups] == [
        ["fifo", "learned"],
        ["fifo"],
    ]
    assert [group.name for group in groups] == ["pair-2-trials-pbt", "2-slots-2-trials-pbt"]
    assert groups[0].title == "2 trials × 100 steps, pbt, on cluster pair"
    assert groups[1].title == "2 trials × 100 steps, pbt, on 2 slots, 1× to 2×"


def test_groups_that_would_have_the_same_name_are_numbered(tmp_path):
    for folder in ("x", "y"):
        write(tmp_path / folder, "fifo")
    found = population_groups(read_population(tmp_path / folder / "fifo") for folder in ("x", "y"))
    assert [group.name for group in found] == ["pair-2-trials-pbt", "pair-2-trials-pbt-2"]


def test_slots_are_called_by_node_device_and_speed(groups):
    assert slot_names(groups[0].slots) == ["a gpu, 2×", "b cpu, 1×"]


def test_ratios_are_means_with_the_best_and_the_worst_repetition(groups):
    first = ratios(groups[0])[0]
    assert first == ("fifo", 75 / 25, 50 / 25, 100 / 25)


def test_a_row_of_ratios_per_population_and_evolution_and_none_is_left_out(groups):
    pair, unnamed = groups
    again = replace(pair, evolution="none")
    found = table([pair, unnamed, again, pair])
    evolved = "2 trials × 100 steps, pbt"
    assert list(found) == [
        (evolved, "cluster pair"),
        (evolved, "2 slots, 1× to 2×"),
        ("2 trials × 100 steps", "cluster pair"),
        (f"{evolved} (2)", "cluster pair"),
    ]
    assert found[f"{evolved} (2)", "cluster pair"] == ratios(pair)


def test_ratios_are_in_rows_and_columns_unless_that_leaves_gaps():
    full = [(row, column) for column in "xyz" for row in "ab"]
    assert arranged(full) == {(row, column): ("ab".index(row), "xyz".index(column)) for row, column in full}
    gaps = [("a", "x"), ("b", "y"), ("c", "z"), ("d", "x"), ("e", "z")]
    assert list(arranged(gaps).values()) == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0)]


def test_shares_of_a_slot_add_up():
    found = shares(SlotUse(there_s=10.0, computing_s=5.0, communicating_s=1.0, lost_s=1.0))
    assert found == (0.5, 0.1, 0.1, 0.3)
    assert sum(shares(SlotUse())) == 0.0


def test_the_best_accuracy_only_rises():
    at_s, best = best_so_far(reports(make_events()))
    assert (at_s.tolist(), best.tolist()) == ([10.0, 35.0], [0.5, 0.75])


def test_a_curve_of_accuracy_is_the_mean_of_what_each_repetition_had_reached(runs):
    curve = accuracy_curve(next(run for run in runs if run.summary.cluster == "pair"), 100.0)
    at = dict(zip(curve.at_s.round(1).tolist(), curve.mean.tolist(), strict=True))
    assert np.isnan(at[9.8])  # nobody has reported, then only the first
    assert np.isnan(at[15.0])
    assert at[30.1] == 0.5
    assert at[40.1] == (0.75 + 0.5) / 2  # the second is at 0.5 until 70 s
    assert at[100.0] == 0.75
    assert (curve.final, curve.end_s) == (0.75, 100.0)  # the second repetition


def test_a_curve_of_accuracy_ends_where_the_dot_is(groups):
    (sheet,) = figure("accuracy", POPULATIONS)(groups, OPTIONS)
    lines = sheet.figure.axes[0].get_lines()
    step, dot = lines[0].get_xydata(), lines[1].get_xydata()
    assert step[-1].tolist() == dot[0].tolist()
    assert dot[0] == pytest.approx([100.0, 0.75], rel=0.01)


def test_without_accuracies_there_is_no_curve(runs):
    assert accuracy_curve(next(run for run in runs if run.summary.cluster != "pair"), 100.0) is None


def test_a_clone_goes_from_the_donor_to_where_the_trial_is_trained_next():
    assert copied(make_events()) == [(20.0, 0, 35.0, 0)]


def test_lines_of_clones_join_the_edges_that_face_each_other_and_leave_numbers_free():
    assert clone_heights(1, 3) == (1 + LOWER, 3 + UPPER)
    assert clone_heights(3, 1) == (3 + UPPER, 1 + LOWER)
    assert clone_heights(2, 2) == (2 + LOWER, 2 + LOWER)


def test_shades_spread_what_is_nearly_as_good_as_the_best():
    nan = float("nan")
    found = shading([0.0, 0.7, 0.7, nan, 1.0])
    assert (found.least, found.most) == (0.0, 1.0)
    assert 0.7**found.power == pytest.approx(0.5)  # the median has the middle shade
    assert shading([0.0, 0.3, 1.0]).power == 1.0
    assert 0.75 ** shading([0.0, 0.99, 1.0]).power == pytest.approx(0.5)
    assert shading([0.5, 0.5]) == (0.5, 1.5, 1.0)
    assert shading([nan]) is None


def test_charts_of_a_group_share_their_shades(runs):
    charts = [population_chart(run) for run in runs]
    scale = scale_of(charts)
    assert (scale.vmin, scale.vmax) == (0.25, 0.75)
    assert scale_of([chart for chart in charts if np.isnan(chart.blocks[0].metric)]) is None


def test_what_a_slot_was_at_when_its_node_failed_is_lost():
    assert undone(make_events(), [0, 1]) == [(1, 20.0, 30.0)]


def test_what_a_slot_was_at_when_its_trial_failed_is_lost_and_its_list_goes_on():
    failed = [TrialFailed(25.0, 1, 1, "out of memory"), *make_events()[11:]]
    assert undone([*make_events()[:11], *failed], [0, 1]) == [(1, 20.0, 25.0), (1, 25.0, 30.0)]
    assert undone([TrialFailed(5.0, 0, 0, "could not begin")], [0, 1]) == []


def test_nodes_are_away_before_they_join_and_after_they_fail():
    assert away([Joined(0.0, 0), *make_events()[2:]], 2, 50.0) == [(0.0, 50.0, 1)]
    assert away(make_events(), 2, 50.0) == [(30.0, 50.0, 1)]
    assert away([*make_events(), Joined(40.0, 1)], 2, 50.0) == [(30.0, 40.0, 1)]


def test_a_slot_is_in_use_until_the_end_or_until_it_was_given_up():
    busy = [Assigned(0.0, 0, 1, 1), Retired(5.0, 0), Idled(8.0, 0), Retired(9.0, 1)]
    assert retired_at(busy, 3, 50.0) == [8.0, 9.0, 50.0]


def test_blocks_that_were_not_measured_do_not_look_idle(runs):
    chart = population_chart(next(run for run in runs if run.summary.cluster == "pair"))
    scale = scale_of([chart])
    chart.blocks[1] = chart.blocks[1]._replace(metric=float("nan"))
    axes = draw_population_gantt(chart, scale, "", ()).axes[0]
    blocks = next(each for each in axes.collections if len(each.get_facecolors()) == len(chart.blocks))
    assert to_hex(blocks.get_facecolors()[1]) == UNMEASURED
    assert "not measured" in [text.get_text() for text in axes.get_legend().get_texts()]


def test_a_chart_has_every_part_with_what_was_moved_first(runs):
    chart = population_chart(next(run for run in runs if run.summary.cluster == "pair"))
    assert (chart.done_s, chart.end_s) == (50.0, 50.0)
    assert [block[:5] for block in chart.blocks] == [
        (0, 0, 0.0, 1.0, 10.0),
        (1, 1, 0.0, 0.0, 20.0),
        (0, 0, 20.0, 21.0, 35.0),
        (0, 1, 35.0, 35.0, 50.0),
    ]


@pytest.mark.parametrize("name", [name for name in POPULATIONS if name != "trials"])  # test_trials.py
def test_every_figure_is_drawn_and_is_the_same_each_time(groups, name):
    def drawn():
        for sheet in figure(name, POPULATIONS)(groups, OPTIONS):
            stream = io.BytesIO()
            save(sheet.figure, stream, dots_per_in=40)
            yield sheet.name, stream.getvalue()

    first, again = dict(drawn()), dict(drawn())
    assert first
    assert first == again
    for png in first.values():
        assert len(np.unique(imread(io.BytesIO(png)).reshape(-1, 4), axis=0)) > 10


def test_sheets_are_named_after_group_and_allocation(groups):
    names = [sheet.name for name in POPULATIONS for sheet in figure(name, POPULATIONS)(groups, OPTIONS)]
    assert names == [
        "populations-ratio",
        "pair-2-trials-pbt/accuracy",
        "pair-2-trials-pbt/idle",
        "2-slots-2-trials-pbt/idle",
        "pair-2-trials-pbt/gantt-fifo",
        "pair-2-trials-pbt/gantt-learned",
        "2-slots-2-trials-pbt/gantt-fifo",
    ]
    quick = figure("gantt", POPULATIONS)(groups, OPTIONS._replace(quick=True))
    assert [sheet.name for sheet in quick] == [
        "pair-2-trials-pbt/gantt-fifo",
        "2-slots-2-trials-pbt/gantt-fifo",
    ]


# rota plot


def parse(*arguments):
    parser = argparse.ArgumentParser()
    plot.add_parser(parser.add_subparsers(dest="command"))
    return parser.parse_args(["plot", *map(str, arguments)])


def test_plot_draws_populations_beside_other_runs(tmp_path, monkeypatch, make_run, capsys):
    monkeypatch.chdir(tmp_path)
    write(Path("runs/populations"), "fifo")
    make_run("runs/srtf")
    plot.run(parse("runs", "--quick", "--figure", "idle", "--figure", "jct"))
    assert capsys.readouterr().out.splitlines() == [
        "plots/populations/pair-2-trials-pbt/idle.png",
        "plots/by-hand-3-jobs-2-gpus/jct.png",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--figure", "jct"], "--figure jct: there are only populations"),
        (["--normalise-to", "srtf"], "--normalise-to: is for runs of traces"),
        (["--chrome"], "--chrome: is for runs of traces"),
    ],
)
def test_what_would_draw_nothing_is_said(tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    write(Path("runs/populations"), "fifo")
    with pytest.raises(ConfigError, match=said):
        plot.run(parse("runs", "--quick", *words))
    assert not Path("plots").exists()


def test_vectors_are_drawn_beside(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write(Path("runs/populations"), "fifo")
    plot.run(parse("runs", "--svg", "--figure", "idle"))
    folder = "plots/populations/pair-2-trials-pbt"
    assert capsys.readouterr().out.splitlines() == [f"{folder}/idle.png", f"{folder}/idle.svg"]
    assert "<svg" in Path(folder, "idle.svg").read_text()


def test_plot_leaves_out_a_population_that_is_not_complete(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for allocation in ("fifo", "era"):
        write(Path("runs"), allocation)
    Path("runs/era/summary.json").unlink()
    plot.run(parse("runs", "--quick", "--figure", "gantt"))
    said = capsys.readouterr()
    assert said.out.splitlines() == ["plots/populations/pair-2-trials-pbt/gantt-fifo.png"]
    assert said.err == "note: runs/era: not a complete run, left out\n"
