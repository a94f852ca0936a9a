"""A stage of learning: some trees, so many episodes, from what was learned in the stage before.

What a stage comes to depends on nothing but what is named here, so it has a digest: runs that begin in the
same way share their first stages, and a stage that is there is never learned again.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from rota.learning.config import Method
from rota.learning.problem import tree_digest
from rota.recordings.tree import Tree

RULES = 1
"""Of learning: to be counted up when the same stage would come to something else than before."""


@dataclass(frozen=True)
class Stage:
    """What is learned, from what, for how long."""

    method: Method
    trees: tuple[Tree, ...]
    episodes: int
    """Of each tree."""
    temperature: float
    seed: int
    folder: Path
    """Where stages are kept."""
    before: "Stage | None" = None
    """The stage whose weights this one starts from."""
    start: Path | None = None
    """Or the agent, which is named by the checksum of its weights,"""
    start_sha256: str = ""

    @cached_property
    def digest(self) -> str:
        """Of all that matters."""
        facts = {
            "rules": RULES,
            "method": asdict(self.method),
            "trees": [tree_digest(tree) for tree in self.trees],
            "episodes": self.episodes,
            "temperature": self.temperature,
            "seed": self.seed,
            "before": self.before.digest if self.before else self.start_sha256,
        }
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]

    @property
    def place(self) -> Path:
        """The folder of this stage."""
        return self.folder / self.digest

    @property
    def done(self) -> bool:
        return (self.place / "done.json").is_file()

    @property
    def updates(self) -> int:
        """One or more, in which no fewer episodes are drawn than were asked for."""
        return -(-self.episodes // self.method.episodes_per_update)

    @property
    def drawn(self) -> int:
        """Episodes of all trees together."""
        return self.updates * self.method.episodes_per_update * len(self.trees)

    @property
    def number(self) -> int:
        """From 0 on."""
        return 0 if self.before is None else self.before.number + 1

    @property
    def chain(self) -> "list[Stage]":
        """The stages up to this one, the first one first."""
        return [*(self.before.chain if self.before else []), self]
