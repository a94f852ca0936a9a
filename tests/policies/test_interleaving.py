"""Group periods, against the reference's vectors and against values derived by hand."""

import json
from itertools import permutations

import numpy as np
import pytest

from rota.core.costs import MURI_SCHEDULER_OVERHEAD
from rota.policies.cluster.interleaving import period_s
from rota.workload.profiles import PROFILES, profile


def stages(model, gpus):
    return tuple(ms / 1000 for ms in profile(model, gpus).stages_ms)


def period(members, resources, ordering):
    orders = np.array(list(permutations(range(len(members)))))
    return period_s(np.array(members), orders, resources, ordering == "worst")


def test_two_jobs_meet_half_way():
    # One loads 10 s and computes 1 s, the other loads 1 s and computes 10 s: each hides behind the other.
    # While the first loads, the second computes: max(10, 10) + max(1, 1).
    assert period([(10.0, 1.0, 0.0), (1.0, 10.0, 0.0)], 4, "best") == 11.0


def test_two_equal_jobs_that_only_compute_take_turns():
    assert period([(0.0, 5.0, 0.0), (0.0, 5.0, 0.0)], 4, "best") == 10.0


def test_the_papers_formula_adds_up_the_slowest_stage_of_each_slot():
    # Slots 0, 1, 2: member 0 is at stages 0, 1, 2 and member 1 at 2, 0, 1.
    # max(4, 3) + max(2, 1) + max(1, 5) = 11; the other order gives max(1, 1) + max(5, 4) + max(3, 2) = 9.
    assert period([(4.0, 2.0, 1.0), (1.0, 5.0, 3.0)], 3, "worst") == 11.0
    assert period([(4.0, 2.0, 1.0), (1.0, 5.0, 3.0)], 3, "best") == 9.0


def test_periods_equal_the_vectors(reference):
    vectors = json.loads(reference("clusters", "vectors_group_time.json").read_text())
    assert len(vectors) > 700
    for vector in vectors:
        members = [stages(model, vector["num_gpu"]) for model in vector["models"]]
        for ordering in ("best", "worst"):
            assert period(members, 4, ordering) == pytest.approx(vector[f"period_{ordering}"], rel=1e-9), (
                vector
            )


def test_a_model_alone_has_the_profile_of_its_gang_size():
    assert profile("bert", 3) == PROFILES["bert"][2]
    assert profile("bert", 64) == PROFILES["bert"][5]
    assert MURI_SCHEDULER_OVERHEAD == 1.015
