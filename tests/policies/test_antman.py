"""AntMan's slow-down of opportunistic jobs."""

import json

import pytest

from rota.policies.cluster.antman import host_iterations
from rota.workload.profiles import profile


def test_a_guest_that_fits_the_gaps_takes_one_turn_per_started_stage():
    # Loading 3 s needs two of the host's 2 s gaps (compute + synchronise); one second of the second gap
    # is left and serves min(compute, host's synchronise, rest) = 1 s of the guest's computing. The remaining
    # second of computing starts one turn in the host's 5 s of loading and synchronising.
    assert host_iterations(3.0, 2.0, 0.0, 4.0, 1.0, 1.0) == 3.0


def test_a_host_that_leaves_no_gap_costs_no_turns():
    assert host_iterations(1.0, 1.0, 0.0, 0.0, 0.0, 0.0) == 0.0


def test_slow_downs_equal_the_vectors(reference):
    vectors = json.loads(reference("clusters", "vectors_antman.json").read_text())
    assert len(vectors) == 256
    for vector in vectors:
        guest, host = (profile(vector[role], vector["num_gpu"]) for role in ("opportunistic", "guaranteed"))
        seconds = [ms / 1000 for ms in (*guest.stages_ms, *host.stages_ms)]
        pace_s = max(vector["it"], host_iterations(*seconds) * vector["it_guaranteed"])
        assert pace_s == pytest.approx(vector["it_cur"], rel=1e-12), vector
