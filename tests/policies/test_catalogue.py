"""Kinds of groups: pace, efficiency and whether sharing is worth it, against the reference's vectors."""

import json

import pytest

from rota.policies.cluster.interleaving import CONTENTION, Catalogue


@pytest.mark.parametrize("ordering", ["best", "worst"])
def test_groups_equal_the_vectors(reference, columns_of, ordering):
    vectors = json.loads(reference("clusters", "vectors_group_time.json").read_text())
    for vector in vectors:
        catalogue = Catalogue(4, ordering, CONTENTION)
        table = columns_of(vector["models"], vector["num_gpu"])
        number = catalogue.single(table, 0)
        for row in range(1, len(vector["models"])):
            number = catalogue.pair(number, catalogue.single(table, row))
        kind = catalogue.kinds[number]
        assert kind.pace_s == pytest.approx(vector[f"T_{ordering}"], rel=1e-9)
        assert kind.efficiency == pytest.approx(vector[f"gamma_{ordering}"], rel=1e-9)
        assert kind.slower_than_in_turn == vector["autopack_splits"]


def test_a_job_alone_runs_at_its_own_pace(columns_of):
    catalogue = Catalogue(4, "best", CONTENTION)
    number = catalogue.single(columns_of(["bert"], 8), 0)
    assert catalogue.kinds[number].pace_s == 192 * 1.015 / 1000
    assert not catalogue.kinds[number].slower_than_in_turn
