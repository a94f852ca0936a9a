"""All repetitions of a run for real, in its folder: begun, resumed, and summed up."""

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rota.config.load import override
from rota.core.atomic import written
from rota.core.errors import RotaError
from rota.execution.controller import Outcome, Watch, control
from rota.execution.folder import RealFolder
from rota.library.run_config import Ordered, ordered
from rota.policies.population import Policy
from rota.replay.population.landscape import Equal
from rota.replay.population.rehearse import Scene, rehearse
from rota.results.population.repetition import Repetition, measure
from rota.results.population.run import Writing, writing
from rota.results.population.summary import SlotInfo, Summary

WARM_TRIALS = 4
"""That allocation is tried on before slots wait for it."""


@dataclass(frozen=True, slots=True)
class RealRun:
    """A run in its folder."""

    folder: RealFolder
    order: Ordered
    command: str
    """What it is made by."""
    anew: bool = False
    """Whether checkpoints are trained again if none is left."""

    def carry_out(self, asked_to_stop: Callable[[], bool], watch: Callable[[int], Watch]) -> list[Outcome]:
        """One repetition after the other; the last one is not complete if it was stopped."""
        outcomes: list[Outcome] = []
        self._warm_up()
        try:
            for seed in self.order.config.seeds:
                outcomes.append(self._repetition(seed, asked_to_stop, watch(seed)))
                if not outcomes[-1].complete:
                    return outcomes
            self._write(outcomes)
        finally:
            for outcome in outcomes:
                outcome.timeline.close()
        return outcomes

    def _warm_up(self) -> None:
        """Have all that allocation needs compiled before slots wait for it, by a short rehearsal."""
        order = self.order.undertaking(self.order.config.seed)
        terms = replace(order.terms, steps=2 * order.terms.interval)
        scene = Scene(tuple(order.hypers[:WARM_TRIALS]), order.fleet, terms, order.costs)
        with suppress(RotaError):  # what is wrong will be said when it matters
            rehearse(
                scene, Equal(self.order.config.step_s, 0.0), Policy(self.order.contender.policy.allocation)
            )

    def _repetition(self, seed: int, asked_to_stop: Callable[[], bool], watch: Watch) -> Outcome:
        undertaking, books = self.order.undertaking(seed), self.folder.books(seed)
        assignment = self.order.assignment(seed, books, self.folder.path)
        engine = self.order.config.engine
        return control(
            undertaking,
            self.order.contender.policy,
            lambda: engine.workers(undertaking.fleet, assignment),
            books,
            asked_to_stop=asked_to_stop,
            watch=watch,
            anew=self.anew,
        )

    def _write(self, outcomes: list[Outcome]) -> None:
        """What a rehearsal writes, so that whatever is made of a rehearsal can be made of this."""
        text = self.folder.config.read_text("utf-8")  # as it was begun, wherever it has gone on
        with writing(self.folder.path) as run:
            summary = self._summary([self._measured(outcome, run) for outcome in outcomes])
            inputs = hashlib.sha256(text.encode()).hexdigest()
            run.sum_up(summary, config=text, inputs=inputs, command=self.command)
        with written(self.folder.result) as stream:
            stream.write(json.dumps(record(outcomes), indent=2).encode() + b"\n")

    def _summary(self, repetitions: list[Repetition]) -> Summary:
        config, fleet = self.order.config, self.order.config.engine.fleet()
        target = self.order.undertaking(config.seed).terms.target
        return Summary(
            allocation=self.order.contender.name,
            evolution=self.order.contender.evolution,
            population=config.population.said(),
            cluster=f"{config.backend}: {len(fleet.slots)} slots",
            target=target if math.isfinite(target) else None,
            slots=tuple(SlotInfo(fleet.nodes[slot.node], slot.device, slot.speed) for slot in fleet.slots),
            repetitions=tuple(repetitions),
            mode=config.mode,
        )

    def _measured(self, outcome: Outcome, run: Writing) -> Repetition:
        """The numbers of a timeline, which is written while it is read: it may be long."""
        state, seed = outcome.state, outcome.picture.frame.seed
        return measure(
            run.passing(seed, outcome.timeline),
            self.order.undertaking(seed).hypers,
            state.fleet,
            seed=seed,
            target=state.terms.target,
            decisions=state.decisions,
            wall_s=outcome.wall_s,
        )


def begin(order: Ordered, path: Path, command: str, files: Mapping[str, bytes] | None = None) -> RealRun:
    """A new run in a folder where there is none, for the eyes of its owner only; with files that it needs."""
    order.config.engine.check()
    folder = RealFolder(path)
    folder.begin(order.text(), files or {})
    return RealRun(folder, replace(order, digest=folder.digest()), command)


def resume(path: Path, command: str, settings: Sequence[str] = (), *, anew: bool = False) -> RealRun:
    """The run in a folder, as it was asked for, but for settings of where it runs."""
    folder = RealFolder(path)
    order = ordered(override(folder.table(), settings), folder.config, settings)
    return RealRun(folder, replace(order, digest=folder.digest()), command, anew)


def record(outcomes: list[Outcome]) -> dict[str, Any]:
    """Plain values: of the only run, or of the last one and, in brief, all of them."""
    last = outcomes[-1]
    found = {"complete": last.complete, **last.picture.record()}
    if len(outcomes) > 1:
        found["repetitions"] = [_brief(outcome) for outcome in outcomes]
    return found


def _brief(outcome: Outcome) -> dict[str, Any]:
    whole = outcome.picture.record()
    names = ("best", "reports", "clones", "wall_s", "overhead_s_per_report")
    return {"seed": outcome.picture.frame.seed, **{name: whole[name] for name in names}}
