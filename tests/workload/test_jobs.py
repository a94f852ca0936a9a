"""Building workloads from plain sequences."""

import numpy as np
import pytest

from rota.core import columns as c
from rota.core.cluster import Cluster, Node
from rota.core.errors import InputError, TraceError
from rota.workload.history import with_history
from rota.workload.jobs import Workload, workload
from rota.workload.profiles import GANG_SIZES, MODELS, profile, startup_s


def build(**changes) -> Workload:
    given = {
        "ids": ["a", "b", "c"],
        "submit_s": [5.0, 0.0, 5.0],
        "gpus": [1, 8, 3],
        "model": ["bert", "dqn", "bert"],
        "duration_s": [10.0, 20.0, 30.0],
    }
    return workload("made", **(given | changes))


def test_jobs_are_sorted_by_submit_time_and_ties_stay_in_order():
    jobs = build()
    assert jobs.ids == ("b", "a", "c")
    assert jobs.submit_s.tolist() == [0.0, 5.0, 5.0]
    assert jobs.duration_s.tolist() == [20.0, 10.0, 30.0]
    assert jobs.models == ("dqn", "bert")  # in order of first appearance among the sorted jobs
    assert jobs.model.tolist() == [0, 1, 1]


def test_iterations_fill_the_duration():
    assert build().solo_s == pytest.approx([20.0, 10.0, 30.0])
    assert build().gpu_s == pytest.approx(20 * 8 + 10 * 1 + 30 * 3)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("gpus", [0.25, *GANG_SIZES, 3, 20, 64])
def test_columns_of_profiles_are_the_profiles_bit_for_bit(model, gpus):
    jobs = workload("made", ["a"], [0.0], [gpus], [model], duration_s=[1.0])
    measured = profile(model, gpus)
    assert jobs.iteration_s.tolist() == [measured.iteration_ms * 1.015 / 1000]
    assert jobs.stages_s[:, 0].tolist() == [ms / 1000 for ms in measured.stages_ms]
    assert jobs.startup_s.tolist() == [startup_s(model, gpus)]


def test_nan_means_not_given():
    jobs = build(iteration_s=[np.nan, 0.5, np.nan], iterations=[7, np.nan, np.nan])
    assert jobs.iteration_s.tolist() == [0.5, 178 * 1.015 / 1000, 190 * 1.015 / 1000]
    assert jobs.iterations.tolist() == [40.0, 7.0, 30 / (190 * 1.015 / 1000)]


def test_a_model_without_a_profile_is_a_name():
    jobs = build(model=["llm", "dqn", "bert"], iterations=[np.nan, 4, 6])
    assert jobs.models == ("dqn", "llm", "bert")
    assert jobs.has_stages.tolist() == [True, False, True]
    assert (jobs.iterations[1], jobs.iteration_s[1]) == (10.0, 1.0)  # 10 s of an unknown number of iterations
    shared = build(model=["llm", "dqn", "bert"], iterations=[4, 4, 6])
    assert (shared.iterations[1], shared.iteration_s[1]) == (4.0, 2.5)  # 10 s in four iterations
    assert jobs.notes[-1].startswith("no stages known for 1 job: schedulers that share GPUs run them alone")


def test_a_job_of_which_only_the_duration_is_known_is_scaled_to_any_length():
    jobs = build(model=["llm", "dqn", "bert"]).scaled(0.001)
    assert jobs.solo_s[1] == 0.01
    assert jobs.iterations[0] == 1.0  # of others at least one iteration is left


def test_every_start_can_be_given_a_cost():
    assert build().with_startup(7).startup_s.tolist() == [7.0, 7.0, 7.0]
    with pytest.raises(InputError, match="startup_s is -1; it must be 0 or more"):
        build().with_startup(-1)


def test_the_head_keeps_only_the_models_it_names():
    jobs = build(speeds={"t4": {"dqn": 0.5, "bert": 0.3}}).head(1)
    assert jobs.ids == ("b",)
    assert jobs.models == ("dqn",)
    assert jobs.speeds == {"t4": {"dqn": 0.5}}
    assert jobs.stages_s.shape == (3, 1)


def test_the_head_of_more_jobs_than_there_are_is_all_of_them():
    assert len(build().head(100)) == 3


def test_the_head_of_no_jobs_is_an_error():
    with pytest.raises(InputError, match="cannot keep the first 0 jobs; ask for at least 1"):
        build().head(0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ids": []}, "made: no jobs in it"),
        ({"ids": ["a", "b", "a"]}, "made: job id 'a' appears more than once"),
        ({"ids": ["a", "b", " c"]}, "' c' is not a name"),
        ({"ids": ["a", "b", ""]}, "'' is not a name"),
        ({"submit_s": [0, -1, 0]}, "job 'b': submit_s must be a finite number of at least 0"),
        ({"submit_s": [0, np.nan, 0]}, "job 'b': submit_s must be a finite number"),
        ({"gpus": [1, 1, 0]}, "job 'c': gpus must be a finite number above 0"),
        ({"duration_s": [1, np.inf, 1]}, "job 'b': duration_s must be a finite number"),
        ({"duration_s": [1, 1, 0]}, "job 'c': iterations must be a finite number above 0"),
        ({"model": ["bert", "bert", "llm"], "duration_s": [1, 1, 0]}, "job 'c': iteration_s must be"),
        ({"submit_s": [0, 1]}, "submit_s has 2 entries for 3 jobs"),
        ({"iterations": [1, 1]}, "iterations has 2 entries for 3 jobs"),
        ({"kinds": [("t4",)]}, "kinds has 1 entries for 3 jobs"),
    ],
)
def test_a_job_that_makes_no_sense_is_named(changes, message):
    with pytest.raises(TraceError, match=message):
        build(**changes)


def test_a_hundred_thousand_ids_are_checked_quickly():
    ids = [str(n) for n in range(100_000)]
    with pytest.raises(TraceError, match="job id '0' appears more than once"):
        workload(
            "many",
            [*ids, "0"],
            np.zeros(100_001),
            np.ones(100_001),
            ["dqn"] * 100_001,
            duration_s=np.ones(100_001),
        )


def test_fractions_take_slots_of_a_gpu():
    jobs = build(gpus=[0.25, 0.3, 2])
    cluster = Cluster(tuple(Node(4, switch=0) for _ in range(8)), slots_per_gpu=4)
    assert jobs.table(cluster)[c.GPUS].tolist() == [2.0, 1.0, 8.0]
    assert jobs.notes[-1].startswith("2 of 3 jobs ask for a fraction of a GPU")


def test_a_job_that_fits_nowhere_is_an_error():
    with pytest.raises(InputError, match="made: job b needs 8 GPUs; the cluster has 4"):
        build().table(Cluster.uniform(1, 4))


def test_a_job_that_fits_on_none_of_its_kinds_is_an_error():
    cluster = Cluster((Node(8, kind="v100"), Node(2, kind="t4")))
    with pytest.raises(InputError, match="job c needs 3 GPUs of kind t4; the cluster has 8 v100, 2 t4"):
        build(kinds=[(), (), ("t4",)]).table(cluster)


def test_a_history_is_scaled_with_its_jobs():
    jobs = with_history(build(), build()).scaled(0.5)
    assert jobs.history.solo_s == pytest.approx([10.0, 5.0, 15.0])
    assert build().scaled(0.5).history is None
