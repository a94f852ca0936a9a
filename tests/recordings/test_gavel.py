"""Gavel's throughputs become profiles, and can be had back from them."""

import json

import pytest

from rota.core.errors import InputError, TraceError
from rota.recordings.gavel import (
    Throughputs,
    as_profiles,
    from_profiles,
    job_name,
    model_and_batch,
    read_throughputs,
    read_throughputs_file,
)
from rota.recordings.profile import read_profiles, write_profiles

LM, A3C = ("LM (batch size 5)", 2), ("A3C", 1)


@pytest.fixture
def measured():
    """LM on two GPUs of each kind, alone and beside itself; A3C only on a V100."""
    return Throughputs(
        {"k80": {LM: 3.0}, "v100": {LM: 49.0, A3C: 7.0}, "v100_unconsolidated": {LM: 10.0}},
        {"k80": {(LM, LM): (2.0, 2.0)}, "v100": {}, "v100_unconsolidated": {}},
    )


@pytest.mark.parametrize(
    ("name", "model", "batch_size"),
    [("LM (batch size 5)", "LM", 5), ("A3C", "A3C", 0), ("a (b)", "a (b)", 0)],
)
def test_a_job_type_is_a_model_and_a_batch_size(name, model, batch_size):
    assert model_and_batch(name) == (model, batch_size)
    assert job_name(model, batch_size) == name


def test_profiles_alone_spread_and_in_pairs(measured, origin):
    profiles = as_profiles(measured, origin)
    assert len(profiles.rows) == 5
    assert profiles.devices == ("k80", "v100")
    assert profiles.find("LM", 5, "k80", 2).iteration_s == 1 / 3
    assert profiles.find("LM", 5, "v100", 2, placement="spread").iteration_s == 0.1
    assert profiles.find("A3C", 0, "v100").iteration_s == 1 / 7
    assert profiles.find("LM", 5, "k80", 2, beside="LM", beside_batch_size=5).iteration_s == 0.5


def test_a_pair_listed_once_is_known_from_both_sides(origin):
    job, other = ("LM (batch size 5)", 1), ("A3C", 1)
    once = Throughputs({"v100": {}}, {"v100": {(job, other): (2.0, 4.0)}})
    profiles = as_profiles(once, origin)
    assert profiles.find("LM", 5, "v100", beside="A3C").iteration_s == 0.5
    assert profiles.find("A3C", 0, "v100", beside="LM", beside_batch_size=5).iteration_s == 0.25


def test_they_come_back_exactly_from_the_disk(measured, origin, tmp_path):
    write_profiles(tmp_path, as_profiles(measured, origin))
    assert from_profiles(read_profiles(tmp_path)).alone == measured.alone
    assert read_throughputs(tmp_path).alone == measured.alone
    assert 1.0 / (1.0 / 49.0) != 49.0  # why the published number is kept


def test_recordings_without_the_reference_device(measured, origin, tmp_path):
    only = Throughputs({"k80": measured.alone["k80"]}, {})
    write_profiles(tmp_path, as_profiles(only, origin))
    with pytest.raises(TraceError, match="no measurements for 'v100'; found k80"):
        read_throughputs(tmp_path)
    with pytest.raises(InputError, match="not a complete recording"):
        read_throughputs(tmp_path.parent)


def test_gangs_of_different_sizes_do_not_share_devices(origin):
    odd = Throughputs({"v100": {}}, {"v100": {(LM, A3C): (1.0, 1.0)}})
    with pytest.raises(TraceError, match="expected gangs of one size"):
        as_profiles(odd, origin)


def test_devices_are_kinds_whether_packed_or_spread(measured):
    assert measured.devices == ("k80", "v100")


def test_the_published_throughputs(reference, origin, tmp_path):
    path = reference("clusters", "gavel", "simulation_throughputs.json")
    measured = read_throughputs_file(path)
    write_profiles(tmp_path, as_profiles(measured, origin))
    again = read_throughputs(tmp_path)
    assert again.alone == measured.alone
    raw = json.loads(path.read_text())["p100"]["('LM (batch size 80)', 4)"]["null"]
    assert read_profiles(tmp_path).find("LM", 80, "p100", 4).iteration_s == 1 / raw
