"""Record trees: train every sequence of changes, each common beginning once."""

import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from rota.core.errors import InputError
from rota.core.workers import carry_out
from rota.recordings.folder import complete
from rota.recordings.provenance import provenance
from rota.recordings.store import recording_folders
from rota.recordings.tree import Point, Tree, read_tree, write_tree
from rota.training.clock import Pace
from rota.training.device import description, device
from rota.training.recorder.branch import Branch, grow, pieces_of
from rota.training.recorder.pace import paces as measured
from rota.training.recorder.partial import Partial, as_asked, refuse_other
from rota.training.recorder.progress import Progress
from rota.training.recorder.tree_config import TreesConfig
from rota.training.setup import LIBRARIES, check_changes


@dataclass(frozen=True, slots=True)
class TreesRecorder:
    """Records trees into `out`; what is unfinished lies in `out/partial` until it is."""

    out: Path
    config: TreesConfig
    workers: int
    command: str

    @property
    def name(self) -> str:
        setup = self.config.setup
        return "-".join(filter(None, [setup.model, setup.data, str(setup.size or "")]))

    def folder(self, scenario: str, seed: int) -> Path:
        return self.out / "trees" / f"{self.name}-{scenario}-seed{seed}"

    @property
    def common(self) -> Partial:
        """All that is unfinished, of all seeds."""
        return Partial(self.out, self.name)

    def pieces(self, seed: int) -> Path:
        """The pieces of unfinished trees of one seed."""
        return self.common.folder / f"seed{seed}"

    def record(self, progress: Progress) -> Iterator[Path]:
        """Record what is missing; gives the folder of each tree when it is there."""
        with self.common.alone():
            asked = [pair for pair in self.config.asked() if not self._there(*pair)]
            if asked:
                yield from self._record(asked, progress)
            self._tidy_up()

    def _record(self, asked: list[tuple[str, int]], progress: Progress) -> Iterator[Path]:
        check_changes(self.config.setup, ((change,) for change in self.config.changes))
        self.common.claim(self.asked())
        progress.say(f"{self.name}: seconds per step")
        seconds = self.paces()
        self._check_times(seconds)
        unfinished = {branch.file: branch for pair in asked for branch in self._open(*pair)}
        progress.expect(sum(branch.seconds for branch in unfinished.values()))
        for scenario, seed in asked:
            self._grow(scenario, seed, seconds, progress)
            yield self._write(scenario, seed, seconds)

    def _check_times(self, seconds: dict[Pace, float]) -> None:
        slowest_s = max(seconds.values())
        if slowest_s > self.config.epoch_s:
            self.common.remove()
            raise InputError(
                f"{self.name}: epoch_s is {self.config.epoch_s:g}, but a step of the slowest structure takes "
                f"{slowest_s:.2g} s; give an epoch_s above that, and a budget_s to match"
            )

    def _there(self, scenario: str, seed: int) -> bool:
        """Whether this very tree is recorded; one of the same name with other settings is an error."""
        folder = self.folder(scenario, seed)
        if not complete(folder):
            return False
        tree = read_tree(folder)
        if tree.details.get("asked") != self.asked() or tree.start_s != self.config.start_s(scenario):
            raise refuse_other(folder)
        self._remove_pieces(scenario, seed)
        return True

    def _remove_pieces(self, scenario: str, seed: int) -> None:
        """The tree is recorded."""
        for folder in pieces_of(self.pieces(seed), scenario):
            shutil.rmtree(folder)

    def _tidy_up(self) -> None:
        """Remove what no tree needs any more; the pieces of others, which were stopped, stay."""
        for seed in {seed for _, seed in self.config.asked()}:
            if not pieces_of(self.pieces(seed)):
                shutil.rmtree(self.pieces(seed), ignore_errors=True)
        if not any(self.common.folder.glob("seed*")):
            self.common.remove()

    def asked(self) -> dict[str, object]:
        """The settings that a tree depends on, as they come back from its file."""
        config = self.config
        kept = {
            "setup": asdict(config.setup),
            "budget_s": config.budget_s,
            "epoch_s": config.epoch_s,
            "actions": config.actions,
            "decisions": config.decisions,
            "evaluate_every": config.evaluate_every,
        }
        asked: dict[str, object] = as_asked(kept)
        return asked

    # ── the pieces ──────────────────────────────────────────────────────────────────────────────────────────

    def branches(self, scenario: str, seed: int) -> list[Branch]:
        """Every piece of a tree, each after its parent."""
        branch = partial(Branch, self.config, seed, folder=self.pieces(seed))
        trunk: list[Branch] = []
        at: Branch | None = branch(scenario, ())
        while at is not None:
            trunk.append(at)
            at = at.parent
        prefixes: list[tuple[int, ...]] = [()]
        grown = []
        for _ in range(self.config.decisions):
            prefixes = [(*prefix, a) for prefix in prefixes for a in range(len(self.config.actions))]
            grown += [branch(scenario, prefix) for prefix in prefixes]
        return [*reversed(trunk), *grown]

    def _open(self, scenario: str, seed: int) -> list[Branch]:
        return [branch for branch in self.branches(scenario, seed) if not branch.done]

    def _grow(self, scenario: str, seed: int, seconds: dict[Pace, float], progress: Progress) -> None:
        waiting = {branch.file: branch for branch in self._open(scenario, seed)}

        def can_begin(branch: Branch) -> bool:
            return branch.parent is None or branch.parent.file not in waiting

        def then(done: Branch) -> list[Branch]:
            del waiting[done.file]
            return [each for each in waiting.values() if each.parent and each.parent.file == done.file]

        ready = [branch for branch in waiting.values() if can_begin(branch)]
        progress.say(f"{self.name} {scenario} seed {seed}")
        if ready:
            for branch in carry_out(partial(_work, seconds), ready, then, min(self.workers, len(waiting))):
                progress.advance(branch.seconds)

    def _write(self, scenario: str, seed: int, seconds: dict[Pace, float]) -> Path:
        config, folder = self.config, self.folder(scenario, seed)
        curves: dict[tuple[int, ...], tuple[Point, ...]] = {}
        for branch in self.branches(scenario, seed):
            points = tuple(Point(*point) for point in branch.read())
            curves[branch.actions] = curves.get(branch.actions, ()) + points
        where = description(device(config.setup.device), config.setup.threads)
        tree = Tree(
            model=config.setup.model,
            data=config.setup.learns_from,
            scenario=scenario,
            seed=seed,
            budget_s=config.budget_s,
            start_s=config.start_s(scenario),
            decisions=config.decisions,
            actions=config.actions,
            curves=curves,
            provenance=provenance(device=where, seed=seed, command=self.command, libraries=LIBRARIES),
            details={"asked": self.asked(), "seconds_per_step": _plain(seconds)},
        )
        write_tree(folder, tree)
        self._remove_pieces(scenario, seed)
        return folder

    # ── seconds per step ────────────────────────────────────────────────────────────────────────────────────

    def paces(self) -> dict[Pace, float]:
        """The profile of the clock: that of trees recorded before, of an unfinished one, or a new one."""
        known = self._recorded() or self.common.get("seconds-per-step")
        if known is None:
            known = _plain(measured(self.config.setup, self.config.changes, self.config.decisions))
            self.common.put("seconds-per-step", known)
        return {(fingerprint, self.config.setup.hyper.batch_size): s for fingerprint, s in known.items()}

    def _recorded(self) -> dict[str, float] | None:
        for folder in recording_folders(self.out / "trees"):
            if complete(folder) and folder.name.startswith(f"{self.name}-"):
                details = read_tree(folder).details
                if details.get("asked") == self.asked():
                    seconds: dict[str, float] = details["seconds_per_step"]
                    return seconds
        return None


def _work(seconds: dict[Pace, float], branch: Branch) -> None:
    grow(branch, seconds)


def _plain(seconds: dict[Pace, float]) -> dict[str, float]:
    return {fingerprint: seconds[fingerprint, size] for fingerprint, size in seconds}
