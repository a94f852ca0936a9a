"""The figure of what was recorded: its numbers, not its pixels."""

import io
import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from rota.core.errors import InputError
from rota.figures.page import save
from rota.figures.recordings import bundle, panels, parts, recordings_figure, said, shares
from rota.figures.trees import tree_blocks
from rota.recordings.curve import CurvePoint, Curves, CurveSetting
from rota.recordings.folder import Provenance
from rota.recordings.library import FoundRecording, Library
from rota.recordings.profile import Profile, Profiles
from rota.recordings.tree import EpochPoint, Tree

ORIGIN = Provenance("cpu", {"torch": "2"}, "", 0, "rota record a.toml", "2026-01-02T03:04:05+00:00", "0.1.0")


def tree(model="ConvNet2", scenario="early", seed=0, without=(), start_s=10.0):
    """Two decisions between two actions, 1 is nothing; the accuracy is 0.75 less 0.25 for each nothing."""
    prefixes = [p for n in range(3) for p in product((0, 1), repeat=n) if p not in without]
    curves = {p: (EpochPoint(1, 20.0, 1, 1.0, 0.75 - 0.25 * sum(p)),) for p in prefixes}
    return Tree(model, "digits", scenario, seed, 40.0, start_s, 2, ("deepen a", "nothing"), curves, ORIGIN)


def grid(*hypers, metric="accuracy", planned=()):
    """A setting per (lr, momentum); it ends at 10 × lr + momentum / 100."""
    settings = {}
    for number, (lr, momentum) in enumerate(hypers):
        end = 10 * lr + momentum / 100
        rows = [CurvePoint(n, 50 * n, 1.0, {metric: end * n / 2}) for n in (1, 2)]
        hyper = {"momentum": momentum, "lr": lr}
        settings[str(number)] = CurveSetting.of(str(number), hyper, "cpu", 0, rows)
    return Curves("net", "digits", ("momentum", "lr"), 2, settings, ORIGIN, planned, metrics=(metric,))


def profile(**fields):
    return Profile(**{"model": "LM", "batch_size": 8, "device": "cpu", "iteration_s": 0.5, **fields})


def test_a_row_per_scenario_and_seed_with_what_is_missing():
    (block,) = tree_blocks([tree(), tree(seed=1, without={(1, 1), (0, 1)}), tree(scenario="late")])
    assert [strip.label for strip in block.strips] == [
        "early (10 s), seed 0",
        "early (10 s), seed 1",
        "late (10 s), seed 0",
    ]
    assert block.strips[0].accuracies.tolist() == [0.75, 0.5, 0.5, 0.25]
    assert block.strips[0].best == 0
    assert block.strips[0].said == "best 75.0% · never 25.0% (rank 4)"
    assert np.isnan(block.strips[1].accuracies).tolist() == [False, True, False, True]
    assert block.strips[1].said == "best 75.0% · 2 missing"
    assert block.never == 3


def test_a_scenario_that_only_another_model_has_is_an_empty_row():
    first, second = tree_blocks([tree(), tree(scenario="late"), tree("ConvNet3")])
    assert [strip.said for strip in second.strips][1] == "not recorded"
    assert np.isnan(second.strips[1].accuracies).all()
    assert len(first.strips) == 2


def test_curves_are_coloured_by_what_matters_most():
    data = bundle(grid((0.01, 0.0), (0.01, 0.9), (0.05, 0.0), (0.05, 0.9)))
    assert data.coloured_by == "lr"
    assert data.values == [0.01, 0.05]
    assert [line.value for line in data.lines] == [0.01, 0.01, 0.05, 0.05]
    assert data.lines[0].steps.tolist() == [50.0, 100.0]
    assert data.title == "net on digits: 4 settings"


def test_missing_settings_are_in_the_title():
    assert bundle(grid((0.01, 0.0), planned=("0", "1"))).title == (
        "net on digits: 1 settings, 1 missing or cut short"
    )


def test_stages_are_shares_and_the_rest_is_told_apart():
    assert shares(profile(load_s=1.0, compute_s=2.0, synchronise_s=1.0)) == {
        "load": 0.25,
        "compute": 0.5,
        "synchronise": 0.25,
    }
    assert shares(profile(synchronise_s=0.125)) == {"synchronise": 0.25, "not told apart": 0.75}


def test_recordings_with_stages_share_a_panel_per_device():
    staged = [profile(load_s=0.1, compute_s=0.3, synchronise_s=0.1, batch_size=size) for size in range(1, 11)]
    other = [profile(model="VGG", load_s=0.5, compute_s=0.0, synchronise_s=0.0)]
    found = panels({"a": Profiles(tuple(staged), ORIGIN), "b": Profiles(tuple(other), ORIGIN)})
    assert [panel.title for panel in found] == ["Profiles on cpu: 2 models, 11 measured"]
    assert [bar.label for bar in found[0].bars] == [
        "LM, batch 1", "LM, batch 4", "LM, batch 7", "LM, batch 10", "VGG, batch 8",
    ]  # fmt: skip


def test_of_many_gang_sizes_some_are_drawn():
    rows = [profile(synchronise_s=0.1, gang=gang) for gang in (1, 2, 4, 8, 16, 32, 64)]
    (panel,) = panels({"a": Profiles(tuple(rows), ORIGIN)})
    assert [bar.label.split(", ")[-1] for bar in panel.bars] == [
        "1 device", "4 devices", "16 devices", "64 devices",
    ]  # fmt: skip


def test_without_stages_devices_are_compared():
    rows = [
        profile(device="v100"),
        profile(device="k80", iteration_s=2.0),
        profile(device="k80", beside="VGG"),
    ]
    (panel,) = panels({"gavel": Profiles(tuple(rows), ORIGIN)})
    assert panel.title == "Profiles gavel: 2 alone, packed, 1 in pairs; drawn: one device, alone"
    assert panel.dots[0].iteration_s == {"v100": 0.5, "k80": 2.0}


@pytest.mark.parametrize(("seconds", "text"), [(1.5, "1.5 s"), (0.01234, "12.3 ms"), (2e-5, "20 µs")])
def test_times_in_the_unit_that_suits_them(seconds, text):
    assert said(seconds) == text


def test_the_page_has_a_part_for_everything():
    rows = (profile(load_s=0.1, compute_s=0.3, synchronise_s=0.1), profile(device="gpu", load_s=0.1))
    nothing = tree("ConvNet3", without={(), (0,), (1,)})
    failed = Tree(
        "ConvNet4",
        "",
        "early",
        0,
        40.0,
        10.0,
        1,
        ("nothing",),
        {(): (EpochPoint(1, 1, 1, 1, math.nan),)},
        ORIGIN,
    )
    library = Library(
        Path("recordings"),
        [FoundRecording("a", tree()), FoundRecording("n", nothing), FoundRecording("f", failed)],
        [
            FoundRecording("b", grid((0.01, 0.0))),
            FoundRecording("c", grid((0.1, 0.5), metric="reward")),
            FoundRecording("d", grid()),
        ],
        [FoundRecording("e", Profiles(rows, ORIGIN)), FoundRecording("g", Profiles((profile(),), ORIGIN))],
        ["half: not complete"],
    )
    assert [len(part.across) for part in parts(library)] == [1, 1, 1, 2, 1, 1, 1, 1]
    figure = recordings_figure(library, "rota recordings describe recordings")
    written = [text.get_text() for text in figure.texts]
    assert "recordings: 3 trees, 3 grids of curves, 2 sets of profiles, 1 damaged or unfinished" in written
    assert any("rota record a.toml" in text for text in written)
    stream = io.BytesIO()
    save(figure, stream, dots_per_in=40)
    assert stream.getvalue().startswith(b"\x89PNG")


def test_nothing_to_draw_is_an_error():
    with pytest.raises(InputError, match="no complete recording to draw; record or import one first"):
        recordings_figure(Library(Path("r"), [], [], []), "")
