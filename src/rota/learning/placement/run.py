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
from rota.core.processes import WorkerPool
from rota.learning.files import EVENTS, PlacementHistoryRow, is_agent, write_events, write_history
from rota.learning.learner import CHECKPOINT, one_thread
from rota.learning.placement.config import PlacementAgentConfig
from rota.learning.placement.learner import PlacementLearner
from rota.learning.placement.outcome import PlacementComparison, write_comparison
from rota.policies.allocation.finish import CANDIDATES
from rota.policies.allocation.learned import FACTS, FEATURES, VERSION, Weights, read_about, write_agent
from rota.recordings.folder import provenance


@dataclass(frozen=True, slots=True)
class PlacementRun:
    """One agent to learn, in a folder of its own."""

    config: PlacementAgentConfig
    folder: Path

    @property
    def digest(self) -> str:
        """A digest of all that determines the agent; the number of test cases does not."""
        config = asdict(replace(self.config, tests=1))
        text = json.dumps([config, VERSION, FEATURES, CANDIDATES])
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def learned(self) -> bool:
        """Whether this agent has been learned."""
        return is_agent(self.folder) and read_about(self.folder).get("digest") == self.digest

    @property
    def tried(self) -> bool:
        """Whether this agent has been learned, and tested on as many cases."""
        return self.learned and config_of(self.folder).tests == self.config.tests

    def refuse_another(self) -> None:
        """Raise an error if the folder has an agent that was learned in another way."""
        if is_agent(self.folder) and not self.learned:
            raise InputError(
                f"{self.folder}: another agent is there (learned in another way); "
                "give another folder with --out, or --again to learn anew"
            )

    def begin(self, *, again: bool) -> PlacementLearner:
        """Return a learner that resumes; `again` may overwrite the checkpoint of another agent."""
        learner = PlacementLearner(self.config, self.folder, self.digest, over=again)
        learner.resume()
        return learner


def config_of(folder: Path) -> PlacementAgentConfig:
    """Return the configuration of an agent; defaults where its file does not say."""
    return bind(PlacementAgentConfig, read_about(folder).get("config", {}), folder / FACTS)


def learn(
    learner: PlacementLearner,
    pool: WorkerPool,
    on_update: Callable[[PlacementHistoryRow], None] | None = None,
) -> None:
    """Make all remaining updates, and save a checkpoint."""
    with one_thread():
        learner.learn(pool, on_update)
        learner.save()


def about(run: PlacementRun, learner: PlacementLearner, command: str) -> dict[str, Any]:
    """Return how an agent was learned, for its file."""
    made = provenance(device="cpu", seed=run.config.seed, command=command, libraries=("torch", "numpy"))
    return {
        "digest": run.digest,
        "updates": len(learner.rows),
        "decisions": sum(row.decisions for row in learner.rows),
        "seconds": round(learner.seconds, 3),
        "provenance": made.to_json(),
    }


def finish(run: PlacementRun, learner: PlacementLearner, found: PlacementComparison, command: str) -> None:
    """Write the agent, `agent.json` last, and delete its checkpoint."""
    shutil.rmtree(run.folder / EVENTS, ignore_errors=True)
    write_history(run.folder, learner.rows, PlacementHistoryRow)
    write_events(run.folder, learner.rows)
    write_tried(run, learner.network.weights, about(run, learner, command), found, command)
    (run.folder / CHECKPOINT).unlink(missing_ok=True)


def write_tried(
    run: PlacementRun, weights: Weights, facts: dict[str, Any], found: PlacementComparison, command: str
) -> None:
    """Write an agent and its comparison with the rules."""
    write_comparison(run.folder, found, command)
    write_agent(run.folder, weights, {**facts, "config": asdict(run.config), "evaluation": found.summary()})
