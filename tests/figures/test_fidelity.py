"""The sheet of a comparison: the numbers behind it, and that it is drawn."""

import io

import pytest
from matplotlib.image import imread

from rota.core.cluster import Cluster, Slot
from rota.core.population.events import Joined, Reported, TrialFinished
from rota.figures.fidelity import charts, completion_times, done, extent, fidelity_figure, item_colours
from rota.figures.page import MODELS, save, save_svg
from rota.results.fidelity.compare import RunPair, compare, paired
from rota.results.population.repetition import measure
from rota.results.population.run import write_population
from rota.results.population.summary import PopulationSummary, SlotInfo

CLUSTER = Cluster.of_slots((Slot(0), Slot(1)), ("a", "b"))


def write_trials(folder, scale, swapped=False):
    """Two trials, of two parts each; the second parts change places if so."""
    events = [Joined(0.0, 0), Joined(0.0, 1)]
    for trial in (0, 1):
        later = 1 - trial if swapped else trial
        for slot, began_s, ended_s in ((trial, 0.0, 10.0 + trial), (later, 11.0, 20.0 + trial)):
            events.append(
                Reported(ended_s * scale, slot, trial, 50, began_s * scale, ended_s * scale, 0.0, 0.5)
            )
        events.append(TrialFinished(events[-1].at_s, trial))
    events.sort(key=lambda event: event.at_s)
    about = {"seed": 0, "target": 1.0, "lower_bound_s": 1.0, "decisions": 4, "wall_s": 0.1}
    slots = (SlotInfo("a", "cpu", 1.0), SlotInfo("b", "cpu", 1.0))
    repetition = measure(events, ({}, {}), CLUSTER, **about)
    summary = PopulationSummary("finish", "none", "2 trials × 100 steps", "pair", None, slots, (repetition,))
    said = {"config": "", "inputs": "digest", "command": f"rota run {folder.name}.toml"}
    write_population(folder, summary, {0: events}, **said)
    return folder


@pytest.fixture
def trials(tmp_path):
    (pair,), _ = paired(write_trials(tmp_path / "real", 1.0), write_trials(tmp_path / "sim", 0.5, True))
    return pair


@pytest.fixture
def jobs(make_run):
    """Shortest first, 1 + 2 + 3 h, against longest first."""
    return RunPair("srtf", None, make_run("real"), make_run("sim", order=(2, 1, 0)))


def test_bars_are_the_parts_of_trials(trials):
    real, simulated = charts(trials)
    assert real.slots == ["slot 0 (a)", "slot 1 (b)"]
    assert {tuple(bar) for bar in real.bars} == {
        (0.0, 10.0, "0", 0, 1.0),
        (0.0, 11.0, "1", 1, 2.0),
        (11.0, 20.0, "0", 0, 1.0),
        (11.0, 21.0, "1", 1, 2.0),
    }
    assert (5.5, 10.0, "0", 1, 2.0) in simulated.bars


def test_bars_are_the_blocks_of_jobs(jobs):
    real, simulated = charts(jobs)
    assert real.slots == ["node 0", "node 0"]
    assert [(bar.item, bar.began_s, bar.ended_s, bar.top, bar.bottom) for bar in real.bars] == [
        ("a", 0.0, 3600.0, 0.0, 1.0),
        ("b", 3600.0, 10800.0, 0.0, 1.0),
        ("c", 10800.0, 21600.0, 0.0, 1.0),
    ]
    assert [bar.item for bar in simulated.bars] == ["c", "b", "a"]


def test_shares_that_are_done_end_with_all(trials, jobs):
    real, simulated = trials.timelines()
    assert done(real) == ([0.0, 20.0, 21.0], [0.0, 0.5, 1.0])
    assert done(simulated) == ([0.0, 10.0, 10.5], [0.0, 0.5, 1.0])
    assert done(jobs.timelines()[0]) == ([0.0, 3600.0, 10800.0, 21600.0], [0.0, 1 / 3, 2 / 3, 1.0])


def test_completion_times_are_those_of_the_same_job(jobs):
    real, simulated = completion_times(*jobs.timelines())
    assert real == [3600.0, 10800.0, 21600.0]
    assert simulated == [21600.0, 18000.0, 10800.0]


def test_axes_have_room_for_all_and_are_logarithmic_where_times_are_far_apart():
    near = extent([11.0, 20.0])
    assert (near.low_s, near.high_s, near.log) == (pytest.approx(10.0), pytest.approx(22.0), False)
    far = extent([1.0, 1000.0])
    assert far.log
    assert far.low_s < 1.0
    assert far.high_s > 1000.0
    assert extent([5.0, 5.0]).high_s > 5.0
    assert extent([0.0, 0.0]) == (0.0, 1.0, False)


def test_colours_are_the_same_in_both_timelines_and_repeat(trials):
    assert item_colours(trials.timelines()[0]) == {"0": MODELS[0], "1": MODELS[1]}


@pytest.mark.parametrize("kind", ["trials", "jobs"])
def test_the_sheet_is_drawn_alike_each_time(kind, request):
    pair = request.getfixturevalue(kind)
    found = compare(*pair.timelines())
    files = []
    for _ in range(2):
        png, svg = io.BytesIO(), io.BytesIO()
        figure = fidelity_figure(pair, found, "rota compare real sim")
        save(figure, png)
        save_svg(figure, svg)
        files.append((png.getvalue(), svg.getvalue()))
    assert files[0] == files[1]
    pixels = imread(io.BytesIO(files[0][0]))
    assert pixels.shape[1] == 11 * 160
    assert pixels[..., :3].std() > 0.05
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    titles = [axes.get_title(loc="right") for axes in figure.axes]
    assert titles.count("dashed: a slot gets another interval than simulated") == 1
    assert {"0", "1"} <= set(texts) if kind == "trials" else {"a", "b", "c"} <= set(texts)


def test_the_sheet_says_how_far_off_it_is(trials):
    figure = fidelity_figure(trials, compare(*trials.timelines()), "rota compare real sim")
    head = " ".join(text.get_text() for text in figure.texts)
    assert "How faithful is the simulation? finish, seed 0" in head
    assert "makespan 21 seconds real, 10.5 simulated (-50.0 %)" in head
    assert "rota run real.toml · rota run sim.toml" in head


def test_nothing_is_marked_where_nothing_is_elsewhere(tmp_path):
    (pair,), _ = paired(write_trials(tmp_path / "real", 1.0), write_trials(tmp_path / "sim", 0.5))
    figure = fidelity_figure(pair, compare(*pair.timelines()), "rota compare real sim")
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert not any("a slot gets" in text for text in texts)
