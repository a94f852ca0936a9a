"""A power cut takes back what is not on the disk: of jobs, too. The worker is a real one, in this process."""

import random
import shutil
from functools import partial
from itertools import count

from rota.execution.checkpoints import CheckpointPruner
from rota.execution.engine import Answered, parse_answer
from rota.execution.folder import RunPaths
from rota.execution.jobs import control
from rota.execution.jobs.idle import IdleJobFactory
from rota.execution.jobs.worker import JobWorker
from rota.execution.journal import DamagedJournal, read_journal, salvage

PLACES = 30
JOBS = (("short", 1, 60, 0.0), ("short", 1, 50, 0.0), ("short", 1, 40, 0.02))


class InProcess:
    """An engine whose only worker carries out an assignment when it is waited for."""

    def cluster(self):
        return None

    def workers(self, cluster, setup):
        self._hand, self._assignments = (
            JobWorker(IdleJobFactory(setup.settings), setup.paths.checkpoints),
            [],
        )
        return self

    def nodes(self):
        return [0]

    def send(self, slot, assignment):
        self._assignments.append(assignment.line())

    def wait(self, timeout_s):
        assignments, self._assignments = self._assignments, []
        return [Answered(0, parse_answer(self._hand.answer(assignment))) for assignment in assignments]

    def close(self):
        pass


def test_jobs_go_on_from_newer_checkpoints_and_what_is_lost_is_made_again(
    few, tmp_path, on_engine, monkeypatch
):
    ticks = count()  # however slow the machine is, some instants pass between two syncs
    monkeypatch.setattr(
        control, "CheckpointPruner", partial(CheckpointPruner, every_s=10, tick=lambda: next(ticks))
    )
    asked = few(JOBS, slots=1, slice_s=0.01, kinds={"short": {"compute_s": 0.001}})
    found = []

    def copy(status):
        found.append(tmp_path / f"copy{len(found)}" / "books")
        shutil.copytree(tmp_path / "books", found[-1])

    calm = on_engine(asked, InProcess(), watch=copy)
    chance, refused, lost = random.Random(4), 0, 0
    for folder in chance.sample(found, min(PLACES, len(found))):
        paths = RunPaths(folder)
        wal = folder / "journal.sqlite-wal"
        with wal.open("r+b") as stream:
            stream.truncate(chance.randrange(wal.stat().st_size + 1))
        synced_ns = (folder / "journal.sqlite.lock").stat().st_mtime_ns
        for file in paths.checkpoints.folder.glob("*.part"):
            if file.stat().st_mtime_ns >= synced_ns and chance.random() < 0.5:
                file.write_bytes(b"")
                lost += 1
        try:
            list(read_journal(paths.journal))
        except DamagedJournal:
            refused += 1
            assert salvage(paths.journal)
        shutil.rmtree(tmp_path / "books")
        folder.rename(tmp_path / "books")
        resumed = on_engine(asked, InProcess(), anew=True)
        assert resumed.complete
        assert [(job.status, job.done, job.metric, job.failures) for job in resumed.status.jobs] == [
            (job.status, job.done, job.metric, job.failures) for job in calm.status.jobs
        ]
    assert [job.done for job in calm.status.jobs] == [60, 50, 40]
    assert refused < PLACES
    assert lost > 5
