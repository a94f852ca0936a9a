"""Which run is compared with which: those of the same name, or the only two that there are."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rota.core.errors import InputError
from rota.results.fidelity.told import Told, told_of_jobs, told_of_population
from rota.results.folder import RunFolder, run_folders
from rota.results.population.folder import PopulationFolder
from rota.results.population.run import PopulationRun, read_population
from rota.results.run import Run, read_run

AnyRun = Run | PopulationRun


@dataclass(frozen=True, slots=True)
class Pair:
    """A real run and a simulated one of the same work."""

    name: str
    """Of the scheduler or the allocation; more where that is not enough."""
    seed: int | None
    """With which both were made; a trace has none."""
    real: AnyRun
    simulated: AnyRun

    @property
    def title(self) -> str:
        return self.name if self.seed is None else f"{self.name}, seed {self.seed}"

    def told(self) -> tuple[Told, Told]:
        """The timelines of both."""
        return _told(self.real, self.seed), _told(self.simulated, self.seed)


def paired(real: Path, simulated: Path) -> tuple[list[Pair], list[str]]:
    """What can be aligned of the runs below two folders, and notes about what cannot."""
    here, there = runs_in(real), runs_in(simulated)
    _check_kinds(real, here, simulated, there)
    keys = _keys(real, here, simulated, there)
    both = [name for name in keys[0] if name in keys[1]]
    if not both:
        names = " and ".join(
            f"{path} has {', '.join(each)}" for path, each in zip((real, simulated), keys, strict=True)
        )
        raise InputError(f"no two runs have the same name: {names}; name the two runs themselves")
    notes = [
        f"{name}: only in {path}, left out"
        for path, each in zip((real, simulated), keys, strict=True)
        for name in each
        if name not in both
    ]
    pairs = [pair for name in both for pair in _seed_by_seed(name, keys[0][name], keys[1][name])]
    return pairs, notes


def runs_in(path: Path) -> list[AnyRun]:
    """All runs of a folder, of whichever kind; each must be complete."""
    folders = list(run_folders(path))
    if not folders:
        raise InputError(f"{path}: no run is there; give what rota run or rota simulate wrote with --out")
    return [_read(folder) for folder in folders]


def _read(folder: RunFolder) -> AnyRun:
    if PopulationFolder(folder.path).complete():
        return read_population(folder.path)
    if folder.complete():
        return read_run(folder.path)
    raise InputError(
        f"{folder.path}: not a complete run; let it go on to its end (rota run --resume), or make it again"
    )


def _check_kinds(real: Path, here: list[AnyRun], simulated: Path, there: list[AnyRun]) -> None:
    kinds = {
        path: {"a population" if isinstance(run, PopulationRun) else "jobs of a trace" for run in runs}
        for path, runs in ((real, here), (simulated, there))
    }
    for path, found in kinds.items():
        if len(found) > 1:
            raise InputError(f"{path}: has runs of a population and of jobs; name the run that is meant")
    (ours,), (theirs,) = (found for found in (kinds[real], kinds[simulated]))
    if ours != theirs:
        raise InputError(
            f"{real} has {ours}, {simulated} has {theirs}; they cannot be compared: give two of the same kind"
        )


def _keys(
    real: Path, here: list[AnyRun], simulated: Path, there: list[AnyRun]
) -> tuple[Mapping[str, AnyRun], Mapping[str, AnyRun]]:
    """What the runs of both folders are called: by scheduler or allocation, or else by folder."""
    if len(here) == len(there) == 1:
        name = policy_of(here[0])
        if name != policy_of(there[0]):
            name = f"{name} / {policy_of(there[0])}"
        return {name: here[0]}, {name: there[0]}
    for by in (_by_policy, _by_folder):
        found = by(real, here), by(simulated, there)
        if len(found[0]) == len(here) and len(found[1]) == len(there):
            return found
    raise AssertionError("folders have different names")


def _by_policy(_: Path, runs: list[AnyRun]) -> dict[str, AnyRun]:
    return {policy_of(run): run for run in runs}


def _by_folder(path: Path, runs: list[AnyRun]) -> dict[str, AnyRun]:
    return {run.folder.path.relative_to(path).as_posix(): run for run in runs}


def policy_of(run: AnyRun) -> str:
    return run.summary.allocation if isinstance(run, PopulationRun) else run.scheduler


def _seed_by_seed(name: str, real: AnyRun, simulated: AnyRun) -> Iterator[Pair]:
    if not (isinstance(real, PopulationRun) and isinstance(simulated, PopulationRun)):
        yield Pair(name, None, real, simulated)
        return
    ours, theirs = ([each.seed for each in run.summary.repetitions] for run in (real, simulated))
    both = [seed for seed in ours if seed in theirs]
    if not both:
        raise InputError(
            f"{name}: the real run has the seeds {_listed(ours)}, the simulated one {_listed(theirs)}; make "
            "one of them with a seed of the other"
        )
    yield from (Pair(name, seed, real, simulated) for seed in both)


def _listed(seeds: list[int]) -> str:
    return ", ".join(map(str, seeds))


def _told(run: AnyRun, seed: int | None) -> Told:
    if isinstance(run, PopulationRun):
        assert seed is not None
        return told_of_population(run, seed)
    return told_of_jobs(run)
