"""From a configuration to the files of an agent that schedules jobs."""

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from rota.learning.files import ScheduleHistoryRow, write_course
from rota.learning.learner import CHECKPOINT
from rota.learning.runs import LearningRun
from rota.learning.scheduling.evolution import ScheduleLearner
from rota.learning.scheduling.training import ScheduleAgentConfig, WorldSets
from rota.policies.agents import read_facts
from rota.policies.cluster.learned import FEATURES, KIND_OF_AGENT, write_agent
from rota.recordings.folder import provenance

RULES = 2
"""Version of the learning rules: increase it when the same configuration would give other weights."""


@dataclass(frozen=True)
class ScheduleRun(LearningRun):
    """One agent that schedules jobs, of one seed."""

    config: ScheduleAgentConfig
    seed: int
    worlds: WorldSets
    kind = KIND_OF_AGENT

    @property
    def digest(self) -> str:
        """A digest of all that determines the agent; other seeds do not."""
        config, start = asdict(replace(self.config, seeds=(self.seed,))), self.config.start
        if start is not None:
            config["start"] = read_facts(start, KIND_OF_AGENT).sha256  # its weights, wherever it is
        worlds = [[world.digest for world in each] for each in self.worlds]
        text = json.dumps([config, worlds, RULES, FEATURES], default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    def begin(self, *, again: bool) -> ScheduleLearner:
        """Return a learner that resumes; `again` may overwrite the checkpoint of another agent."""
        learner = ScheduleLearner(self.config, self.seed, self.worlds, self.folder, self.digest, over=again)
        learner.resume()
        return learner


def finish(run: ScheduleRun, learner: ScheduleLearner, command: str) -> dict[str, Any]:
    """Write the agent, `agent.json` last, and delete its checkpoint; return what it says of itself."""
    write_course(run.folder, learner.rows, ScheduleHistoryRow)
    made = provenance(device="cpu", seed=run.seed, command=command, libraries=("numpy",))
    about = {
        "digest": run.digest,
        "seed": run.seed,
        "updates": len(learner.rows),
        "episodes": sum(row.episodes for row in learner.rows),
        "seconds": round(learner.seconds, 3),
        "validation": learner.kept_value,
    }
    config = json.loads(json.dumps(asdict(run.config), default=str))
    write_agent(
        run.folder, learner.weights, run.config.durations, about,
        config=config, provenance=made.to_json(), evaluation={"validation": learner.kept_value},
    )  # fmt: skip
    (run.folder / CHECKPOINT).unlink(missing_ok=True)
    return about
