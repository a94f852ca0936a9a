"""A tree that is trained only as far as it is asked for.

Trained branches are kept where a recorder keeps those of an unfinished tree, so none is trained twice, and
`rota record` with the same settings completes the recording and removes them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from rota.recordings.folder import provenance
from rota.recordings.tree import EpochPoint, Prefix, Tree
from rota.training.clock import StepKey
from rota.training.recorder.trees import Branch, TreesRecorder, grow


@dataclass(frozen=True)
class LiveTree:
    """One scenario of a recorder's configuration."""

    recorder: TreesRecorder
    scenario: str
    step_times: dict[StepKey, float]

    @property
    def seed(self) -> int:
        """Seed of the networks."""
        return self.recorder.config.seed

    def reach(self, sequence: Prefix) -> float:
        """Return the accuracy at the end of a sequence; train what is missing of it."""
        branch = self._leaf(sequence)
        for each in reversed(_missing(branch)):
            grow(each, self.step_times)
        return branch.read()[-1][4]

    def seen(self, reached: Mapping[Prefix, float]) -> Tree:
        """Return what is known of the tree: the times of decisions, and the accuracies of some sequences."""
        config = self.recorder.config
        curves: dict[Prefix, tuple[EpochPoint, ...]] = {}
        for branch in self.recorder.branches(self.scenario, self.seed):
            made, last = branch.actions, len(branch.actions) == config.decisions
            at_s = config.budget_s if last else config.start_s(self.scenario) + len(made) * config.epoch_s
            if not last or made in reached:
                curves[made] = (EpochPoint(len(made), at_s, 0, math.nan, reached.get(made, math.nan)),)
        return Tree(
            model=config.setup.model,
            data=config.setup.learns_from,
            scenario=self.scenario,
            seed=self.seed,
            budget_s=config.budget_s,
            start_s=config.start_s(self.scenario),
            decisions=config.decisions,
            actions=config.actions,
            curves=curves,
            provenance=provenance(device="", seed=self.seed, command=self.recorder.command, libraries=()),
            details={"asked": self.recorder.asked()},
        )

    def _leaf(self, sequence: Prefix) -> Branch:
        branches = self.recorder.branches(self.scenario, self.seed)
        return next(branch for branch in branches if branch.actions == tuple(sequence))


def _missing(branch: Branch) -> list[Branch]:
    """Return a branch and its ancestors that have to be trained first, itself first; none if it is there."""
    found = []
    at: Branch | None = branch
    while at is not None and not at.done:
        found.append(at)
        at = at.parent
    return found
