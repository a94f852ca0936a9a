"""Threads that step parts of a batch; what they step is tested in tests/learning/scheduling."""

import threading
import time

import pytest

from rota.core.batch import LaneThreads

PARTS = [(0, number, number + 1) for number in range(12)]


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_each_part_is_done_once_before_the_call_returns(threads):
    done = []

    def work(address: int, first: int, last: int) -> None:
        time.sleep(0.001)
        done.append((address, first, last))

    pool = LaneThreads(threads, work)
    for _ in range(5):
        pool.run(PARTS)
        assert sorted(done) == PARTS
        done.clear()
    pool.close()


def test_after_an_interruption_no_thread_works_and_the_next_call_does_all():
    begun, done = [], []
    interrupts = iter([True])

    def work(address: int, first: int, last: int) -> None:
        if threading.current_thread() is threading.main_thread() and next(interrupts, False):
            raise KeyboardInterrupt
        begun.append(first)
        time.sleep(0.01)
        done.append(first)

    pool = LaneThreads(2, work)
    with pytest.raises(KeyboardInterrupt):
        pool.run(PARTS)
    assert sorted(begun) == sorted(done)
    assert len(done) < len(PARTS)
    begun.clear()
    done.clear()
    pool.run(PARTS)
    assert sorted(done) == [first for _, first, _ in PARTS]
    pool.close()


def test_threads_end_with_their_batch():
    before = set(threading.enumerate())
    pool = LaneThreads(3, lambda *part: None)
    own = set(threading.enumerate()) - before
    assert len(own) == 3
    pool.run(PARTS)
    del pool
    for thread in own:
        thread.join(10.0)
    assert not any(thread.is_alive() for thread in own)
