"""A provenance, and small recordings that can be worked out by hand."""

from collections.abc import Callable
from itertools import product

import pytest

from rota.recordings.curve import CurvePoint, Curves, CurveSetting
from rota.recordings.folder import Provenance
from rota.recordings.profile import Profile, Profiles
from rota.recordings.tree import EpochPoint, Tree


@pytest.fixture
def origin() -> Provenance:
    return Provenance(
        device="cpu",
        libraries={"torch": "2.13.0"},
        commit="abc",
        seed=3,
        command="rota record trees.toml",
        recorded_at="2026-01-02T03:04:05+00:00",
        rota="0.1.0",
        note="by hand",
    )


@pytest.fixture
def make_tree(origin) -> Callable[..., Tree]:
    """Gives a function that makes a tree of two decisions between two actions; 1 is to do nothing.

    The first decision is due at 10 s of 40 s, the second 5 s later. Doing nothing costs 0.25 of accuracy.
    """

    def make(**changes) -> Tree:
        curves = {(): (EpochPoint(1, 4.0, 10, 2.0, 0.1), EpochPoint(2, 10.0, 25, 1.5, 0.2))}
        curves |= {(a,): (EpochPoint(3, 15.0, 35, 1.0, 0.3),) for a in (0, 1)}
        ends = product((0, 1), repeat=2)
        curves |= {both: (EpochPoint(4, 40.0, 90, 0.5, 0.75 - 0.25 * sum(both), 0.5),) for both in ends}
        fields = {
            "model": "ConvNet2",
            "data": "digits",
            "scenario": "early",
            "seed": 3,
            "budget_s": 40.0,
            "start_s": 10.0,
            "decisions": 2,
            "actions": ("deepen a", "nothing"),
            "curves": curves,
            "provenance": origin,
            "details": {"lr": 0.01, "blocks": ["a"]},
        }
        return Tree(**{**fields, **changes})

    return make


@pytest.fixture
def curves(origin) -> Curves:
    """Two of three settings, the second one interval short of three."""
    rows = [
        CurvePoint(n, 50 * n, 0.5 * n, {"loss": 1 / n, "accuracy": n / 4, "f1": n / 8}) for n in (1, 2, 3)
    ]
    settings = [
        CurveSetting.of("a", {"lr": 0.1, "batch_size": 64, "rule": "sgd"}, "cpu", 1, rows),
        CurveSetting.of("b", {"lr": 1e-3, "batch_size": 64, "rule": "adam"}, "cpu", 2, rows[:2]),
    ]
    return Curves(
        model="ConvNet",
        data="digits",
        hyper=("lr", "batch_size", "rule"),
        intervals=3,
        settings={setting.name: setting for setting in settings},
        provenance=origin,
        planned=("a", "b", "c"),
        metrics=("loss", "accuracy", "f1"),
    )


@pytest.fixture
def profiles(origin) -> Profiles:
    """LM on two gang sizes and two batch sizes, ResNet beside it."""
    rows = [
        Profile(model="LM", batch_size=10, device="v100", gang=1, iteration_s=0.1),
        Profile(model="LM", batch_size=20, device="v100", gang=1, iteration_s=0.15, load_s=0.01),
        Profile(
            model="LM", batch_size=20, device="v100", gang=4, iteration_s=0.05, spread_s=1e-3, iterations=9
        ),
        Profile(model="LM", batch_size=20, device="v100", gang=4, iteration_s=0.08, placement="spread"),
        Profile(
            model="LM", batch_size=10, device="v100", iteration_s=0.3, beside="ResNet", beside_batch_size=16
        ),
        Profile(
            model="ResNet", batch_size=16, device="v100", iteration_s=0.4, beside="LM", beside_batch_size=10
        ),
        Profile(model="ResNet", batch_size=16, device="k80", iteration_s=1 / 3, extra={"memory_gb": 1.5}),
    ]
    return Profiles(tuple(rows), origin, {"warm": 3})
