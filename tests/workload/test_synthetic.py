"""Made-up workloads: the load asked for, the shapes asked for, and the same again from the same seed."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota
from rota.core.errors import ConfigError
from rota.workload import plain
from rota.workload.describe import describe
from rota.workload.profiles import MODELS
from rota.workload.synthetic import SyntheticConfig, generate

configs = st.builds(
    SyntheticConfig,
    jobs=st.integers(2, 300),
    gpus=st.sampled_from([1, 2, 8, 64, 512]),
    load=st.floats(0.01, 10),
    arrivals=st.sampled_from(["poisson", "bursty"]),
    burstiness=st.floats(1, 100),
    sigma=st.floats(0.01, 4),
    median_s=st.floats(1, 1e6),
    seed=st.integers(0, 2**40),
)


@given(config=configs)
def test_every_configuration_gives_the_load_and_the_ranges_asked_for(config):
    jobs = generate(config)
    assert len(jobs) == config.jobs
    assert describe(jobs, config.gpus).load == pytest.approx(config.load, rel=1e-9)
    assert jobs.submit_s[0] == 0.0
    assert np.all((jobs.gpus >= 1) & (jobs.gpus <= min(32, config.gpus)))
    near = jobs.iteration_s  # work is whole iterations, so a duration may be off by half of one
    assert np.all(jobs.duration_s >= config.shortest_s - near)
    assert np.all(jobs.duration_s <= config.longest_s + near)
    assert np.all(jobs.iterations == np.rint(jobs.iterations))


def test_the_same_seed_gives_the_same_workload_and_another_does_not():
    one, same, other = (generate(SyntheticConfig(jobs=50, seed=seed)) for seed in (1, 1, 2))
    assert plain.text(one) == plain.text(same)
    assert plain.text(one) != plain.text(other)


@pytest.mark.parametrize("arrivals", ["poisson", "bursty"])
def test_a_fresh_process_with_other_hashes_gives_the_same_workload(arrivals):
    code = (
        "from rota.workload import plain; from rota.workload.synthetic import *; "
        f"print(plain.text(generate(SyntheticConfig(jobs=40, arrivals={arrivals!r}, seed=5))), end='')"
    )
    source = str(Path(rota.__file__).parents[1])
    runs = {
        subprocess.check_output(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": source},
            text=True,
        )
        for seed in ("1", "2")
    }
    assert runs == {plain.text(generate(SyntheticConfig(jobs=40, arrivals=arrivals, seed=5)))}


def test_durations_have_the_median_asked_for_and_a_heavy_tail():
    spread = describe(generate(SyntheticConfig(jobs=20_000))).duration_s
    assert spread["p50"] == pytest.approx(1800, rel=0.1)
    assert spread["mean"] > 2 * spread["p50"]
    assert spread["p99"] > 20 * spread["p50"]


def test_gang_sizes_follow_their_weights():
    config = SyntheticConfig(jobs=20_000, gang_sizes=(1, 4, 32), gang_weights=(3, 1, 0))
    sizes, counts = np.unique(generate(config).gpus, return_counts=True)
    assert sizes.tolist() == [1.0, 4.0]
    assert counts[0] / counts[1] == pytest.approx(3, rel=0.1)


def test_no_gang_is_larger_than_the_cluster():
    assert generate(SyntheticConfig(gpus=4)).gpus.max() == 4.0


def test_models_follow_their_mix():
    jobs = generate(SyntheticConfig(jobs=200, models={"bert": 1.0, "dqn": 0.0}))
    assert jobs.models == ("bert",)
    assert set(generate(SyntheticConfig()).models) == set(MODELS)


def test_bursty_arrivals_vary_more_than_independent_ones():
    def variation(arrivals):
        gaps = np.diff(generate(SyntheticConfig(jobs=20_000, arrivals=arrivals)).submit_s)
        return float(gaps.std() / gaps.mean())

    assert variation("poisson") == pytest.approx(1.0, rel=0.05)
    assert variation("bursty") > 1.4


def test_a_change_of_load_only_stretches_time():
    low, high = (generate(SyntheticConfig(jobs=50, load=load)) for load in (0.4, 0.8))
    assert np.array_equal(low.duration_s, high.duration_s)
    assert low.submit_s == pytest.approx(2 * high.submit_s)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"jobs": 1}, "jobs is 1; it must be at least 2"),
        ({"gpus": 0}, "gpus is 0; it must be at least 1"),
        ({"load": 0.0}, "load is 0; it must be above 0"),
        ({"load": float("nan")}, "load is nan; it must be above 0"),
        ({"load": float("inf")}, "load is inf; it must be above 0 and finite"),
        ({"arrivals": "burst"}, r"unknown arrivals 'burst'. Did you mean 'bursty'\? Known: poisson, bursty"),
        ({"burstiness": 0.5}, "burstiness is 0.5; it must be at least 1"),
        ({"burst_jobs": 0.0}, "burst_jobs is 0; it must be at least 1"),
        ({"median_s": -1.0}, "median_s is -1; it must be above 0"),
        ({"sigma": 0.0}, "sigma is 0; it must be above 0"),
        ({"shortest_s": 0.0}, "shortest_s is 0; it must be above 0"),
        ({"longest_s": 10.0}, "longest_s is 10; it must be above 60"),
        ({"seed": -1}, "seed is -1; it must be at least 0"),
        ({"gang_sizes": (1, 2)}, "2 gang_sizes but 6 gang_weights; give one weight per size"),
        ({"gang_sizes": (64,), "gang_weights": (1.0,)}, "gang_sizes has 64; sizes are from 1 to 32"),
        ({"gang_sizes": (1,), "gang_weights": (-1.0,)}, r"gang_weights is \[-1.0\]; weights are 0 or more"),
        (
            {"gang_sizes": (8,), "gang_weights": (1.0,), "gpus": 4},
            "gang_sizes has none .* that fits on 4 GPUs",
        ),
        ({"models": {"brt": 1.0}}, "unknown model 'brt'. Did you mean 'bert'"),
        ({"models": {}}, r"models is \[\]; weights are 0 or more, and not all 0"),
    ],
)
def test_a_setting_out_of_range_says_what_is_in_range(changes, message):
    with pytest.raises(ConfigError, match=message):
        SyntheticConfig(**changes)


def test_the_shipped_workload_is_what_its_readme_says():
    folder = Path(__file__).parents[2] / "config" / "workload"
    shipped = plain.read(folder / "shipped.csv")
    assert shipped.notes == ()
    assert (folder / "shipped.csv").stat().st_size < 200_000
    made = generate(SyntheticConfig(jobs=1000, gpus=64, load=0.85, arrivals="bursty", seed=0))
    assert shipped.ids == made.ids
    assert shipped.models == made.models
    for name in (
        "submit_s",
        "gpus",
        "duration_s",
        "iterations",
        "iteration_s",
        "stages_s",
        "priority",
        "model",
    ):
        np.testing.assert_allclose(getattr(shipped, name), getattr(made, name), rtol=1e-9, err_msg=name)
    assert describe(shipped, 64).load == pytest.approx(0.85)
