"""Whose speeds count."""

import pytest

from rota.core.cluster import Cluster, Node
from rota.simulator.jobs import speed_of
from rota.workload.jobs import workload

CLUSTER = (Node(1, kind="v100"), Node(1, kind="k80"))


@pytest.mark.parametrize(
    ("own", "found"),
    [
        ({}, [[1.0, 0.5], [1.0, 0.25]]),
        ({"k80": {"bert": 0.1}}, [[1.0, 0.1], [1.0, 0.25]]),
        ({"k80": {"default": 0.3}}, [[1.0, 0.3], [1.0, 0.3]]),
        ({"k80": {"default": 0.3, "bert": 0.1}}, [[1.0, 0.1], [1.0, 0.3]]),
        ({"v100": {"default": 2.0}}, [[2.0, 0.5], [2.0, 0.25]]),
    ],
)
def test_the_speeds_of_the_cluster_win_over_those_that_came_with_the_trace(own, found):
    measured = {"k80": {"bert": 0.5, "resnet18": 0.25}}
    jobs = workload(
        "two", ["a", "b"], [0, 0], [1, 1], ["bert", "resnet18"], duration_s=[10, 10], speeds=measured
    )
    assert speed_of(Cluster(CLUSTER, speeds=own), jobs).by_model.tolist() == found
