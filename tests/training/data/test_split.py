"""Examples set apart from the others."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from rota.training.data.images import stratified

LABELS = st.lists(st.integers(0, 4), min_size=2, max_size=60)


@given(LABELS, st.data(), st.integers(0, 2**32))
def test_every_example_is_on_one_side_and_every_class_has_its_share(labels, data, seed):
    count = data.draw(st.integers(1, len(labels) - 1))
    labels = np.array(labels)
    rest, apart = stratified(labels, count, seed)
    assert sorted([*rest, *apart]) == list(range(len(labels)))
    assert len(apart) == count
    for found in np.unique(labels):
        share = count * (labels == found).sum() / len(labels)
        assert abs((labels[apart] == found).sum() - share) < 1


@given(LABELS, st.integers(0, 2**32))
def test_the_same_seed_sets_the_same_examples_apart(labels, seed):
    assume(len(labels) > 5)
    one, other = (stratified(np.array(labels), 3, seed) for _ in range(2))
    assert all(np.array_equal(left, right) for left, right in zip(one, other, strict=True))


def test_another_seed_sets_others_apart():
    labels = np.arange(1000) % 10
    assert not np.array_equal(stratified(labels, 100, 1)[1], stratified(labels, 100, 2)[1])
