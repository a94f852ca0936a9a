"""Jobs that share a slot, interleaved by stage: while one fetches, another computes.

One at a time fetches and one at a time computes; exchanges wait for other slots, so they stand in nobody's
way. Each does one iteration in the time in which the others do: nobody is more than one ahead.
"""

import traceback
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from threading import Condition, Lock, Thread
from time import perf_counter

from rota.execution.jobs.site import Working
from rota.execution.jobs.slices import Seconds

AHEAD = 1
"""Iterations that one may have done more than another."""

Outcome = Seconds | str
"""Where the time went, or why it could not be done."""


class Turns:
    """Of the jobs of one slice."""

    def __init__(self, members: int) -> None:
        shared = members > 1
        self.fetching: AbstractContextManager[object] = Lock() if shared else nullcontext()
        self.computing: AbstractContextManager[object] = Lock() if shared else nullcontext()
        self._done = [0.0] * members
        self._changed = Condition()

    def wait(self, member: int) -> None:
        """Until nobody is too far behind."""
        with self._changed:
            self._changed.wait_for(lambda: self._done[member] - min(self._done) <= AHEAD)

    def note(self, member: int, iterations: float) -> None:
        """So many it has done; infinitely many once it is over."""
        with self._changed:
            self._done[member] = iterations
            self._changed.notify_all()


def interleave(works: Sequence[tuple[Working, int]]) -> list[Outcome]:
    """So many iterations of each. What goes wrong with one is its own affair, also if it wants to exit."""
    if not works:
        return []
    turns = Turns(len(works))
    outcomes: list[Outcome] = [""] * len(works)

    def member(number: int) -> None:
        try:
            outcomes[number] = _iterate(*works[number], turns, number)
        except BaseException:
            outcomes[number] = traceback.format_exc()
        finally:
            turns.note(number, float("inf"))

    others = [Thread(target=member, args=(number,), daemon=True) for number in range(1, len(works))]
    for thread in others:
        thread.start()
    member(0)
    for thread in others:
        thread.join()
    return outcomes


def _iterate(work: Working, iterations: int, turns: Turns, number: int) -> Seconds:
    fetch_s = compute_s = exchange_s = 0.0
    began = perf_counter()
    for done in range(iterations):
        turns.wait(number)
        with turns.fetching:
            a = perf_counter()
            work.fetch()
            b = perf_counter()
        with turns.computing:
            c = perf_counter()
            work.compute()
            d = perf_counter()
        work.exchange()
        e = perf_counter()
        with turns.computing:
            f = perf_counter()
            work.update()
            g = perf_counter()
        turns.note(number, done + 1)
        fetch_s, compute_s, exchange_s = fetch_s + b - a, compute_s + d - c + g - f, exchange_s + e - d
    whole_s = perf_counter() - began
    return Seconds(fetch_s, compute_s, exchange_s, max(0.0, whole_s - fetch_s - compute_s - exchange_s))
