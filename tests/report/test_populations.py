"""Populations: the table, the parts that slots did, the bars, by numbers that were worked out by hand."""

import numpy as np
import pytest

from rota.figures.population import population_groups
from rota.report import blocks
from rota.report.populations import (
    CLONED,
    DONE,
    GOES_ON,
    STOPPED,
    comparison,
    glance,
    labels,
    parts_of,
    population_section,
    shade,
    slot_use,
    trial_bars,
)
from rota.report.populations import trial_parts_of as trained
from rota.report.timelines import unpacked
from rota.report.verdict import is_real
from rota.results.population.metrics import SlotUse
from rota.results.population.summary import SlotInfo

SLOTS = (SlotInfo("a", "gpu", 2.0), SlotInfo("b", "cpu", 1.0))


def test_what_became_of_a_trial_is_told_with_its_last_part(make_events):
    parts = [(report.trial, then, donor, listed) for report, then, donor, listed in trained(make_events())]
    # trial 0: the first of a list of two, then done; trial 1 went on as 0 and was stopped, which counts
    assert parts == [(0, GOES_ON, 0, 2), (1, STOPPED, 0, 1), (0, DONE, 0, 2)]


def test_a_clone_names_its_donor(make_events):
    events = [event for event in make_events() if type(event).__name__ != "Stopped"]
    assert [(then, donor) for _, then, donor, _ in trained(events)][1] == (CLONED, 0)


def test_bars_are_parts_with_what_was_moved_first(make_events):
    found = trial_bars(make_events(), SLOTS, 40.0)
    columns = unpacked(found)
    seconds = [round(at * found["tick_s"]) for at in columns["instants"]]
    assert seconds == [0, 1, 10, 20, 30, 40]
    bars = [
        (seconds[start], seconds[start + length], seconds[trains], trial)
        for start, length, trains, trial in zip(
            *(columns[name].tolist() for name in ("start", "length", "trains", "item")), strict=True
        )
    ]
    assert bars == [(0, 10, 1, 0), (10, 40, 10, 0), (0, 20, 0, 1)]
    assert columns["counts"].tolist() == [2, 1]
    assert columns["metric"].tolist() == [0.5, 0.75, 0.25]


def test_nodes_that_failed_and_what_was_lost_with_them_are_told(make_events):
    found = trial_bars(make_events(), SLOTS, 40.0)
    columns = unpacked(found)
    when = {
        name: (columns["instants"][columns[name]] * found["tick_s"]).round().tolist()
        for name in ("away_start", "away_end", "lost_start", "lost_end")
    }
    assert when == {"away_start": [30], "away_end": [40], "lost_start": [20], "lost_end": [30]}
    assert (columns["away_node"].tolist(), columns["lost_row"].tolist()) == ([1], [1])


def test_the_worst_is_pale_the_best_strong_and_what_was_not_measured_neither():
    assert shade([0.1, 0.9, np.nan]).tolist() == [1, blocks.SHADES - 1, 0]
    assert shade([np.nan]).tolist() == [0]
    assert len(blocks.shades()) == blocks.SHADES


def test_trials_have_colours_of_their_own_where_nothing_was_measured(make_events):
    columns = unpacked(trial_bars(make_events(), SLOTS, 40.0, measured=False))
    assert columns["paint"].tolist() == [0, 0, 1]


def test_the_table_has_the_ratio_to_the_bound(make_population):
    runs = [make_population("fifo", 1.5), make_population("learned")]
    fifo, learned = comparison(labels(runs), runs)["rows"]
    # 40 s or 60 s by 20 s. Slot a computes 39 of 40 s; b computes 20 s of the 30 s it is there, and loses 10
    assert [cell[1] for cell in learned] == [
        "learned",
        "40.00",
        "20.00",
        "2.000",
        "0.0%",
        "1.0",
        "8",
        "75.0%",
    ]
    assert [cell[1] for cell in fifo[:4]] == ["fifo", "60.00", "20.00", "3.000"]


def test_who_is_done_first_has_won(make_population):
    runs = [make_population("fifo", 1.5), make_population("learned")]
    found = glance(labels(runs), runs)
    assert found.winner == "learned"
    assert found.says == "is done after 40.0 s, before all others; its best trial reaches 75.0%"
    assert found.others == "fifo takes 50% longer"


def test_shares_of_time_add_up():
    uses = [SlotUse(40.0, 30.0, 2.0, 0.0), SlotUse(20.0, 5.0, 0.0, 1.0)]
    assert parts_of(uses) == pytest.approx((35 / 60, 2 / 60, 1 / 60, 22 / 60))


def test_lost_time_is_only_spoken_of_where_there_is_any(make_population):
    block = slot_use(["fifo"], [make_population("fifo")])
    assert [name for name, _ in block["parts"]] == ["computing", "dispatch and transfer", "lost", "idle"]
    # of 70 s in which slots were there: 39 + 20 computing, 1 moving, 10 lost
    assert block["rows"][0][1] == pytest.approx([59 / 70, 1 / 70, 10 / 70, 0.0], abs=1e-4)


def test_a_section_has_a_timeline_per_seed(make_population):
    group = population_groups([make_population("fifo", seeds=2), make_population("eta", 1.1, seeds=2)])[0]
    section = population_section(0, group)
    timeline = next(block for block in section.blocks if block["type"] == "timeline")
    assert [run["name"] for run in timeline["runs"]] == [
        "fifo, seed 0", "eta, seed 0", "fifo, seed 1", "eta, seed 1",
    ]  # fmt: skip
    assert section.title == "2 trials × 100 steps, pbt, on cluster two"
    assert section.about.startswith("Simulated: 2 allocations of the same trials to slots")
    accuracy = next(block for block in section.blocks if block["type"] == "chart")
    assert accuracy["lines"][0]["y"] == [0.5, 0.75]  # at 10 s and 40 s
    assert accuracy["lines"][0]["x"][-1] == 40


def test_a_real_run_is_called_one(make_population):
    group = population_groups([make_population("fifo", command="rota run local.toml --out x")])[0]
    section = population_section(0, group)
    assert section.title == "2 trials × 100 steps, pbt, real run on two"
    assert section.kind == "real runs"


@pytest.mark.parametrize(
    ("command", "real"),
    [
        ("rota run a.toml", True),
        ("rota -v run a.toml", True),
        ("rota simulate run", False),
        ("rota", False),
        ("", False),
    ],
)
def test_the_command_says_whether_a_run_was_real(command, real):
    assert is_real(command) is real
