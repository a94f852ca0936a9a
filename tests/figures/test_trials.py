"""The figure of every trial, and growth in the Gantt chart."""

import pytest

import rota
from rota.core.population.events import Grown, Reported
from rota.figures.groups import Options
from rota.figures.population import population_groups
from rota.figures.population_gantt import GrowthMark, grown, population_chart
from rota.figures.trials import sheets, trial_curves
from rota.report.populations import GREW, population_section, trial_parts_of

EVENTS = [
    Reported(2.0, 0, 7, 10, 0.0, 2.0, 0.0, 0.5),
    Grown(3.0, 7, "deepen 0"),
    Reported(6.0, 1, 7, 10, 3.5, 6.0, 0.0, 0.4),
    Grown(6.0, 7, "deepen 1"),  # is never trained
]


def test_a_curve_has_reports_and_changes():
    (curve,) = trial_curves(EVENTS)
    assert (curve.trial, curve.at_s, curve.began_s, curve.metric) == (7, [2.0, 6.0], [0.0, 3.5], [0.5, 0.4])
    assert curve.grown == [(3.0, 0.5, "deepen 0"), (6.0, 0.4, "deepen 1")]


def test_growth_is_marked_where_the_network_is_trained_next():
    assert grown(EVENTS) == [GrowthMark(3.5, 1)]


def test_the_report_says_after_which_interval_a_network_grew():
    assert [part[1:3] for part in trial_parts_of(EVENTS)] == [(GREW, 1), (GREW, 2)]


@pytest.fixture(scope="module")
def groups():
    run = rota.simulate_population(
        None, [1.0, 2.0], trees="results/recordings/growth/convnet3-digits", allocation="promote",
        growth="at-start", trials=5, deadline_s=0.6,
    )  # fmt: skip
    return population_groups([run.record])


def test_a_population_that_grows_is_drawn_trial_by_trial(groups):
    assert [sheet.name.split("/")[1] for sheet in sheets(groups, Options("rota plot"))] == ["trials-promote"]
    assert len(population_chart(groups[0].runs[0]).grown) > 0


def test_the_page_shows_every_trial_and_what_was_reached_at_the_deadline(groups):
    section = population_section(0, groups[0])
    assert "has the best trial at the deadline of 0.600 s" in section.glance.says
    assert [block["title"] for block in section.blocks if block["type"] == "chart"] == [
        "How good the best trial is", "Every trial under promote",
    ]  # fmt: skip
