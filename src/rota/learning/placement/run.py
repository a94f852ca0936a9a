"""From a configuration to the files of an agent that places trials."""

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rota.config.bind import bind
from rota.core.errors import InputError
from rota.learning.files import EVENTS, PlacementHistoryRow, is_agent, write_events, write_history
from rota.learning.learner import CHECKPOINT, one_thread
from rota.learning.placement.config import PlacementAgentConfig
from rota.learning.placement.learner import PlacementLearner
from rota.learning.placement.outcome import PlacementComparison, write_comparison
from rota.policies.allocation.finish import CANDIDATES
from rota.policies.allocation.learned import (
    FACTS,
    FEATURES,
    VERSION,
    Weights,
    read_about,
    write_agent,
)
from rota.recordings.folder import provenance


@dataclass(frozen=True, slots=True)
class PlacementRun:
    """One agent to learn, in a folder of its own."""

    config: PlacementAgentConfig
    folder: Path

    @property
    def digest(self) -> str:
        """Of all that decides what the agent becomes; on how many cases it is tried does not."""
        config = asdict(replace(self.config, tests=1))
        text = json.dumps([config, VERSION, FEATURES, CANDIDATES])
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def learned(self) -> bool:
        """Whether this very agent is there."""
        return is_agent(self.folder) and read_about(self.folder).get("digest") == self.digest

    @property
    def tried(self) -> bool:
        """Whether this very agent is there, tried on as many cases."""
        return self.learned and config_of(self.folder).tests == self.config.tests

    def refuse_another(self) -> None:
        """What was learned in another way is not written over."""
        if is_agent(self.folder) and not self.learned:
            raise InputError(
                f"{self.folder}: another agent is there (learned in another way); "
                "give another folder with --out, or --again to learn anew"
            )

    def begin(self, *, again: bool) -> PlacementLearner:
        """What learns it, from where it was stopped; `again` writes over another that was."""
        learner = PlacementLearner(self.config, self.folder, self.digest, over=again)
        learner.resume()
        return learner


def config_of(folder: Path) -> PlacementAgentConfig:
    """What an agent was learned with; the defaults where it does not say."""
    return bind(PlacementAgentConfig, read_about(folder).get("config", {}), folder / FACTS)


def learn(
    learner: PlacementLearner, workers: int, on_update: Callable[[PlacementHistoryRow], None] | None = None
) -> None:
    """All updates that are left, and keep what came of them."""
    with one_thread():
        learner.learn(workers, on_update)
        learner.save()


def about(run: PlacementRun, learner: PlacementLearner, command: str) -> dict[str, Any]:
    """What an agent's file says of how it was learned."""
    made = provenance(device="cpu", seed=run.config.seed, command=command, libraries=("torch", "numpy"))
    return {
        "digest": run.digest,
        "updates": len(learner.rows),
        "decisions": sum(row.decisions for row in learner.rows),
        "seconds": round(learner.seconds, 3),
        "provenance": made.to_json(),
    }


def finish(run: PlacementRun, learner: PlacementLearner, found: PlacementComparison, command: str) -> None:
    """Write the agent, `agent.json` last; what was kept to go on from is deleted."""
    shutil.rmtree(run.folder / EVENTS, ignore_errors=True)
    write_history(run.folder, learner.rows)
    write_events(run.folder, learner.rows)
    write_tried(run, learner.network.weights, about(run, learner, command), found, command)
    (run.folder / CHECKPOINT).unlink(missing_ok=True)


def write_tried(
    run: PlacementRun, weights: Weights, facts: dict[str, Any], found: PlacementComparison, command: str
) -> None:
    """Write an agent with how good it is."""
    write_comparison(run.folder, found, command)
    write_agent(run.folder, weights, {**facts, "config": asdict(run.config), "evaluation": found.summary()})
