"""Profiles: what they say, and that they read back exactly."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.errors import InputError
from rota.recordings.profile import Profile, Profiles, read_profiles, write_profiles


def test_a_measurement_is_found_by_all_that_tells_it_apart(profiles):
    assert profiles.find("LM", 20, "v100").load_s == 0.01
    assert profiles.find("LM", 20, "v100", 4).iteration_s == 0.05
    assert profiles.find("LM", 20, "v100", 4, placement="spread").iteration_s == 0.08
    assert profiles.find("LM", 10, "v100", beside="ResNet", beside_batch_size=16).iteration_s == 0.3
    assert profiles.find("LM", 10, "k80") is None
    assert profiles.models == ("LM", "ResNet")
    assert profiles.devices == ("v100", "k80")


@pytest.mark.parametrize(
    ("batch_size", "gang", "iteration_s"),
    [
        (10, 1, 0.1),
        (15, 1, 0.125),  # half way
        (1, 1, 0.1),  # as the smallest
        (40, 1, 0.3),  # two parts of 20
        (30, 1, 0.25),  # two parts of 15
        (20, 2, 0.05),  # as the next larger gang
        (20, 8, 0.05),  # as the largest
    ],
)
def test_seconds_per_iteration(profiles, batch_size, gang, iteration_s):
    assert profiles.iteration_s("LM", batch_size, "v100", gang) == pytest.approx(iteration_s)


def test_what_was_not_measured_has_no_seconds(profiles):
    assert profiles.iteration_s("LM", 10, "k80") is None
    assert profiles.iteration_s("ResNet", 16, "v100") is None  # only beside another


def test_two_models_on_the_same_devices(profiles):
    assert profiles.together_s(("LM", 10), ("ResNet", 16), "v100") == (0.3, 0.4)
    assert profiles.together_s(("ResNet", 16), ("LM", 10), "v100") == (0.4, 0.3)
    assert profiles.together_s(("LM", 20), ("ResNet", 16), "v100") is None


def test_a_model_with_one_way_to_run_needs_no_batch_size(origin):
    a3c = Profiles((Profile(model="A3C", batch_size=0, device="k80", iteration_s=0.25),), origin)
    assert a3c.iteration_s("A3C", 0, "k80") == 0.25


def test_what_is_written_reads_back_exactly(profiles, tmp_path):
    write_profiles(tmp_path, profiles)
    assert repr(read_profiles(tmp_path)) == repr(profiles)  # NaN is unequal to itself, but not its repr


def test_the_file_is_plain(profiles, tmp_path):
    write_profiles(tmp_path, profiles)
    lines = (tmp_path / "profile.csv").read_text().splitlines()
    assert lines[0] == (
        "model,batch_size,device,gang,placement,beside,beside_batch_size,"
        "load_s,compute_s,synchronise_s,iteration_s,spread_s,iterations,memory_gb"
    )
    assert lines[2] == "LM,20,v100,1,packed,,0,0.01,,,0.15,,0,"
    assert lines[-1] == "ResNet,16,k80,1,packed,,0,,,,0.3333333333333333,,0,1.5"


def test_what_is_extra_may_not_take_the_name_of_a_column(profiles, tmp_path):
    row = replace(profiles.rows[0], extra={"gang": 1.0})
    with pytest.raises(InputError, match="'gang' is a column already"):
        write_profiles(tmp_path, replace(profiles, rows=(row,)))


@given(
    st.lists(st.tuples(st.integers(1, 1000), st.floats(1e-6, 1e3)), min_size=1, max_size=8),
    st.integers(1, 5000),
)
def test_seconds_grow_with_the_batch_wherever_those_measured_do(measured, batch_size):
    times = dict(zip(sorted({b for b, _ in measured}), sorted({s for _, s in measured}), strict=False))
    rows = tuple(Profile(model="m", batch_size=b, device="d", iteration_s=s) for b, s in times.items())
    profiles = Profiles(rows, None)
    found = profiles.iteration_s("m", batch_size, "d")
    assert found >= min(times.values()) * (1 - 1e-12)
    if batch_size <= max(times):
        assert found <= max(times.values()) * (1 + 1e-12)
    else:
        parts = math.ceil(batch_size / max(times))
        assert found <= parts * max(times.values()) * (1 + 1e-12)
