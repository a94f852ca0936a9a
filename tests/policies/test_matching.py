"""Matching by counting pairs of types: as heavy as rustworkx's, whatever the weights."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.policies.cluster import matching
from rota.policies.cluster.grouping import Bucket, match_bucket
from rota.policies.cluster.interleaving import CONTENTION, Catalogue


@st.composite
def problems(draw):
    """Counts of up to twelve types, and a symmetric weight for each two of them; ties are common."""
    k = draw(st.integers(1, 12))
    top = draw(st.sampled_from([1, 3, 1000, 10**9]))
    counts = draw(st.lists(st.integers(0, 9), min_size=k, max_size=k))
    flat = draw(st.lists(st.integers(0, top), min_size=k * k, max_size=k * k))
    weight = np.triu(np.array(flat).reshape(k, k))
    return np.array(counts), weight + np.triu(weight, 1).T


def worth(pairs, weight):
    return int(np.sum(np.triu(pairs) * weight))


@settings(max_examples=300, deadline=None)
@given(problem=problems())
def test_counted_pairs_are_as_heavy_as_the_graphs(problem):
    counts, weight = problem
    pairs = matching.best_pairs(counts, weight)
    used = pairs.sum(axis=1) + np.diag(pairs)
    assert np.array_equal(pairs, pairs.T)
    assert np.all(pairs >= 0)
    assert np.all(used <= counts)
    assert np.all(pairs[weight == 0] == 0)
    assert worth(pairs, weight) == worth(matching._pairs_by_graph(counts, weight), weight)


def test_five_of_a_kind_make_two_pairs_and_one_stays_alone():
    pairs = matching.best_pairs(np.array([5]), np.array([[7]]))
    assert pairs.tolist() == [[2]]
    nowhere = np.full(5, -1)
    assert matching.assign(np.zeros(5, np.int64), pairs, nowhere).tolist() == [1, 0, 3, 2, -1]


def test_those_who_are_together_already_are_paired_first():
    pairs = np.array([[1, 1], [1, 0]])  # one pair of type 0 with itself, one of 0 with 1
    types = np.array([0, 0, 0, 1])
    assert matching.assign(types, pairs, np.full(4, -1)).tolist() == [1, 0, 3, 2]
    assert matching.assign(types, pairs, np.array([7, 5, 5, 7])).tolist() == [3, 2, 1, 0]
    assert matching.assign(types, pairs, np.array([-1, 5, -1, 5])).tolist() == [2, 3, 0, 1]


def test_a_triangle_of_types_is_not_halved():
    # One thing of each of three types: the relaxation would take half of each edge, worth 1.5 × 10.
    weight = np.array([[0, 10, 10], [10, 0, 10], [10, 10, 0]])
    pairs = matching.best_pairs(np.array([1, 1, 1]), weight)
    assert worth(pairs, weight) == 10


def test_the_graph_takes_over_where_types_are_many():
    rng = np.random.default_rng(0)
    k = matching.FEW + 5
    weight = rng.integers(1, 1000, (k, k))
    weight = np.triu(weight) + np.triu(weight, 1).T
    counts = np.ones(k, np.int64)
    assert np.array_equal(matching.best_pairs(counts, weight), matching._pairs_by_graph(counts, weight))


def test_first_rounds_are_as_heavy_as_the_references(reference, columns_of):
    vectors = json.loads(reference("clusters", "vectors_matching.json").read_text())
    checked = 0
    for vector in vectors:
        sizes = {gpus for _, _, gpus in vector["jobs_idx_model_gpu"]}
        if len(sizes) != 1 or not vector["rounds"]:
            continue
        models = [model for _, model, _ in vector["jobs_idx_model_gpu"]]
        table = columns_of(models, sizes.pop())
        catalogue = Catalogue(4, "best", CONTENTION)
        kinds = [catalogue.single(table, row) for row in range(len(models))]
        bucket = Bucket(1, [(row,) for row in range(len(models))], kinds)
        mates = match_bucket(bucket, 4, lambda size: 0.0, catalogue)
        total = sum(
            catalogue.kinds[catalogue.pair(kinds[a], kinds[b])].efficiency
            for a, b in enumerate(mates)
            if a < b
        )
        assert total == pytest.approx(vector["rounds"][0]["total_weight"], rel=1e-6)
        checked += 1
    assert checked > 0
