"""Profiles: what they say, and that they read back exactly."""

from dataclasses import replace

import pytest

from rota.core.errors import InputError
from rota.recordings.profile import (
    Profiles,
    merged,
    nearest_gang,
    read_profiles,
    relative_speed,
    write_profiles,
)


def test_a_measurement_is_found_by_all_that_tells_it_apart(profiles):
    assert profiles.find("LM", 20, "v100").load_s == 0.01
    assert profiles.find("LM", 20, "v100", 4).iteration_s == 0.05
    assert profiles.find("LM", 20, "v100", 4, placement="spread").iteration_s == 0.08
    assert profiles.find("LM", 10, "v100", beside="ResNet", beside_batch_size=16).iteration_s == 0.3
    assert profiles.find("LM", 10, "k80") is None
    assert profiles.models == ("LM", "ResNet")
    assert profiles.devices == ("v100", "k80")


@pytest.mark.parametrize(("gpus", "size"), [(1, 1), (2, 4), (4, 4), (8, 4)])
def test_a_gang_not_measured_takes_the_next_larger_else_the_largest(gpus, size):
    assert nearest_gang(gpus, {4: "four", 1: "one"}) == size


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


def test_a_time_of_nothing_gives_no_speed(profiles):
    one, other = profiles.rows[-1], profiles.rows[0]
    assert relative_speed(one, other) == pytest.approx(0.3)  # 0.1 s and a third of one
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match=r"ResNet took 0.1 s per iteration on v100 and .* expected two"):
            relative_speed(replace(one, iteration_s=wrong), other)


def test_recordings_of_several_devices_become_one(profiles, origin):
    rows = [replace(row, device="a100", iteration_s=row.iteration_s / 2) for row in profiles.rows]
    other = Profiles(tuple(rows), replace(origin, note="of another"))
    both = merged({"one": profiles, "other": other}, origin)
    assert both.devices == ("v100", "k80", "a100")
    assert both.find("LM", 20, "v100", 4).iteration_s == 2 * both.find("LM", 20, "a100", 4).iteration_s
    assert both.details["merged"]["other"]["note"] == "of another"


def test_the_same_measurement_twice_is_an_error_that_names_it(profiles, origin):
    other = Profiles(profiles.rows[3:5], origin)
    message = "^two: has LM at batch size 20 on 4 × v100, as one has; leave one of them out$"
    with pytest.raises(InputError, match=message):
        merged({"one": profiles, "two": other}, origin)
    beside = Profiles(profiles.rows[4:5], origin)
    with pytest.raises(InputError, match="batch size 10 on 1 × v100 beside ResNet, as one has"):
        merged({"one": profiles, "two": beside}, origin)
