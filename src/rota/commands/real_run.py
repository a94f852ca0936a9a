"""All repetitions of a run for real, in its folder: begun, resumed, and summed up."""

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rota.commands.run_config import Ordered, ordered
from rota.commands.typed import typed
from rota.config.load import override, read
from rota.core.atomic import written
from rota.core.errors import InputError, RotaError
from rota.execution.controller import Outcome, Watch, control
from rota.execution.engine import Assignment
from rota.execution.folder import RealFolder
from rota.policies.population import Policy
from rota.replay.population.landscape import Equal
from rota.replay.population.rehearse import Scene, rehearse
from rota.results.population.measured import measured_bound_s
from rota.results.population.repetition import Repetition, measure
from rota.results.population.run import write_population
from rota.results.population.summary import SlotInfo, Summary

WARM_TRIALS = 4
"""That allocation is tried on before slots wait for it."""


@dataclass(frozen=True, slots=True)
class RealRun:
    """A run in its folder."""

    folder: RealFolder
    order: Ordered

    def carry_out(self, asked_to_stop: Callable[[], bool], watch: Callable[[int], Watch]) -> list[Outcome]:
        """One repetition after the other; the last one is not complete if it was stopped."""
        outcomes = []
        self._warm_up()
        for seed in self.order.config.seeds:
            outcomes.append(self._repetition(seed, asked_to_stop, watch(seed)))
            if not outcomes[-1].complete:
                return outcomes
        self._write(outcomes)
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
        config = self.order.config
        assignment = Assignment(config.trial, self.order.training, seed, books)
        return control(
            undertaking,
            self.order.contender.policy,
            lambda: config.engine.workers(undertaking.fleet, assignment),
            books,
            asked_to_stop=asked_to_stop,
            watch=watch,
        )

    def _write(self, outcomes: list[Outcome]) -> None:
        """What a rehearsal writes, so that whatever is made of a rehearsal can be made of this."""
        text = self.order.text()
        write_population(
            self.folder.path,
            self._summary(outcomes),
            {outcome.picture.frame.seed: outcome.timeline for outcome in outcomes},
            config=text,
            inputs=hashlib.sha256(text.encode()).hexdigest(),
            command=typed(),
        )
        with written(self.folder.result) as stream:
            stream.write(json.dumps(record(outcomes), indent=2).encode() + b"\n")

    def _summary(self, outcomes: list[Outcome]) -> Summary:
        config, fleet = self.order.config, self.order.config.engine.fleet()
        target = config.population.target
        return Summary(
            allocation=config.allocation,
            evolution=config.evolution,
            population=config.population.said(),
            cluster=f"{config.backend}: {len(fleet.slots)} slots",
            target=target if math.isfinite(target) else None,
            slots=tuple(SlotInfo(fleet.nodes[slot.node], slot.device, slot.speed) for slot in fleet.slots),
            repetitions=tuple(self._measured(outcome) for outcome in outcomes),
        )

    def _measured(self, outcome: Outcome) -> Repetition:
        state, seed = outcome.state, outcome.picture.frame.seed
        return measure(
            outcome.timeline,
            self.order.undertaking(seed).hypers,
            state.fleet,
            seed=seed,
            target=state.terms.target,
            lower_bound_s=measured_bound_s(outcome.timeline, len(state.fleet.slots)),
            decisions=state.decisions,
            wall_s=outcome.wall_s,
        )


def begin(order: Ordered, path: Path) -> RealRun:
    """A new run in a folder where there is none, for the eyes of its owner only."""
    folder = RealFolder(path)
    if folder.begun() or folder.config.exists():
        raise InputError(f"{path}: has a run already; go on with --resume {path}, or choose another folder")
    folder.make()
    with written(folder.config) as stream:
        stream.write(order.text().encode())
    return RealRun(folder, order)


def resume(path: Path, settings: Sequence[str] = ()) -> RealRun:
    """The run in a folder, as it was asked for, but for settings of where it runs."""
    folder = RealFolder(path)
    if not folder.config.exists():
        raise InputError(f"{path}: no run to go on with; name the folder that was given with --out")
    table = override(read(folder.config), settings)
    return RealRun(folder, ordered(table, folder.config, settings))


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
