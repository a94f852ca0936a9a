"""Every figure, whatever it shows: it can be drawn, fits on its page, and says what made it."""

import io

import numpy as np
import pytest

from rota.core.cluster import Cluster, Node, NodeChange
from rota.core.errors import ConfigError
from rota.core.timeline import EventKind
from rota.figures.catalogue import FIGURES, figure
from rota.figures.groups import Options, groups
from rota.figures.page import save

OPTIONS = Options("rota plot --figure all")


def texts(drawn):
    return "\n".join(text.get_text() for text in drawn.texts)


def png(drawn):
    stream = io.BytesIO()
    save(drawn, stream, dots_per_in=50)
    return stream.getvalue()


def assert_inside(drawn):
    """No text leaves the page."""
    drawn.draw_without_rendering()
    page = drawn.bbox
    for text in drawn.findobj(match=lambda artist: hasattr(artist, "get_text") and artist.get_text()):
        if text.get_visible() and text.get_window_extent().width > 0 and not text.get_clip_on():
            box = text.get_window_extent()
            assert box.x0 >= page.x0 - 1, text
            assert box.x1 <= page.x1 + 1, text
            assert box.y0 >= page.y0 - 1, text
            assert box.y1 <= page.y1 + 1, text


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_names_its_subject_and_its_commands(three, name):
    for sheet in figure(name)(three, OPTIONS):
        assert "by hand: 3 jobs on 2 GPUs" in texts(sheet.figure)
        assert "rota plot --figure all" in texts(sheet.figure)
        assert "rota simulate config/a.toml" in texts(sheet.figure)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_a_png_and_the_same_each_time(three, name):
    first, again = ([png(sheet.figure) for sheet in figure(name)(three, OPTIONS)] for _ in range(2))
    assert first == again
    assert all(image.startswith(b"\x89PNG") for image in first)


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_leaves_the_page(make_run, name):
    names = ["fifo", "srtf", "muri-l-worst-order", "muri-l-no-blossom", "a-scheduler-of-my-own", "tiresias"]
    (group,) = groups(
        make_run(scheduler, scheduler, command=f"rota simulate {scheduler}.toml " * 9) for scheduler in names
    )
    for sheet in figure(name)(group, OPTIONS):
        assert_inside(sheet.figure)


@pytest.mark.parametrize("name", FIGURES)
def test_one_run_is_enough_for_a_figure(make_run, name):
    (group,) = groups([make_run("alone")])
    for sheet in figure(name)(group, OPTIONS):
        assert_inside(sheet.figure)


def test_gantt_charts_are_one_per_run_and_only_one_if_it_is_to_be_quick(three):
    names = [sheet.name for sheet in figure("gantt")(three, OPTIONS)]
    assert names == ["gantt-fifo", "gantt-srtf", "gantt-mine"]
    quick = [sheet.name for sheet in figure("gantt")(three, OPTIONS._replace(quick=True))]
    assert quick == ["gantt-fifo"]


def test_a_gantt_chart_shows_shared_slots_and_nodes_that_are_not_there(make_run, timeline_of, jobs_of):
    cluster = Cluster((Node(2), Node(2)), changes=(NodeChange(4, 1, True),))
    timeline = timeline_of(
        (0, EventKind.ARRIVED, 0, ()), (0, EventKind.ARRIVED, 1, ()),
        (0, EventKind.STARTED, 0, (0, 1)), (0, EventKind.STARTED, 1, (0,)),
        (4, EventKind.NODE_JOINED, 1, ()), (8, EventKind.FINISHED, 0, ()), (9, EventKind.FINISHED, 1, ()),
    )  # fmt: skip
    jobs = jobs_of((0, 2, 8), (0, 1, 8), models=["bert", "vgg16"])
    (group,) = groups([make_run("shared", workload=jobs, cluster=cluster, timeline=timeline)])
    (sheet,) = figure("gantt")(group, OPTIONS)
    labels = [text.get_text() for text in sheet.figure.axes[0].get_legend().get_texts()]
    assert labels == ["bert", "vgg16", "idle", "node not there"]
    assert_inside(sheet.figure)


def test_a_window_without_anything_in_it_is_an_idle_cluster(three):
    sheets = figure("gantt")(three, OPTIONS._replace(window_s=(1e6, 2e6)))
    labels = [text.get_text() for text in next(sheets).figure.axes[0].get_legend().get_texts()]
    assert labels == ["idle"]


def test_the_same_scheduler_has_the_same_colour_in_every_figure(three):
    (jct,) = figure("jct")(three, OPTIONS)
    (comparison,) = figure("comparison")(three, OPTIONS)
    lines = [line.get_color() for line in jct.figure.axes[0].lines]
    bars = [patch.get_facecolor() for patch in comparison.figure.axes[0].patches]
    from matplotlib.colors import to_rgba

    np.testing.assert_allclose([to_rgba(colour) for colour in lines], bars)


def test_an_unknown_figure_is_an_error_that_guesses():
    with pytest.raises(ConfigError, match=r"unknown figure 'jtc'\. Did you mean 'jct'\?"):
        figure("jtc")
