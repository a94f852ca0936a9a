"""Seconds per step of what was never measured."""

from functools import cache
from math import log
from pathlib import Path

import numpy as np
import pytest

from rota.core.errors import InputError
from rota.policies.allocation.predict import Predictor, StepTimeQuery
from rota.recordings.profile import read_profiles
from rota.training.models.registry import MODELS, build

SHIPPED = Path(__file__).parents[3] / "results" / "recordings" / "profiles" / "profiles"


def exact(asked, own=1.0):
    """Seconds that follow the formula: twice as slow on b, root of parameters, batch size to 0.75."""
    return own * (2.0 if asked.device == "b" else 1.0) * asked.parameters**0.5 * asked.batch_size**0.75


def measured(*asked, own=None):
    return [(each, exact(each, (own or {}).get(each.network, 1.0))) for each in asked]


SMALL, LARGE = StepTimeQuery("small", 100, 8, "a"), StepTimeQuery("large", 10_000, 8, "a")


def test_what_follows_the_formula_is_predicted_exactly():
    known = [SMALL, SMALL._replace(batch_size=32), LARGE, LARGE._replace(device="b")]
    found = Predictor.fit(measured(*known))
    assert found.batch == pytest.approx(0.75)
    assert found.parameters == pytest.approx(0.5)
    for asked in (
        LARGE._replace(batch_size=128),
        SMALL._replace(device="b"),
        StepTimeQuery("other", 2500, 4, "b"),
    ):
        assert found.step_s(asked) == pytest.approx(exact(asked))


def test_a_network_that_is_slower_than_its_parameters_say_is_so_with_every_batch_size():
    known = [SMALL, SMALL._replace(batch_size=16), LARGE, StepTimeQuery("odd", 1000, 8, "a")]
    found = Predictor.fit(measured(*known, own={"odd": 5.0}))
    odd = StepTimeQuery("odd", 1000, 64, "a")
    assert found.step_s(odd) == pytest.approx(exact(odd, 5.0))


def test_without_two_batch_sizes_of_a_network_seconds_grow_in_proportion():
    found = Predictor.fit(measured(SMALL, LARGE))
    assert found.step_s(SMALL._replace(batch_size=80)) == pytest.approx(10 * exact(SMALL))


def test_a_device_that_was_never_measured_is_like_the_others_on_average():
    """One takes 1, one 2: in between, √2 times."""
    found = Predictor.fit(measured(*[each._replace(device=d) for each in (SMALL, LARGE) for d in "ab"]))
    assert found.step_s(SMALL._replace(device="c")) == pytest.approx(2**0.5 * exact(SMALL))


def test_nothing_measured_and_nonsense_are_refused():
    with pytest.raises(InputError, match="cannot be predicted without measurements"):
        Predictor.fit([])
    with pytest.raises(InputError, match="seconds above 0"):
        Predictor.fit([(SMALL, 0.0)])


@cache
def shipped():
    """The profiles of image classifiers, alone and in gangs of two, which count as two devices."""
    names = [name for name, model in MODELS.items() if model.task == "classification"]
    counts = {
        name: sum(weight.numel() for weight in build(name, (3, 32, 32), 10).parameters()) for name in names
    }
    rows = [row for row in read_profiles(SHIPPED).rows if row.model in counts and not row.beside]
    return [
        (
            StepTimeQuery(row.model, counts[row.model], row.batch_size, f"{row.device} × {row.gang}"),
            row.iteration_s,
        )
        for row in rows
    ]


def typical_error(pairs):
    """The median factor between what was predicted and what was measured."""
    return float(np.exp(np.median([abs(log(predicted / seconds)) for predicted, seconds in pairs])))


def test_of_a_measured_network_other_batch_sizes_are_predicted_within_a_third():
    rows = shipped()
    pairs = []
    for at, (asked, seconds) in enumerate(rows):
        found = Predictor.fit(rows[:at] + rows[at + 1 :])
        pairs.append((found.step_s(asked), seconds))
    assert len(pairs) == 96
    assert typical_error(pairs) < 1.33


def test_of_a_network_that_was_never_measured_the_prediction_is_rough_but_better_than_the_median():
    """Parameters say little: a convolution uses each of its own a thousand times, a linear layer once."""
    rows = shipped()
    ours, plain = [], []
    for name in {asked.network for asked, _ in rows}:
        others = [row for row in rows if row[0].network != name]
        found, middle = Predictor.fit(others), float(np.median([seconds for _, seconds in others]))
        ours += [(found.step_s(asked), seconds) for asked, seconds in rows if asked.network == name]
        plain += [(middle, seconds) for asked, seconds in rows if asked.network == name]
    assert typical_error(ours) < 0.75 * typical_error(plain)
