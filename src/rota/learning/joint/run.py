"""From a configuration to the files of an agent that places trials and lets them grow."""

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from rota.config.bind import bind
from rota.core.errors import ConfigError, InputError
from rota.core.files import located
from rota.core.grouped import grouped
from rota.core.processes import WorkerPool
from rota.learning.files import JointHistoryRow, write_course
from rota.learning.joint.config import LEAST_TREES, JointAgentConfig
from rota.learning.joint.evaluate import RULE
from rota.learning.joint.learner import JointLearner
from rota.learning.learner import CHECKPOINT
from rota.learning.runs import LearningRun
from rota.policies.agents import FACTS, read_facts
from rota.policies.allocation.joint import KIND, write_agent
from rota.policies.joint.features import NAMES
from rota.recordings.folder import provenance, read_about
from rota.recordings.library import recording_folders

RULES = 1
"""Version of the learning rules: increase it when the same configuration would give other weights."""


@dataclass(frozen=True)
class JointRun(LearningRun):
    """One agent that places trials and lets them grow."""

    config: JointAgentConfig
    kind = KIND

    @cached_property
    def folders(self) -> tuple[Path, ...]:
        """The folders of the trees to learn from."""
        if not self.config.recordings:
            raise ConfigError(
                "from what? Give joint.recordings, or --recordings PATH…: growth trees, or folders of them"
            )
        found = [each for path in self.config.recordings for each in tree_folders(path)]
        left_out = set(self.config.leave_out)
        for name in self.config.leave_out:
            if not any(name in folder.parts for folder in found):
                raise ConfigError(f"joint.leave_out: no folder {name!r} in the recordings")
        return _some([folder for folder in found if not left_out & set(folder.parts)], self.config.trees)

    @cached_property
    def digest(self) -> str:
        """A digest of all that determines the agent."""
        config = asdict(replace(self.config, recordings=(), leave_out=(), trees=0, rule_cases=1))
        trees = sorted(file.sha256 for folder in self.folders for file in read_about(folder).files.values())
        text = json.dumps([config, RULES, NAMES, trees], default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    def begin(self, *, again: bool) -> JointLearner:
        """Return a learner that resumes; `again` may overwrite the checkpoint of another agent."""
        learner = JointLearner(self.config, self.folders, self.folder, self.digest, over=again)
        learner.resume()
        return learner


def tree_folders(path: Path) -> list[Path]:
    """Return the folders of the trees in a folder and below; raises InputError if there are none."""
    found = list(recording_folders(located(path)))
    if not found:
        raise InputError(f"{path}: no growth trees in it; give the folder of one, or of several")
    return found


def networks_of(folders: Iterable[Path]) -> list[str]:
    """Return the names of the folders that trees are in, one for each network and data set."""
    return sorted({folder.absolute().parent.name for folder in folders})


def known_networks(agent: Path, paths: Iterable[Path]) -> list[str]:
    """Return the names of the networks below these paths whose trees an agent has learned from."""
    known = read_facts(agent, KIND).about.get("learned_from")
    given = networks_of(folder for path in paths for folder in tree_folders(path))
    return [name for name in given if isinstance(known, list) and name in known]


def _some(folders: list[Path], count: int) -> tuple[Path, ...]:
    """Return so many folders of trees, evenly spread over as many networks as have enough; all for 0."""
    if not count or count >= len(folders):
        return tuple(folders)
    networks = list(grouped((folder.parent, folder) for folder in folders).values())
    networks = networks[: max(1, count // LEAST_TREES)]
    each = [count // len(networks) + (at < count % len(networks)) for at in range(len(networks))]
    return tuple(
        group[at * len(group) // most]
        for group, most in (
            (group, min(share, len(group))) for group, share in zip(networks, each, strict=True)
        )
        for at in range(most)
    )


def config_of(folder: Path) -> JointAgentConfig:
    """Return the configuration of an agent; defaults where its file does not say."""
    return bind(JointAgentConfig, read_facts(folder, KIND).config, folder / FACTS)


def learn(
    learner: JointLearner, pool: WorkerPool, on_update: Callable[[JointHistoryRow], None] | None = None
) -> None:
    """Make all remaining updates, and save a checkpoint."""
    learner.learn(pool, on_update)
    learner.save()


def finish(run: JointRun, learner: JointLearner, rule: str, evaluation: dict[str, Any], command: str) -> None:
    """Write the agent with the rule that was best in training, `agent.json` last; delete its checkpoint."""
    write_course(run.folder, learner.rows, JointHistoryRow)
    made = provenance(device="cpu", seed=run.config.seed, command=command, libraries=("numpy", "numba"))
    about = {
        "digest": run.digest,
        "seed": run.config.seed,
        "trees": len(run.folders),
        "learned_from": networks_of(run.folders),
        "updates": len(learner.rows),
        "decisions": sum(row.decisions for row in learner.rows),
        "seconds": round(learner.seconds, 3),
        RULE: rule,
    }
    config = json.loads(json.dumps(asdict(replace(run.config, recordings=())), default=str))
    write_agent(
        run.folder, learner.weights, about, config=config, provenance=made.to_json(), evaluation=evaluation
    )
    (run.folder / CHECKPOINT).unlink(missing_ok=True)
