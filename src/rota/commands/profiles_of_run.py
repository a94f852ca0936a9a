"""Profiles from a real run of jobs, with which the jobs can be simulated under any scheduler."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from rota.core.errors import InputError
from rota.execution.folder import RealFolder
from rota.execution.jobs.assignments import SLICE, CompletedAssignment, JobProgress, parse_landed
from rota.execution.jobs.status import is_of_jobs, parse_frame
from rota.execution.journal import read_journal
from rota.execution.status import taken_in
from rota.recordings.profile import Profile
from rota.workload.profiles import STARTUP

Cell = tuple[str, int, str]
"""Kind, gang size, and the job that shared its slots."""


def profiles_of_run(folder: Path, device: str) -> list[Profile]:
    """Return profiles by kind of job: an iteration with all overhead, and how much longer the first took."""
    journal = RealFolder(folder).paths(0).journal
    if not journal.exists() or not is_of_jobs(journal):
        raise InputError(f"{folder}: not a run of jobs; name the folder that was given with rota run … --out")
    entries = list(read_journal(journal))
    kinds = parse_frame(entries[0].body).kinds
    steady: defaultdict[Cell, list[tuple[CompletedAssignment, JobProgress]]] = defaultdict(list)
    fresh: defaultdict[Cell, list[tuple[CompletedAssignment, JobProgress]]] = defaultdict(list)
    for entry in entries:
        if entry.kind != SLICE:
            continue
        landed = parse_landed(entry)
        for part in landed.parts:
            if not any(each.why for each in landed.parts):
                with taken_in(journal, entry):
                    (fresh if landed.fresh else steady)[_cell(part, landed, kinds)].append((landed, part))
    if not steady:
        raise InputError(f"{folder}: no job ran for longer than a slice; record jobs that take longer")
    return [_profile(cell, found, fresh.get(cell, []), device) for cell, found in sorted(steady.items())]


def _cell(part: JobProgress, landed: CompletedAssignment, kinds: Iterable[str]) -> Cell:
    names = list(kinds)
    others = sorted(names[each.job] for each in landed.parts if each.job != part.job)
    return names[part.job], len(landed.slots), "+".join(others)


def _profile(
    cell: Cell,
    steady: list[tuple[CompletedAssignment, JobProgress]],
    fresh: list[tuple[CompletedAssignment, JobProgress]],
    device: str,
) -> Profile:
    kind, gang, beside = cell
    iterations = np.array([part.iterations for _, part in steady])
    whole_s = np.array([landed.ended_s - landed.began_s for landed, _ in steady])
    each_s = float(whole_s.sum() / iterations.sum())
    stages = np.sum([part.seconds[:3] for _, part in steady], axis=0) / iterations.sum()
    first, third = np.quantile(whole_s / iterations, (0.25, 0.75)).tolist()
    more_s = [landed.ended_s - landed.began_s - part.iterations * each_s for landed, part in fresh]
    return Profile(
        model=kind,
        batch_size=0,
        device=device,
        gang=gang,
        beside=beside,
        iteration_s=each_s,
        load_s=float(stages[0]),
        compute_s=float(stages[1]),
        synchronise_s=float(stages[2]),
        spread_s=third - first,
        iterations=int(iterations.sum()),
        extra={STARTUP: max(0.0, float(np.mean(more_s)))} if more_s else {},
    )
