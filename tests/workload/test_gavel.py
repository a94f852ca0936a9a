"""Gavel's traces and throughputs; the numbers are worked out from the sample in conftest."""

import json

import pytest

from rota.core.errors import TraceError
from rota.recordings.folder import provenance
from rota.recordings.gavel import Throughputs, as_profiles, read_throughputs
from rota.recordings.profile import write_profiles
from rota.workload import gavel

RESNET, LM = "ResNet-18 (batch size 16)", "LM (batch size 5)"


def test_iterations_are_steps_at_the_speed_measured_on_the_reference_device(sample):
    jobs = gavel.read(sample("gavel"), seed=2)
    assert jobs.ids == ("0", "1")
    assert jobs.models == (RESNET, LM)
    assert jobs.submit_s.tolist() == [0.0, 30.5]
    assert jobs.gpus.tolist() == [1.0, 4.0]
    assert jobs.iterations.tolist() == [1000.0, 600.0]
    assert jobs.iteration_s.tolist() == [1 / 20, 1 / 24]  # LM on 4 GPUs was not measured: as on 2, the most
    assert jobs.duration_s.tolist() == [1000 * (1 / 20), 600 * (1 / 24)]
    assert jobs.startup_s.tolist() == [10.0, 10.0]


def test_stages_have_the_proportions_of_the_stand_in(sample):
    jobs = gavel.read(sample("gavel"))
    assert jobs.stages_s[:, 0] == pytest.approx(
        [0.05 * 711 / 779, 0.05 * 110 / 779, 0.0]
    )  # resnet18 on 1 GPU
    assert jobs.stages_s[:, 1] == pytest.approx([0.6 / 433 / 24, 413 / 433 / 24, 20 / 433 / 24])  # gpt2 on 4


def test_speeds_are_relative_to_the_reference_device(sample):
    speeds = gavel.read(sample("gavel")).speeds
    assert speeds["k80"] == {RESNET: 0.25, LM: 0.25}  # LM did not run on one K80: 6 / 24 on two
    assert speeds["p100"] == {RESNET: 1.5}
    assert speeds["v100"] == {RESNET: 1.0, LM: 1.0}


def test_what_was_assumed_is_noted(sample):
    assert gavel.read(sample("gavel"), seed=2).notes == (
        "stages not measured for 2 jobs: proportions borrowed from the nearest model that has them",
        "1 job of a gang size not measured for the type: as the nearest measured",
        "no priority in the trace for 2 jobs: drawn, half of them opportunistic, with seed 2",
    )


def test_throughputs_alone_and_in_pairs(sample):
    measured = read_throughputs(sample("gavel").with_name("simulation_throughputs.json"))
    assert measured.alone["v100"] == {(RESNET, 1): 20.0, (LM, 1): 50.0, (LM, 2): 24.0}
    assert measured.alone["k80"] == {(RESNET, 1): 5.0, (LM, 2): 6.0}  # 0 steps/s: it did not run
    assert measured.pairs["k80"] == {((RESNET, 1), (LM, 1)): (2.0, 3.0)}
    assert measured.pairs["v100"] == {}  # one of the two did not run


@pytest.mark.parametrize(("gpus", "gang"), [(1, 1), (2, 4), (4, 4), (5, 8), (8, 8), (16, 8)])
def test_a_gang_size_not_measured_is_the_next_larger_or_the_largest(gpus, gang):
    measured = Throughputs({"v100": {("LM", 1): 1.0, ("LM", 4): 4.0, ("LM", 8): 8.0}}, {})
    assert measured.measured_gang("LM", gpus) == gang
    assert measured.steps_per_s("LM", gpus) == float(gang)


def test_a_speed_without_one_gpu_is_the_mean_over_the_gang_sizes_measured_on_both():
    on_v100 = {("LM", 1): 1.0, ("LM", 2): 2.0, ("LM", 4): 4.0}
    measured = Throughputs({"v100": on_v100, "k80": {("LM", 2): 1.0, ("LM", 4): 1.0, ("LM", 8): 1.0}}, {})
    assert measured.speed("LM", "k80") == 0.375
    assert measured.speed("LM", "p100") is None


def test_the_only_json_file_beside_the_trace_will_do(sample):
    path = sample("gavel")
    path.with_name("simulation_throughputs.json").rename(path.with_name("measured.json"))
    assert len(gavel.read(path)) == 2


@pytest.mark.parametrize(("others", "found"), [((), "none"), (("a.json", "b.json"), "a.json, b.json")])
def test_missing_throughputs_are_an_error_that_says_where_to_put_them(sample, others, found):
    path = sample("gavel")
    path.with_name("simulation_throughputs.json").unlink()
    for name in others:
        path.with_name(name).write_text("{}")
    message = rf"put simulation_throughputs.json in its folder \(JSON files there: {found}\)"
    with pytest.raises(TraceError, match=message):
        gavel.read(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "LM (batch",
            "GNMT (batch",
            r"line 2: job_type: 'GNMT .*' is not among the job types measured on v100",
        ),
        ("30.500000", "-1", "line 2: arrival_s: '-1' is not a number of 0 or more"),
        ("\t600\t", "\t0\t", "line 2: total_steps: '0' is not a number above 0"),
        ("\t4\n", "\t4.5\n", "line 2: gang_size: '4.5' is not a whole number"),
        ("\t--steps", "", "line 2: 6 fields; expected 7: job_type,command"),
    ],
)
def test_a_mistake_in_the_trace_is_reported_with_its_line(sample, rows, old, new, message):
    with pytest.raises(TraceError, match=message):
        gavel.read(sample("gavel", rows["gavel"].replace(old, new, 1)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("not json", "is not JSON"),
        ("[1]", "the file: .* is not a JSON object"),
        ('{"k80": {}}', "no measurements for 'v100'; found k80"),
        ('{"v100": 3}', "v100: '3' is not a JSON object"),
        ('{"v100": {"__import__(\'os\')": {}}}', "is not a job type and gang size like"),
        ('{"v100": {"(\'LM\',)": {}}}', "is not a job type and gang size like"),
        ('{"v100": {"(\'LM\', 1)": {"null": "fast"}}}', "'fast' is not a throughput in steps/s, 0 or more"),
        ('{"v100": {"(\'LM\', 1)": {"null": NaN}}}', "is not JSON: NaN is not a JSON number"),
        ('{"v100": {"(\'LM\', 1)": {"(\'LM\', 1)": [1]}}}', "is not two throughputs"),
        ('{"v100": {"(\'LM\', 1)": {"(\'LM\', 1)": [1, -1]}}}', "'-1' is not a throughput"),
    ],
)
def test_a_mistake_in_the_throughputs_is_reported(tmp_path, content, message):
    path = tmp_path / "simulation_throughputs.json"
    path.write_text(content)
    with pytest.raises(TraceError, match=message):
        read_throughputs(path)


def test_a_job_type_that_nothing_stands_in_for_only_computes(sample, rows):
    path = sample("gavel", rows["gavel"].replace("LM (batch size 5)", "GNMT"))
    beside = path.with_name("simulation_throughputs.json")
    measured = json.loads(beside.read_text())
    measured["v100"]["('GNMT', 4)"] = {"null": 2.0}
    beside.write_text(json.dumps(measured))
    assert gavel.read(path).stages_s[:, 1].tolist() == [0.0, 0.5, 0.0]


def test_profiles_imported_from_the_throughputs_give_the_same_jobs(sample):
    path = sample("gavel")
    published = gavel.read(path)
    json_file = path.with_name("simulation_throughputs.json")
    origin = provenance(device="", seed=None, command="")
    write_profiles(path.with_name("profiles"), as_profiles(read_throughputs(json_file), origin))
    json_file.unlink()
    imported = gavel.read(path)
    for column in ("iteration_s", "iterations", "duration_s", "stages_s"):
        assert getattr(imported, column).tolist() == getattr(published, column).tolist()
    assert imported.speeds == published.speeds
    assert imported.notes == published.notes
