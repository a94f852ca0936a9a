"""The figure of rota and Ray Tune: its numbers, by hand, and its files."""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rota.commands import plot
from rota.figures.files import draw_sides
from rota.figures.page import Pen
from rota.figures.population import MOMENTS
from rota.figures.tune import overheads, rises, said_s, sides_figure
from rota.results.population.metrics import ReportedInterval, SideRun, Sides, write_sides


def run_of(side: str, seed: int, *parts: tuple[float, float, float], slots: int = 1) -> SideRun:
    """From (began_s, ended_s, metric), all in one process."""
    made = [ReportedInterval(began_s, ended_s, 10, metric, 1) for began_s, ended_s, metric in parts]
    return SideRun(side, seed, slots, made, [made[-1].metric], 1.0, 1.0)


OURS = [
    run_of("rota", 0, (50.0, 51.0, 0.5), (51.0, 52.0, 0.9), (52.0, 53.0, 0.8)),
    run_of("rota", 1, (10.0, 11.0, 0.3), (11.5, 13.0, 0.6), (14.0, 15.0, 0.7)),
]
THEIRS = [run_of("Ray Tune, class", 0, (0.0, 2.0, 0.4), (9.0, 10.0, 0.8), slots=2)]
SIDES = Sides("8 trials", "bash scripts/compare-tune.sh", [*OURS, *THEIRS])


def test_overheads_are_those_of_each_repetition_and_their_median():
    ours, theirs = overheads(SIDES)
    assert (ours.side, ours.each_s) == ("rota", [0.0, 0.5])  # 3 − 3 and 5 − 3.5, of three reports each
    assert (ours.median_s, ours.gap_s) == (0.25, None)  # all slots are in use: 0.375 between parts is no less
    assert theirs == ("Ray Tune, class", 8.5, [8.5], None)  # 2 × 10 − 3; between its two parts 7 s
    longer = [*THEIRS[0].parts, *(ReportedInterval(at_s, at_s + 1.0, 10, 0.8, 1) for at_s in (10.0, 11.0))]
    (theirs,) = overheads(replace(SIDES, runs=[replace(THEIRS[0], parts=longer)]))
    assert theirs == ("Ray Tune, class", (2 * 12 - 5) / 4, [4.75], 7 / 3)


def test_a_rise_is_the_best_so_far_since_training_began_over_the_repetitions():
    ours, theirs = rises(SIDES)
    assert (ours.at_s[0], ours.at_s[-1], len(ours.at_s)) == (pytest.approx(1.0), 10.0, MOMENTS)

    def at(rise, seconds):
        place = int(np.searchsorted(rise.at_s, seconds))
        return rise.mean[place], rise.least[place], rise.most[place]

    assert at(ours, 1.5) == pytest.approx((0.4, 0.3, 0.5))
    assert at(ours, 2.5) == pytest.approx((0.6, 0.3, 0.9))
    assert at(ours, 3.5) == pytest.approx((0.75, 0.6, 0.9))  # 0.8 after 0.9 changes nothing
    assert (ours.end_s, ours.final) == (5.0, pytest.approx(0.8))
    assert np.isnan(at(theirs, 1.5)[0])
    assert at(theirs, 2.5) == pytest.approx((0.4, 0.4, 0.4))
    assert (theirs.end_s, theirs.final) == (10.0, 0.8)


def test_a_report_that_measured_nothing_changes_nothing():
    nan = float("nan")
    gap = run_of("rota", 0, (50.0, 51.0, 0.5), (51.0, 52.0, nan), (52.5, 53.0, 0.8))
    none = run_of("none", 0, (0.0, 1.0, nan), (1.5, 2.0, nan))
    ours, theirs = rises(replace(SIDES, runs=[gap, none]))
    assert (ours.mean[0], ours.final, ours.end_s) == (0.5, 0.8, 3.0)
    assert not np.isnan(ours.mean).any()
    assert np.isnan(theirs.mean).all()
    sides_figure(replace(SIDES, runs=[gap, none]))


def test_the_figure_says_what_was_measured():
    figure = sides_figure(SIDES)
    left, right = figure.axes
    assert [text.get_text() for text in left.texts] == ["250 ms", "8.5 s"]
    assert left.get_xscale() == right.get_xscale() == "log"
    assert [text.get_text() for text in right.get_legend().get_texts()] == [
        "rota\n80.0% after 5 s",
        "Ray Tune, class\n80.0% after 10 s",
    ]


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.0039, "3.9 ms"), (0.9, "900 ms"), (1.25, "1.25 s"), (300, "300 s")]
)
def test_short_times_are_said_in_milliseconds(seconds, said):
    assert said_s(seconds) == said


def test_the_same_comparison_gives_the_same_files(tmp_path):
    first, second = (list(draw_sides(SIDES, tmp_path / name, Pen(svg=True))) for name in ("a", "b"))
    assert [file.name for file in first] == ["compare-tune.png", "compare-tune.svg"]
    assert [file.read_bytes() for file in first] == [file.read_bytes() for file in second]


def test_all_figures_include_it_if_it_was_compared(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_sides(Path("results/compare-tune"), SIDES)
    parser = argparse.ArgumentParser()
    plot.add_parser(parser.add_subparsers(dest="command"))
    assert plot.run(parser.parse_args(["plot"])) == 0
    assert capsys.readouterr().out.split() == ["plots/compare-tune.png"]
    fine = Path("plots/compare-tune.png").stat().st_size
    plot.run(parser.parse_args(["plot", "--quick", "--svg"]))
    assert capsys.readouterr().out.split() == ["plots/compare-tune.png", "plots/compare-tune.svg"]
    assert Path("plots/compare-tune.png").stat().st_size < fine
