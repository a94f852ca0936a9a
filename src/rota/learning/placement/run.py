"""From a configuration to the files of an agent that places trials."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rota.config.bind import bind
from rota.core.processes import WorkerPool
from rota.learning.files import PlacementHistoryRow, write_course
from rota.learning.learner import CHECKPOINT
from rota.learning.placement.config import PlacementAgentConfig
from rota.learning.placement.learner import PlacementLearner
from rota.learning.placement.outcome import PlacementComparison, write_comparison
from rota.learning.runs import LIBRARIES, LearningRun
from rota.policies.agents import FACTS, read_facts
from rota.policies.allocation.finish import CANDIDATES
from rota.policies.allocation.learned import FEATURES, KIND, Weights, write_agent
from rota.recordings.folder import provenance
from rota.training.device import threads

RULES = 1
"""Version of the learning rules: increase it when the same configuration would give other weights."""


@dataclass(frozen=True)
class PlacementRun(LearningRun):
    """One agent that places trials."""

    config: PlacementAgentConfig
    kind = KIND

    @property
    def digest(self) -> str:
        """A digest of all that determines the agent; the number of test cases does not."""
        config = asdict(replace(self.config, tests=1))
        text = json.dumps([config, RULES, FEATURES, CANDIDATES])
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def tried(self) -> bool:
        """Whether this agent has been learned, and tested on as many cases."""
        return self.done and config_of(self.folder).tests == self.config.tests

    def begin(self, *, again: bool) -> PlacementLearner:
        """Return a learner that resumes; `again` may overwrite the checkpoint of another agent."""
        learner = PlacementLearner(self.config, self.folder, self.digest, over=again)
        learner.resume()
        return learner


def config_of(folder: Path) -> PlacementAgentConfig:
    """Return the configuration of an agent; defaults where its file does not say."""
    return bind(PlacementAgentConfig, read_facts(folder, KIND).config, folder / FACTS)


def learn(
    learner: PlacementLearner,
    pool: WorkerPool,
    on_update: Callable[[PlacementHistoryRow], None] | None = None,
) -> None:
    """Make all remaining updates, and save a checkpoint."""
    with threads(1):
        learner.learn(pool, on_update)
        learner.save()


def finish(run: PlacementRun, learner: PlacementLearner, found: PlacementComparison, command: str) -> None:
    """Write the agent, `agent.json` last, and delete its checkpoint."""
    write_course(run.folder, learner.rows, PlacementHistoryRow)
    made = provenance(device="cpu", seed=run.config.seed, command=command, libraries=LIBRARIES)
    about = {
        "digest": run.digest,
        "seed": run.config.seed,
        "updates": len(learner.rows),
        "decisions": sum(row.decisions for row in learner.rows),
        "seconds": round(learner.seconds, 3),
    }
    write_tried(run, learner.network.weights, about, made.to_json(), found, command)
    (run.folder / CHECKPOINT).unlink(missing_ok=True)


def write_tried(
    run: PlacementRun,
    weights: Weights,
    about: dict[str, Any],
    made: dict[str, Any],
    found: PlacementComparison,
    command: str,
) -> None:
    """Write an agent that was `made` so, and its comparison with the rules."""
    write_comparison(run.folder, found, command)
    config = json.loads(json.dumps(asdict(run.config)))
    write_agent(run.folder, weights, about, config=config, provenance=made, evaluation=found.summary())
