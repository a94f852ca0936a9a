"""A trial that raises, a worker that dies, a checkpoint that is damaged, a disk that is full: none ends a run
in disorder."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rota.core.errors import InputError
from rota.core.population.events import Reported, Stopped, TrialFailed
from rota.core.population.view import Terms, TrialStatus
from rota.execution.assignments import Done, checkpoint_info
from rota.execution.checkpoints import OWNER, Checkpoints
from rota.execution.journal import NotWritten
from rota.execution.starting import CannotStart
from rota.execution.status import read_status
from rota.policies.allocation.fifo import FifoAllocation
from rota.policies.population import PopulationPolicy

FIFO = PopulationPolicy(FifoAllocation())
ODD = """
    import os, signal, sys, time
    from pathlib import Path
    from rota.execution.idle import Idle

    class Odd(Idle):
        def begin(self, trial):
            self.trial = trial
            super().begin(trial)

        def train(self, steps, hyper, changes):
            {train}
            super().train(steps, hyper, changes)

    def make(settings, seed) -> Odd:
        return Odd(0.0)
"""


def kinds(timeline, *wanted):
    return [event for event in timeline if isinstance(event, wanted)]


def test_a_trial_that_always_raises_is_let_go_with_its_traceback_kept_and_others_are_done(
    local, small, paths, trial_module
):
    trial = trial_module(ODD.format(train="assert hyper['lr'] != 0.5, 'trial 1 cannot'"))
    outcome = local(small(), FIFO, trial=trial)
    assert outcome.state.status.tolist() == [
        TrialStatus.FINISHED, TrialStatus.STOPPED, TrialStatus.FINISHED, TrialStatus.FINISHED,
    ]  # fmt: skip
    assert outcome.state.steps.tolist() == [40, 0, 40, 40]
    failed = kinds(outcome.timeline, TrialFailed)
    assert [event.trial for event in failed] == [1, 1, 1]
    assert [event.trial for event in kinds(outcome.timeline, Stopped)] == [1]
    assert [trial.status for trial in outcome.status.trials] == [
        "finished",
        "failed",
        "finished",
        "finished",
    ]
    kept, phase = read_status(paths.journal)
    assert phase == "complete"
    assert len(kept.failures) == 3
    assert "AssertionError: trial 1 cannot" in kept.failures[0].why
    assert "Traceback" in kept.failures[0].why


def test_a_trial_that_fails_once_is_trained_again_and_nothing_is_counted_twice(
    local, small, follows, trial_module, tmp_path
):
    mark = tmp_path / "failed once"
    trial = trial_module(
        ODD.format(
            train=f"""
            mark = Path({str(mark)!r})
            if hyper["lr"] == 0.5 and not mark.exists():
                mark.touch()
                raise RuntimeError("once")"""
        )
    )
    outcome = local(small(), FIFO, trial=trial)
    assert len(kinds(outcome.timeline, TrialFailed)) == 1
    assert outcome.state.steps.tolist() == [40] * 4
    assert follows(outcome.timeline, small().hypers) == 16


def test_a_worker_that_is_killed_is_replaced_and_its_trial_goes_on_from_its_checkpoint(
    local, small, follows, trial_module, tmp_path
):
    mark = tmp_path / "killed once"
    trial = trial_module(
        ODD.format(
            train=f"""
            mark = Path({str(mark)!r})
            if hyper["lr"] == 1.0 and self._had > 5 and not mark.exists():
                mark.touch()
                print("about to be killed", flush=True)
                os.kill(os.getpid(), signal.SIGKILL)"""
        )
    )
    outcome = local(small(), FIFO, trial=trial)
    (failed,) = kinds(outcome.timeline, TrialFailed)
    assert "SIGKILL" in failed.why
    assert "about to be killed" in failed.why
    assert outcome.state.steps.tolist() == [40] * 4
    assert follows(outcome.timeline, small().hypers) == 16


def test_the_rest_of_an_assignment_is_done_after_an_interval_of_it_has_failed(
    local, small, twice, follows, trial_module
):
    trial = trial_module(ODD.format(train="assert hyper['lr'] != 0.25 or self._had == 0.0, 'no second part'"))
    outcome = local(small(slots=1), PopulationPolicy(twice), trial=trial)
    assert outcome.state.steps.tolist() == [10, 40, 40, 40]
    assert outcome.status.trials[0].status == "failed"
    follows(outcome.timeline, small().hypers)


def test_whatever_a_trial_prints_disturbs_nothing_and_is_kept(local, small, paths, trial_module):
    noise = """
            print('{"digest": "x", "metric": 1}', flush=True)
            os.write(1, b"\\xff\\x00 no text\\n")
            os.write(2, b"to stderr\\n")"""
    trial = trial_module(ODD.format(train=noise))
    assert local(small(), FIFO, trial=trial).state.steps.tolist() == [40] * 4
    log = paths.logs / "slot0.log"
    assert b"to stderr" in log.read_bytes()
    assert log.stat().st_mode & 0o777 == 0o600


CANNOT = """
    from rota.execution.idle import Idle

    def make(settings, seed) -> Idle:
        raise RuntimeError("no such data")
"""


def test_workers_that_cannot_start_are_the_users_mistake_not_that_of_the_trials(local, small, trial_module):
    trial = trial_module(CANNOT)
    with pytest.raises(CannotStart, match=r"no such data; all .*slot[01]\.log$") as error:
        local(small(), FIFO, trial=trial)
    assert "Traceback" not in str(error.value)
    with pytest.raises(CannotStart, match="no_such_module"):
        local(small(), FIFO, trial="no_such_module:make")


@pytest.mark.parametrize("name", ["os", "os:system('x')", "a b:c", "..x:y", "x:y\n", "x:y;z", "'x':y", ""])
def test_a_name_that_is_not_that_of_a_function_is_refused(local, small, name):
    with pytest.raises(InputError, match="module:function"):
        local(small(), FIFO, trial=name)


DAMAGES = {
    "torn": lambda file: file.write_bytes(file.read_bytes()[:-1]),
    "truncated": lambda file: file.write_bytes(b""),
    "one bit off": lambda file: file.write_bytes(file.read_bytes()[:-1] + b"x"),
    "foreign": lambda file: file.write_bytes(b"somebody else's\nfile\n\n"),
    "of another trial": lambda file: file.write_bytes(file.with_name("2-1.part").read_bytes()),
    "gone": lambda file: file.unlink(),
}


def stop_after(reports):
    """Asks the run to stop once so many trials have reported."""
    seen = []

    def watch(status, events):
        seen.extend(kinds(events, Reported))

    return {"watch": watch, "asked_to_stop": lambda: len(seen) >= reports}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_checkpoint_is_found_out_and_made_again_from_the_one_before_it(
    local, small, paths, follows, damage
):
    wanted = small(slots=1)
    stopped = local(wanted, FIFO, **stop_after(7))
    assert not stopped.complete
    reports = [len(history) for history in stopped.state.history]
    assert reports == [2, 2, 2, 2]  # with what was being trained when it was asked to stop
    for trial in range(3):
        damage(paths.checkpoints.file(trial, 2))
    outcome = local(wanted, FIFO)
    assert outcome.complete
    assert outcome.state.steps.tolist() == [40] * 4
    assert not kinds(outcome.timeline, TrialFailed)
    assert follows(outcome.timeline, wanted.hypers) == 16


@pytest.mark.parametrize("damage", [DAMAGES["torn"], DAMAGES["gone"]], ids=["torn", "gone"])
@pytest.mark.parametrize("report_each", [True, False], ids=["each", "list"])
def test_if_the_one_before_it_is_damaged_too_the_trial_is_trained_again_along_its_lineage(
    local, small, paths, follows, twice, damage, report_each
):
    wanted, policy = small(slots=1, report_each=report_each), FIFO if report_each else PopulationPolicy(twice)
    stopped = local(wanted, policy, **stop_after(11))
    assert not stopped.complete
    for version in range(1, 5):
        for trial in (0, 1):
            if (file := paths.checkpoints.file(trial, version)).exists():
                damage(file)
    outcome = local(wanted, policy)
    assert outcome.complete
    assert not kinds(outcome.timeline, TrialFailed)
    assert follows(outcome.timeline, wanted.hypers) == 16


def test_only_checkpoints_that_may_be_needed_are_kept(local, small, paths):
    outcome = local(small(), FIFO)
    names = sorted(file.name for file in paths.checkpoints.folder.glob("*.part"))
    assert names == [f"{trial}-{version}.part" for trial in range(4) for version in (3, 4)]
    assert outcome.complete
    assert {file.stat().st_mode & 0o777 for file in paths.checkpoints.folder.iterdir()} == {0o600}
    assert paths.checkpoints.folder.stat().st_mode & 0o777 == 0o700


def test_what_a_dead_controller_left_behind_is_cleared_away(local, small, paths):
    local(small(), FIFO, **stop_after(5))
    for name in ("0-77.part", "0-1.12345.partial"):
        (paths.checkpoints.folder / name).write_text("left behind")
    local(small(), FIFO)
    assert len(list(paths.checkpoints.folder.iterdir())) == 8 + len([OWNER])


@pytest.fixture
def small_disk():
    """Mounts a disk of so many kB on a folder, as long as the test runs; gives a way to make it larger."""
    mounted = []

    def mount(folder, kilobytes):
        folder.mkdir(parents=True, exist_ok=True)
        size = f"size={kilobytes}k,mode=0700"
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)], capture_output=True, check=False
        )
        if done.returncode:
            pytest.skip(f"no small disk can be mounted: {done.stderr.decode().strip()}")
        mounted.append(folder)

    def enlarge():
        subprocess.run(["mount", "-o", "remount,size=9m", str(mounted[0])], check=True)

    yield mount, enlarge
    for folder in mounted:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.parametrize(("what", "kilobytes"), [("checkpoints", 20), ("everything", 110)])
def test_a_full_disk_stops_the_run_cleanly_and_it_goes_on_when_there_is_room(
    local, small, paths, follows, small_disk, what, kilobytes
):
    mount, enlarge = small_disk
    mount(paths.checkpoints.folder if what == "checkpoints" else paths.path, kilobytes)
    with pytest.raises(NotWritten, match="make room"):
        local(small(trials=8), FIFO)
    enlarge()
    outcome = local(small(trials=8), FIFO)
    assert outcome.restored > 0
    assert not kinds(outcome.timeline, TrialFailed)
    assert follows(outcome.timeline, small(trials=8).hypers) == 32


def test_a_checkpoint_that_does_not_fit_leaves_no_partial_file(tmp_path):
    folder = Checkpoints(tmp_path / "c")
    folder.claim("run")
    code = f"""
import resource
from pathlib import Path
from rota.execution.checkpoints import Checkpoints
from rota.execution.assignments import Done, checkpoint_info
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
which = checkpoint_info(0, 1, 10, {{}}, (), None, "run")
Checkpoints(Path({str(folder.folder)!r})).write(Done(which.digest, 0.5), which, b"x" * 5000)
"""
    tried = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "NotWritten" in tried.stderr
    assert [file.name for file in folder.folder.iterdir()] == [OWNER]
    which = checkpoint_info(0, 1, 10, {}, (), None, "run")
    folder.write(Done(which.digest, 0.5), which, b"x\ny")
    assert folder.read(which).content == b"x\ny"


def test_a_worker_that_was_stuck_is_killed_with_its_controller(tmp_path):
    """Whatever kills the controller: here nothing is closed, nothing is said."""
    code = """
import sys, time
from pathlib import Path
from rota.execution.local import LocalConfig, LocalSlotConfig
from rota.execution.engine import WorkerSetup
from rota.execution.folder import RunPaths
from rota.execution.assignments import Assignment, checkpoint_info
config = LocalConfig((LocalSlotConfig(count=2),))
books = RunPaths(Path(sys.argv[1]))
books.make()
setup = WorkerSetup("rota.execution.idle:idle", {"step_s": 1000.0}, 0, books)
workers = config.workers(config.cluster(), setup)
workers.nodes()
for slot in range(2):
    workers.send(slot, Assignment(checkpoint_info(slot, 1, 10, {}, (), None, "run")))
print(*workers.pids(), flush=True)
time.sleep(1000)
"""
    controller = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True
    )
    pids = [int(word) for word in controller.stdout.readline().split()]
    assert len(pids) == 2
    os.kill(controller.pid, signal.SIGKILL)
    controller.wait()
    controller.stdout.close()
    until_s = time.monotonic() + 60
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < until_s, "a worker is left"
        time.sleep(0.01)


def alive(pid):
    """A process that has ended and that nobody has asked about is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_run_stops_after_the_present_intervals_and_goes_on_where_it_was(local, small, twice, follows):
    wanted, settings = small(terms=Terms(10, 80)), {"step_s": 0.002}
    stopped = local(wanted, PopulationPolicy(twice), settings=settings, **stop_after(5))
    assert not stopped.complete
    before = sum(len(history) for history in stopped.state.history)
    assert 5 <= before <= 12  # a few reports may come at once, and what each slot was at is waited for
    outcome = local(wanted, PopulationPolicy(twice), settings=settings)
    assert outcome.complete
    assert follows(outcome.timeline, wanted.hypers) == 32
