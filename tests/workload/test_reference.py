"""The readers on real, published traces; skipped where they are not at hand."""

import csv
import math
import time

import numpy as np
import pytest

from rota.core.cluster import Cluster
from rota.recordings.gavel import read_throughputs
from rota.recordings.pollux import read_application
from rota.workload import plain
from rota.workload.formats import guess, read
from rota.workload.public import read_cluster

TRACES = {
    "muri": ("clusters", "muri", "trace1.csv"),
    "philly": ("clusters", "philly", "philly.csv"),
    "azure": ("clusters", "azure", "cluster02.csv"),
    "gavel": ("clusters", "gavel", "103959.trace"),
    "pollux": ("recordings", "pollux", "workloads", "workload-6.csv"),
}


@pytest.mark.parametrize("name", TRACES)
def test_the_format_is_guessed_right(reference, name):
    assert guess(reference(*TRACES[name])) == name


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_survives_being_written_as_our_csv(reference, tmp_path, name):
    jobs = read(reference(*TRACES[name]), name)
    plain.write(tmp_path / "jobs.csv", jobs)
    again = plain.read(tmp_path / "jobs.csv")
    assert again.ids == jobs.ids
    assert again.speeds == jobs.speeds
    cluster = Cluster.uniform(32, 8)
    assert again.table(cluster).tobytes() == jobs.table(cluster).tobytes()


def test_muri_has_the_jobs_and_gpu_time_it_is_known_for(reference):
    jobs = read(reference(*TRACES["muri"]), "muri")
    sizes, counts = np.unique(jobs.gpus, return_counts=True)
    assert dict(zip(sizes.tolist(), counts.tolist(), strict=True)) == {
        1: 536,
        2: 5,
        4: 423,
        8: 465,
        16: 40,
        32: 25,
    }
    assert jobs.submit_s[-1] == 10_817_570.0
    assert float(np.sum(jobs.duration_s * jobs.gpus)) == pytest.approx(1.380e9, rel=1e-3)


def test_philly_is_read_whole_and_fast(reference):
    path = reference(*TRACES["philly"])
    read(path, "philly")
    began = time.process_time()  # whatever else the machine does meanwhile
    jobs = read(path, "philly")
    assert time.process_time() - began < 2.0  # 0.2 s as a rule
    assert len(jobs) == 82_247
    assert jobs.submit_s[-1] == 9_408_690.0  # 2017-09-04 10:30:41 to 2017-12-22 08:02:11
    assert float(np.sum(jobs.duration_s * jobs.gpus)) == 3_521_082_502.0


def test_philly_agrees_with_its_own_sum_of_gpu_time(reference):
    with reference(*TRACES["philly"]).open(newline="") as file:
        assert math.fsum(float(row["gpu_time"]) for row in csv.DictReader(file)) == 3_521_082_502.0


def test_azure_begins_at_zero(reference):
    jobs = read(reference(*TRACES["azure"]), "azure")
    assert len(jobs) == 5_778
    assert jobs.submit_s[[0, -1]].tolist() == [0.0, 5_166_386.0 - 5_010.0]


def test_gavel_has_the_speeds_it_is_known_for(reference):
    jobs = read(reference(*TRACES["gavel"]), "gavel")
    assert len(jobs) == 986
    assert set(jobs.speeds) == {"k80", "p100", "v100"}
    assert 1 / jobs.speeds["k80"]["CycleGAN"] == pytest.approx(8.8, abs=0.05)
    assert 1 / jobs.speeds["k80"]["A3C"] == pytest.approx(2.1, abs=0.05)
    assert jobs.speeds["v100"]["A3C"] == 1.0
    row = jobs.ids.index("1")  # Recommendation (batch size 8192), only measured on one GPU: 2.84 steps/s
    assert 1 / jobs.iteration_s[row] == pytest.approx(2.84, abs=0.005)
    assert jobs.notes[1].startswith("125 jobs of a gang size not measured")


def test_gavel_measured_jobs_alone_and_in_pairs(reference):
    measured = read_throughputs(reference("clusters", "gavel", "simulation_throughputs.json"))
    assert measured.steps_per_s("A3C", 1, "k80") == pytest.approx(3.44, abs=0.005)
    assert measured.measured_gang("ResNet-50 (batch size 128)", 4, "k80") == 1  # did not run on more
    pair = measured.pairs["v100"][("ResNet-18 (batch size 16)", 1), ("ResNet-18 (batch size 256)", 1)]
    assert pair == pytest.approx((24.45464779058787, 10.300256501360458))


def test_pollux_jobs_follow_from_the_measurements(reference):
    jobs = read(reference(*TRACES["pollux"]), "pollux")
    assert len(jobs) == 160
    first = jobs.ids.index("cifar10-0")  # 6 GPUs, batch 2048
    assert jobs.iterations[first] == 3179.0
    row = next(
        row for row, model in enumerate(jobs.model) if jobs.models[model] == "ncf"
    )  # 1 GPU, batch 32768
    assert jobs.iteration_s[row] == 0.02131553226047092
    assert jobs.stages_s[2, row] == 0.00034586986700693766
    assert np.all(jobs.stages_s >= 0)
    assert jobs.stages_s.sum(axis=0) == pytest.approx(jobs.iteration_s)


def test_pollux_measured_every_packed_gang_up_to_sixteen(reference):
    measured = read_application(reference("recordings", "pollux", "cifar10"))
    assert list(measured.curves) == [*range(1, 17), 24, 32, 48, 64]


def test_the_muri_cluster(reference):
    assert read_cluster(reference("clusters", "muri", "n8g8.csv")) == Cluster.uniform(8, 8)
