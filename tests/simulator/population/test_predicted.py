"""Speeds that nobody measured, from profiles of other batch sizes, networks and devices."""

import math
from pathlib import Path

import pytest

from rota.config.bind import bind
from rota.core.cluster import Cluster, Slot
from rota.core.errors import ConfigError, InputError
from rota.library.populations import Variant, scene_of
from rota.policies.allocation.fifo import FifoAllocation
from rota.policies.evolution.explore import Space
from rota.policies.evolution.pbt import Pbt
from rota.policies.population import PopulationPolicy
from rota.recordings import pollux
from rota.recordings.curve import CurvePoint, Curves, CurveSetting, read_curves, write_curves
from rota.recordings.folder import Provenance
from rota.recordings.profile import Profile, Profiles, read_profiles, write_profiles
from rota.simulator.population_config import PopulationsConfig
from rota.simulator.step_times import PredictedStepTimes, TrialKind, with_step_times

CURVES = Path(__file__).parents[3] / "results" / "recordings" / "curves" / "convnet2-fashion-mnist"
ORIGIN = Provenance("cpu", {}, "", 0, "", "2026-01-02T03:04:05+00:00", "0.1.0")


def profile(model, batch_size, device, iteration_s):
    return Profile(model=model, batch_size=batch_size, device=device, iteration_s=iteration_s)


def profiles(here="cpu"):
    """Seconds grow with the batch; the GPU is 4 times as fast with one network, 9 times with another."""
    rows = [
        profile("convnet2", size, device, size * each_s)
        for device, each_s in ((here, 0.01), ("gpu", 0.0025))
        for size in (16, 64)
    ]
    rows += [profile("other", 16, here, 0.9), profile("other", 16, "gpu", 0.1)]
    return Profiles(tuple(rows), ORIGIN)


def test_a_network_that_was_measured_with_other_batch_sizes_is_as_much_faster():
    predicted = PredictedStepTimes.of(profiles(), {}, "cpu")
    assert predicted.speed(TrialKind("convnet2", 32), "gpu") == pytest.approx(4.0)
    assert predicted.speed(TrialKind("other", 64), "gpu") == pytest.approx(9.0)
    assert predicted.speed(TrialKind("convnet2", 32), "cpu") == 1.0


def test_one_that_was_never_measured_is_between_the_others():
    assert PredictedStepTimes.of(profiles(), {}, "cpu").speed(TrialKind("new", 32), "gpu") == pytest.approx(
        6.0
    )


def test_what_a_slot_says_itself_and_devices_that_were_not_profiled_stay_as_they_are():
    cluster = Cluster.of_slots((Slot(0, 2.0, device="gpu", speeds={"b": 7.0}), Slot(1, 3.0, device="tpu")))
    found = PredictedStepTimes.of(profiles(), {}, "cpu").fill_in(
        cluster, {"a": TrialKind("convnet2", 32), "b": TrialKind("convnet2", 64)}
    )
    assert found.all_slots[0].speeds == pytest.approx({"a": 4.0, "b": 7.0})
    assert found.all_slots[1] == cluster.all_slots[1]


def config(tmp_path, machines=None, **population):
    here = next(iter(read_curves(CURVES).settings.values())).device
    write_profiles(tmp_path / "profiles", profiles(here))
    slots = [{"speed": 1.0}, {"speed": 2.0, "device": "gpu"}]
    table = {
        "population": {"curves": str(CURVES), "profiles": str(tmp_path / "profiles"), **population},
        "clusters": {"two": machines or {"slots": slots}},
        "cluster": "two",
    }
    return bind(PopulationsConfig, table)


def test_a_configuration_names_profiles_and_its_slots_have_speeds_for_each_batch_size(tmp_path):
    scene = config(tmp_path, trials=40).scene(0)
    kinds = {f"convnet2 {hyper['batch_size']}" for hyper in scene.hypers}
    assert len(kinds) > 1
    assert scene.cluster.all_slots[1].speeds == pytest.approx(dict.fromkeys(kinds, 4.0))
    assert scene.cluster.all_slots[0].speeds == {}


def test_a_trial_that_takes_several_slots_has_what_is_predicted_of_each(tmp_path):
    gpus = {"slots": [{"speed": 2.0, "device": "gpu", "node": "a", "count": 4}], "per_trial": 4}
    (slot,) = config(tmp_path, {**gpus, "efficiency": 0.5}, trials=40).scene(0).cluster.all_slots
    assert slot.speed == pytest.approx(4.0)
    assert slot.speed_of("convnet2 32") == pytest.approx(4 * 4.0 * 0.5)


def test_batch_sizes_that_no_trial_begins_with_are_predicted_too(tmp_path):
    """One that was recorded, and one that evolution may lead to."""
    alone = config(tmp_path, trials=2, start={"batch_size": {"values": [16]}})
    assert {hyper["batch_size"] for hyper in alone.scene(0).hypers} == {16}
    slot = alone.scene(0, (48.0,)).cluster.all_slots[1]
    assert [slot.speed_of(f"convnet2 {size}") for size in (16, 128, 48)] == pytest.approx([4.0] * 3)
    assert slot.speed_of("convnet2 7") == 2.0


def test_profiles_without_curves_or_of_other_devices_say_what_is_missing(tmp_path):
    with pytest.raises(ConfigError, match="profiles: they need curves"):
        bind(PopulationsConfig, {"population": {"profiles": str(tmp_path)}})
    with pytest.raises(ConfigError, match="nothing about tpu, on which the curves were recorded"):
        PredictedStepTimes.of(profiles(), {}, "tpu")


def test_recorded_step_times_are_scaled_to_measured_gpus(caplog):
    """ConvNets take the speeds of ResNet-18: 18 steps per second on a V100, 1.81 on a K80, 11.7 on a P100."""
    gpus = read_profiles(CURVES.parents[1] / "profiles" / "gpus")
    cluster = Cluster.of_slots(tuple(Slot(0, 1.0, device=name) for name in ("v100", "k80", "p100", "tpu")))
    kinds = {"convnet2 128": TrialKind("convnet2", 128)}
    found = PredictedStepTimes.of(gpus, {}, "a CPU").fill_in(cluster, kinds)
    speeds = [slot.speed_of("convnet2 128") for slot in found.all_slots]
    assert speeds == pytest.approx([1.0, 1.81 / 18, 11.7 / 18, 1.0])
    assert (
        "were recorded on a CPU, which was not measured there; they count as those of a v100" in caplog.text
    )
    with pytest.raises(InputError, match="model 'mine' has no factor"):
        PredictedStepTimes.of(gpus, {}, "a CPU").fill_in(cluster, {"mine": TrialKind("mine", 1)})


def test_curves_without_seconds_take_the_step_times_of_profiles(tmp_path):
    """An iteration takes 0.01 s per image: 50 steps of 16 images take 8 s, and 25 more take 4 s."""
    points = [CurvePoint(n, steps, math.nan, {"accuracy": 0.5}) for n, steps in enumerate((50, 75))]
    settings = {
        name: CurveSetting.of(name, {"batch_size": size}, device, 0, points)
        for name, size, device in (("a", 16, "cpu"), ("b", 32, "cpu"), ("c", 16, "tpu"))
    }
    found = with_step_times(
        Curves("convnet2", "", ("batch_size",), 2, settings, ORIGIN), profiles(), {}
    ).settings
    assert found["a"].seconds.tolist() == pytest.approx([8.0, 4.0])
    assert found["b"].seconds.tolist() == pytest.approx([16.0, 8.0])
    assert all(math.isnan(seconds) for seconds in found["c"].seconds)  # which was not measured


def test_what_pollux_measured_can_be_simulated(tmp_path):
    (tmp_path / "app").mkdir()
    for name, text in {
        "placements.csv": "placement,local_bsz,step_time,sync_time\n1,10,0.5,0.1\n1,20,1,0.1\n",
        "validation-10.csv": "progress,iteration,metric\n50,49,0.5\n100,99,0.75\n",
    }.items():
        (tmp_path / "app" / name).write_text(text)
    write_profiles(tmp_path / "profiles", pollux.as_profiles(tmp_path / "app", "t4", ORIGIN))
    write_curves(tmp_path / "curves", pollux.as_curves(tmp_path / "app", "t4", ORIGIN))
    table = {"curves": str(tmp_path / "curves"), "metric": "metric", "trials": 2}
    with pytest.raises(InputError, match=r"or give population.profiles in which the model was measured"):
        bind(PopulationsConfig, {"population": table}).population.landscape()
    table["profiles"] = str(tmp_path / "profiles")
    landscape = bind(PopulationsConfig, {"population": table}).population.landscape()
    landscape.begin(0, {"batch_size": 10})
    assert landscape.step_s(landscape.kind({"batch_size": 10}, ())) == pytest.approx(0.5)


def test_a_simulation_knows_the_batch_sizes_that_evolution_may_lead_to(tmp_path):
    explored = Pbt(space={"batch_size": Space(values=(16.0, 48.0))})
    variant = Variant("fifo", PopulationPolicy(FifoAllocation(), explored), {}, "pbt")
    scene = scene_of(config(tmp_path, trials=2), variant, 0)
    assert scene.cluster.all_slots[1].speed_of("convnet2 48") == pytest.approx(4.0)
