"""The endless stream of examples: every pass has each of them once, and only the position matters."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rota.training.data.images import Stream

EXAMPLES = st.integers(1, 40)
SEEDS = st.integers(0, 2**40)


def same(one, other) -> bool:
    pairs = ((one.order, other.order), (one.shifts, other.shifts), (one.mirrored, other.mirrored))
    return all(np.array_equal(left, right) for left, right in pairs)


@given(EXAMPLES, SEEDS, st.integers(0, 1000))
def test_every_pass_has_every_example_once(examples, seed, number):
    taken = Stream(examples, seed=seed).take(number * examples, examples)
    assert sorted(taken.order) == list(range(examples))


@given(EXAMPLES, SEEDS, st.integers(0, 500), st.lists(st.integers(1, 100), min_size=1, max_size=6))
def test_batches_of_any_sizes_give_one_and_the_same_stream(examples, seed, position, sizes):
    whole = Stream(examples, seed=seed, margin=3).take(position, sum(sizes))
    stream = Stream(examples, seed=seed, margin=3)
    start = 0
    for size in sizes:
        taken = stream.take(position + start, size)
        assert len(taken.order) == size
        assert same(taken, whole.part(start, start + size))
        start += size


@given(EXAMPLES, SEEDS, st.lists(st.tuples(st.integers(0, 500), st.integers(1, 100)), min_size=2, max_size=5))
def test_what_was_taken_before_does_not_matter(examples, seed, taken):
    used = Stream(examples, seed=seed, margin=2)
    for position, size in taken:
        fresh = Stream(examples, seed=seed, margin=2)
        assert same(used.take(position, size), fresh.take(position, size))


@given(SEEDS, st.integers(0, 100))
def test_another_pass_or_another_seed_is_another_order(seed, number):
    stream, other = Stream(50, seed=seed, margin=2), Stream(50, seed=seed + 1, margin=2)
    first = stream.take(number * 50, 50)
    assert not np.array_equal(first.order, stream.take((number + 1) * 50, 50).order)
    assert not np.array_equal(first.order, other.take(number * 50, 50).order)


@given(EXAMPLES, SEEDS, st.integers(0, 500), st.integers(1, 100))
def test_a_margin_changes_the_shifts_and_not_the_order(examples, seed, position, size):
    plain, moved = (Stream(examples, seed=seed, margin=margin).take(position, size) for margin in (0, 4))
    assert np.array_equal(plain.order, moved.order)
    assert not plain.shifts.any()
    assert moved.shifts.min() >= 0
    assert moved.shifts.max() <= 8


def test_every_shift_occurs_and_half_is_mirrored():
    taken = Stream(10_000, seed=0, margin=1).take(0, 10_000)
    counts = np.unique(taken.shifts, axis=1, return_counts=True)[1]
    assert len(counts) == 9
    assert 1000 < counts.min() <= counts.max() < 1222  # 1111 each, within about three standard deviations
    assert 4850 < taken.mirrored.sum() < 5150
