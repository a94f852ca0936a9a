"""A rehearsal that stops at every decision and waits for somebody to make it."""

from collections.abc import Generator, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.core.population.events import Assign, Decision
from rota.core.population.state import PopulationState
from rota.core.population.view import PopulationView
from rota.learning.placement.cases import GOOD, PlacementCase
from rota.policies.allocation.finish import LISTS, NOTHING, STEPS, Outlook, fastest_first
from rota.policies.allocation.learned import seen
from rota.policies.population import PopulationPolicy
from rota.simulator.noise import NoiseStream
from rota.simulator.population import PopulationSimulator


class Question(NamedTuple):
    """Which list for this idle slot? The answer is the position of a candidate."""

    slot: int
    outlook: Outlook
    features: NDArray[np.float32]
    allowed: NDArray[np.bool_]

    def nearest(self, candidate: int) -> int:
        """The candidate itself, or the one that there is with the nearest number of steps.

        A list that is not there has as many steps as one that is: they are the same list. To leave the slot
        idle when nobody else works is not possible; the shortest list is nearest to it.
        """
        steps = self.outlook.candidates[:, STEPS]
        off = np.where(self.allowed, np.abs(steps - steps[candidate]), np.inf)
        other_end = (np.arange(len(steps)) > LISTS) != (candidate > LISTS)
        return int(np.lexsort((other_end, off))[0])


class Questions:
    """The decisions of a rehearsal, one by one, until what counts has happened."""

    def __init__(self, case: PlacementCase) -> None:
        scene, landscape = case.scene, case.landscape()
        timing = NoiseStream(scene.noise, len(scene.hypers), len(scene.cluster.slots))
        self.state = PopulationState(scene.hypers, scene.cluster, scene.terms, scene.costs, landscape)
        self._backend = PopulationSimulator(
            scene.cluster, landscape, timing, report_each=scene.report_each, overhead=scene.overhead
        )
        self._asked = self._ask()
        self.due: Question | None = next(self._asked)
        """What is to be decided now; nothing when it is over."""

    def answer(self, candidate: int) -> None:
        """Decide, and go on to the next question."""
        try:
            self.due = self._asked.send(candidate)
        except StopIteration:
            self.due = None

    def _ask(self) -> Generator[Question, int, None]:
        """The control loop, as `rota.core.loop.drive` has it, with a stop at every decision."""
        state = self.state
        for instant in self._backend.instants(state):
            state.apply(instant)
            if state.best >= GOOD:
                return
            wanted = state.request(PopulationPolicy(NoAllocation()).plan(state))
            wanted += yield from self._ask_about_slots()
            self._backend.perform(wanted, state)

    def _ask_about_slots(self) -> Generator[Question, int, list[Decision]]:
        """The lists that idle slots are handed, the fastest slot first."""
        state = self.state
        wanted: list[Decision] = []
        for slot in fastest_first(state):
            if not state.waiting:
                break
            outlook = Outlook(state, slot)
            candidate = yield Question(slot, outlook, *seen(state, slot, outlook))
            if candidate != NOTHING:
                wanted += state.request([Assign(slot, outlook.parts(state, candidate))])
        return wanted


class NoAllocation:
    """Hands out nothing: who does is asked afterwards."""

    def hand_out(self, view: PopulationView) -> Iterator[Assign]:
        return iter(())
