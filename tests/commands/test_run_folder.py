"""What `rota run` and `rota status` make of a folder in which something is missing, foreign or damaged."""

import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from rota.cli import main
from rota.core.errors import InputError
from rota.execution.checkpoints import OWNER
from rota.execution.folder import RealFolder
from rota.execution.journal import DamagedJournal, read_journal

CONFIG = """
evolution = "pbt"
trial = "rota.execution.idle:idle"

[population]
trials = 4
steps = 200
interval = 10

[population.start]
lr = { low = 0.1, high = 1.0 }

[training]
step_s = 0.002

[local]
slots = [{ cores = 0 }]
"""
JOBS = """
scheduler = "srtf"
job = "rota.execution.jobs.idle:idle_jobs"
assignment_s = 0.05

[workload]
trace = "jobs.csv"

[kinds.short]
compute_s = 0.01

[local]
slots = [{ cores = 0 }]
"""
TRACE = "id,submit_s,gpus,model,iterations,duration_s\na,0,1,short,150,1.5\nb,0,1,short,100,1.0\n"


def printed(capsys, *words):
    code = main([str(word) for word in words])
    return code, capsys.readouterr()


def entries(folder):
    return list(read_journal(folder / "runs" / "0" / "journal.sqlite"))


def killed_run(config, folder):
    """A run whose controller was killed when some of its trials or jobs had checkpoints."""
    controller = subprocess.Popen(
        [sys.executable, "-m", "rota", "run", str(config), "--out", str(folder)], stderr=subprocess.DEVNULL
    )
    checkpoints = folder / "runs" / "0" / "checkpoints"
    until_s = time.monotonic() + 60
    while len(list(checkpoints.glob("*.part"))) < 4:
        assert time.monotonic() < until_s
        assert controller.poll() is None
        time.sleep(0.01)
    controller.send_signal(signal.SIGKILL)
    controller.wait()


@pytest.fixture(scope="module", params=["population", "jobs"])
def began(request, tmp_path_factory):
    """Folders of killed runs, to be copied."""
    folder = tmp_path_factory.mktemp(request.param)
    config = folder / "config.toml"
    config.write_text(CONFIG if request.param == "population" else JOBS)
    (folder / "jobs.csv").write_text(TRACE)
    killed_run(config, folder / "run")
    return folder / "run"


@pytest.fixture
def run(began, tmp_path):
    """A killed run of one's own; its trace is where it was."""
    shutil.copytree(began, tmp_path / "run", symlinks=True)
    return tmp_path / "run"


@pytest.fixture
def repetition(run):
    return run / "runs" / "0"


def refused(capsys, run, said):
    """Resume and status say the same; nothing is changed by either, and nothing is over."""
    files = [file for pattern in ("*.part", "config.toml") for file in run.rglob(pattern)]
    before = {file: file.stat().st_mtime_ns for file in files}
    for words in (["run", "--resume", run], ["status", run]):
        code, out = printed(capsys, *words)
        assert code == 2
        assert said in out.err
        assert out.err.count("\n") == 1
        assert not out.out
    assert {file: file.stat().st_mtime_ns for file in files} == before


def completes(capsys, run, *more):
    code, out = printed(capsys, "run", "--resume", run, "--json", *more)
    assert code == 0, out.err
    found = json.loads(out.out)
    assert found["complete"]
    assert found.get("failures", 0) == 0
    assert {each["status"] for each in found.get("trials", found.get("jobs"))} == {"finished"}
    return out


# ── storage ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("empty", [False, True], ids=["no folder", "an empty folder"])
def test_missing_storage_is_no_failure_of_trials_and_the_run_goes_on_once_it_is_back(
    run, repetition, capsys, tmp_path, empty
):
    (repetition / "checkpoints").rename(tmp_path / "away")
    if empty:
        (repetition / "checkpoints").mkdir()  # where storage was mounted
    code, out = printed(capsys, "run", "--resume", run)
    assert code == 2
    assert "is their storage mounted?" in out.err
    assert not {entry.kind for entry in entries(run)} & {"ended", "stopped"}
    code, out = printed(capsys, "status", run)
    assert code == 0
    assert "is their storage mounted?" in out.err
    if empty:
        (repetition / "checkpoints").rmdir()
    (tmp_path / "away").rename(repetition / "checkpoints")
    completes(capsys, run)


def test_storage_that_is_gone_for_good_is_trained_again_if_that_is_wanted(run, repetition, capsys):
    shutil.rmtree(repetition / "checkpoints")
    completes(capsys, run, "--salvage")


def test_storage_that_goes_while_a_run_goes_on_stops_it(run, repetition, tmp_path, capsys):
    resumed = subprocess.Popen(
        [sys.executable, "-m", "rota", "run", "--resume", str(run)], stderr=subprocess.PIPE, text=True
    )
    before, until_s = len(entries(run)), time.monotonic() + 60
    while len(entries(run)) < before + 3:
        assert time.monotonic() < until_s
        time.sleep(0.01)
    (repetition / "checkpoints").rename(tmp_path / "away")
    _, said = resumed.communicate(timeout=60)
    assert resumed.returncode == 2
    assert "bring its folder back" in said or "is their storage mounted?" in said
    (tmp_path / "away").rename(repetition / "checkpoints")
    completes(capsys, run)


def test_the_checkpoints_of_another_run_are_not_taken_for_ones_own(run, repetition, capsys):
    (repetition / "checkpoints" / OWNER).write_text("another")
    code, out = printed(capsys, "run", "--resume", run)
    assert code == 2
    assert "holds the checkpoints of another run" in out.err


# ── journal and configuration ───────────────────────────────────────────────────────────────────────────────


def test_a_journal_that_is_gone_is_missed(run, repetition, capsys):
    for file in repetition.glob("journal.sqlite*"):
        file.unlink()
    refused(capsys, run, "journal.sqlite: is missing or empty, but there are")


def test_a_journal_that_is_gone_without_its_lock_is_missed_too(run, repetition, capsys):
    (repetition / "journal.sqlite").unlink()
    (repetition / "journal.sqlite-wal").unlink()
    refused(capsys, run, "journal.sqlite: is missing, but")
    assert main(["run", "--resume", str(run), "--salvage"]) == 2
    assert "--salvage" not in capsys.readouterr().err  # nothing is left that could be salvaged


def test_a_journal_that_is_gone_but_for_its_first_entry_is_missed_too(run, repetition, capsys):
    """What happened is in the log until SQLite moves it; the lock says how much was on the disk."""
    for name in ("journal.sqlite-wal", "journal.sqlite.lock"):
        (repetition / name).unlink()
    refused(capsys, run, "journal.sqlite: has only its first entry, but there are")


@pytest.mark.parametrize("gone", ["runs", "runs/0"])
def test_a_folder_of_journals_that_is_elsewhere_is_missed(run, tmp_path, capsys, gone):
    (run / gone).rename(tmp_path / "away")
    if gone != "runs":
        (run / gone).symlink_to(tmp_path / "unmounted")
    refused(capsys, run, f"{gone}: is missing, but the run has begun")
    (run / gone).unlink(missing_ok=True)
    (run / gone).symlink_to(tmp_path / "away")
    completes(capsys, run)


def test_a_repetition_that_is_gone_between_others_is_missed(config, tmp_path, capsys):
    run = tmp_path / "run"
    assert printed(capsys, "run", config, "--out", run, "--repeat", 3)[0] == 0
    shutil.rmtree(run / "runs" / "1")
    refused(capsys, run, "runs/1/journal.sqlite: is missing, but the run has begun")
    shutil.rmtree(run / "runs" / "0")
    refused(capsys, run, "runs/0/journal.sqlite: is missing, but the run has begun")


def test_a_run_of_which_nothing_is_there_yet_says_that_it_begins(config, tmp_path, capsys):
    """It was killed before its first entry, or its journal was on storage that is not mounted now."""
    run = tmp_path / "run"
    assert printed(capsys, "run", config, "--out", run)[0] == 0
    shutil.rmtree(run / "runs" / "0")
    code, out = printed(capsys, "run", "--resume", run)
    assert code == 0
    assert "there is no journal yet; the run begins now" in out.err


def test_a_journal_whose_log_alone_is_left_is_missed_and_the_log_is_kept(run, repetition, capsys):
    """SQLite deletes the log of an empty file, even where it is only to read."""
    whole, log = (
        (repetition / "journal.sqlite").read_bytes(),
        (repetition / "journal.sqlite-wal").read_bytes(),
    )
    (repetition / "journal.sqlite").write_bytes(b"")
    refused(capsys, run, "journal.sqlite: is empty, but has not always been")
    assert (repetition / "journal.sqlite-wal").read_bytes() == log
    (repetition / "journal.sqlite").write_bytes(whole)
    completes(capsys, run)


def test_a_journal_whose_first_bytes_are_gone_is_damaged_not_something_else(run, repetition, capsys):
    with (repetition / "journal.sqlite").open("r+b") as stream:
        stream.write(b"gone")
    (repetition / "journal.sqlite-wal").unlink()
    refused(capsys, run, "journal.sqlite: is damaged")


@pytest.mark.parametrize("renames", range(1, 6))
def test_who_is_killed_while_it_salvages_loses_nothing_more(run, repetition, capsys, renames):
    """What was salvaged gets a name, the damaged file and two beside it get theirs, it gets the file's."""
    with closing(sqlite3.connect(repetition / "journal.sqlite")) as journal:
        (count,) = journal.execute("SELECT count(*) FROM entry").fetchone()
        journal.execute("UPDATE entry SET body = body || ' ' WHERE number = ?", (count - 1,))
        journal.commit()
        killed = subprocess.run(
            [sys.executable, "-c", KILLED_BY_RENAMES, str(repetition / "journal.sqlite"), str(renames)],
            check=False,
        )
    assert killed.returncode == -signal.SIGKILL
    assert [entry.number for entry in entries(run)] == list(range(1, count - 1))
    completes(capsys, run)
    assert len(list(repetition.glob("journal-damaged-*.sqlite"))) == 1
    assert not list(repetition.glob(".journal*"))


KILLED_BY_RENAMES = """
import os, signal, sys
from pathlib import Path
from rota.execution.journal import salvage

rename, left = Path.rename, int(sys.argv[2])

def rename_and_die(self, target):
    global left
    rename(self, target)
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)

Path.rename = rename_and_die
salvage(Path(sys.argv[1]))
"""


def test_a_journal_without_its_wal_is_missed_and_what_is_left_of_it_can_be_resumed(run, repetition, capsys):
    sealed(repetition, len(entries(run)))
    (repetition / "journal.sqlite-wal").unlink()
    refused(capsys, run, "journal.sqlite-wal is missing or cut off")
    out = completes(capsys, run, "--salvage")
    assert "goes on with what comes before it" in out.err
    assert list(repetition.glob("journal-damaged-1.sqlite"))


def sealed(repetition, count):
    """As if so many entries had been on the disk: a run that is killed early may not have come to that."""
    from rota.execution.journal import _seal

    lock = os.open(repetition / "journal.sqlite.lock", os.O_RDWR)
    _seal(lock, count)
    os.close(lock)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda file: file.write_text(""), "config.toml: is empty"),
        (lambda file: file.unlink(), "config.toml: is missing"),
        (lambda file: file.write_text(file.read_text().replace("seed = 0", "seed = 7")), "has been changed"),
        (lambda file: file.write_text("[training]\nstep_s = 1\n"), "has been changed"),
    ],
    ids=["empty", "missing", "another seed", "another one"],
)
def test_a_configuration_that_is_not_the_one_that_it_began_with_is_refused(run, capsys, change, said):
    change(run / "config.toml")
    refused(capsys, run, said)


def test_a_configuration_may_be_written_otherwise(run, capsys):
    (run / "config.toml").write_text("# a remark\n\n" + (run / "config.toml").read_text())
    completes(capsys, run)


def test_every_flipped_byte_that_changes_an_entry_is_found(run, repetition, tmp_path, capsys):
    """Bytes of the main file, of which SQLite itself has no checksum."""
    database = sqlite3.connect(repetition / "journal.sqlite")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    whole, content = entries(run), (repetition / "journal.sqlite").read_bytes()
    chance, damaged = random.Random(3), 0
    for _ in range(300):
        changed = bytearray(content)
        changed[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        (repetition / "journal.sqlite").write_bytes(changed)
        found = []
        try:
            found.extend(read_journal(repetition / "journal.sqlite"))
        except InputError as error:
            damaged += isinstance(error, DamagedJournal)
        else:
            assert found == whole
        assert found == whole[: len(found)]
    assert damaged > 30


def test_a_damaged_entry_is_named_and_what_comes_before_it_can_be_resumed(run, repetition, capsys):
    """Nothing is added to it before all of it was read, nor is anything said to have happened."""
    with closing(sqlite3.connect(repetition / "journal.sqlite")) as database:
        (count,) = database.execute("SELECT count(*) FROM entry").fetchone()
        database.execute("UPDATE entry SET body = body || ' ' WHERE number = ?", (count - 2,))
        database.commit()
        refused(capsys, run, f"entry {count - 2} is damaged")
        assert database.execute("SELECT count(*) FROM entry").fetchone() == (count,)
    completes(capsys, run, "--salvage")
    assert [entry.number for entry in entries(run)][: count - 1] == list(range(1, count))


def test_a_journal_without_checksums_is_still_read_and_resumed(run, repetition, capsys):
    database = sqlite3.connect(repetition / "journal.sqlite")
    body = json.loads(database.execute("SELECT body FROM entry WHERE number = 1").fetchone()[0])
    del body["config"]
    database.execute("UPDATE entry SET body = ? WHERE number = 1", (json.dumps(body),))
    database.execute("ALTER TABLE entry DROP COLUMN checksum")
    database.execute("PRAGMA user_version = 1")
    database.commit()
    database.close()
    (repetition / "journal.sqlite.lock").write_bytes(b"")
    (repetition / "checkpoints" / OWNER).unlink()
    assert printed(capsys, "status", run)[0] == 0
    completes(capsys, run)


# ── foreign files ───────────────────────────────────────────────────────────────────────────────────────────


def test_only_files_of_its_own_are_deleted_and_none_through_a_link(run, repetition, tmp_path, capsys):
    foreign = [
        repetition / "checkpoints" / name for name in ("notes.txt", "best.part", "0-1.pt", "0-1-2.part")
    ]
    for file in foreign:
        file.write_text("mine")
    (repetition / "checkpoints" / "folder.part").mkdir()
    (repetition / "checkpoints" / "1-1.part").unlink(missing_ok=True)
    (repetition / "checkpoints" / "folder.part" / "0-1.part").write_text("mine")
    (tmp_path / "mine").write_text("mine")
    (repetition / "checkpoints" / "3-99.part").symlink_to(tmp_path / "mine")
    completes(capsys, run)
    assert [file.read_text() for file in foreign] == ["mine"] * 4
    assert (repetition / "checkpoints" / "folder.part" / "0-1.part").read_text() == "mine"
    assert (tmp_path / "mine").read_text() == "mine"
    assert (repetition / "checkpoints" / "3-99.part").is_symlink()


def test_a_folder_in_the_way_of_a_checkpoint_is_named_and_stays(run, repetition, capsys):
    names = [re.fullmatch(r"(\d+)-(\d+)", file.stem) for file in (repetition / "checkpoints").glob("*.part")]
    number = next(int(name[1]) for name in names)
    version = 1 + max(int(name[2]) for name in names if int(name[1]) == number)
    (blocks := repetition / "checkpoints" / f"{number}-{version}.part").mkdir()
    code, out = printed(capsys, "run", "--resume", run)
    assert code == 2
    assert f"{blocks}: cannot be written (Is a directory); move what is there away" in out.err
    blocks.rmdir()
    completes(capsys, run)


def test_what_is_behind_a_linked_folder_stays(run, repetition, tmp_path, capsys):
    (repetition / "checkpoints").rename(tmp_path / "scratch")
    (repetition / "checkpoints").symlink_to(tmp_path / "scratch")
    (tmp_path / "scratch" / "77-1.part").write_text("mine")
    (tmp_path / "scratch" / "0-9999.part").write_text("mine")
    completes(capsys, run)
    assert (tmp_path / "scratch" / "77-1.part").read_text() == "mine"
    assert (tmp_path / "scratch" / "0-9999.part").read_text() == "mine"


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text(CONFIG.replace("steps = 200", "steps = 10"))
    return file


def test_a_folder_that_others_may_write_to_is_refused(config, tmp_path, capsys):
    out = tmp_path / "open"
    out.mkdir()
    out.chmod(0o777)
    code, said = printed(capsys, "run", config, "--out", out)
    assert (code, list(out.iterdir())) == (2, [])
    assert "others may write to it (mode 777)" in said.err
    out.chmod(0o755)
    assert printed(capsys, "run", config, "--out", out)[0] == 0


@pytest.mark.parametrize("planted", [".", "config.toml", "runs", "runs/0", "result.json"])
def test_nothing_is_written_through_a_planted_link(config, tmp_path, capsys, planted):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    out = tmp_path / "out"
    if planted == ".":
        out.symlink_to(elsewhere)
    else:
        (out / planted).parent.mkdir(parents=True, mode=0o700)
        (out / planted).symlink_to(elsewhere / "target")
    code, said = printed(capsys, "run", config, "--out", out)
    assert code == 2
    assert "link" in said.err
    assert list(elsewhere.iterdir()) == []


def test_a_folder_with_something_in_the_place_of_journals_is_refused(config, tmp_path, capsys):
    (tmp_path / "out" / "runs" / "0").mkdir(parents=True)
    code, said = printed(capsys, "run", config, "--out", tmp_path / "out")
    assert code == 2
    assert "has a run already" in said.err
    (tmp_path / "out" / "runs" / "0").rmdir()
    (tmp_path / "out" / "runs").chmod(0o777)
    code, said = printed(capsys, "run", config, "--out", tmp_path / "out")
    assert code == 2
    assert "runs: others may write to it (mode 777)" in said.err


def test_one_of_many_that_begin_at_once_in_a_folder_has_it(config, tmp_path):
    """However close together they are: the others are told that there is a run."""
    code = """
import sys, time
from pathlib import Path
from rota.core.errors import InputError
from rota.execution.folder import RealFolder
folder, at_s = RealFolder(Path(sys.argv[1])), float(sys.argv[2])
while time.time() < at_s:
    pass
try:
    folder.begin(sys.argv[3])
    print("began", sys.argv[3])
except InputError as error:
    print("refused" if "has a run already" in str(error) else error)
"""
    for attempt in range(4):
        folder, at_s = tmp_path / f"run{attempt}", time.time() + 1.5
        words = [[sys.executable, "-c", code, str(folder), str(at_s), f"number = {k}"] for k in range(8)]
        started = [subprocess.Popen(each, stdout=subprocess.PIPE, text=True) for each in words]
        said = [each.communicate(timeout=60)[0].strip() for each in started]
        (began,) = (each for each in said if each.startswith("began"))
        assert said.count("refused") == 7
        assert (folder / "config.toml").read_text() == began.removeprefix("began ")


def test_one_that_begins_while_another_looks_has_the_folder(tmp_path, monkeypatch):
    """The instant between looking and writing, without luck."""
    make_runs = RealFolder._make_runs

    def make_runs_late(folder):
        monkeypatch.undo()
        folder.begin("number = 2")
        make_runs(folder)

    monkeypatch.setattr(RealFolder, "_make_runs", make_runs_late)
    with pytest.raises(InputError, match="has a run already"):
        RealFolder(tmp_path / "run").begin("number = 1")
    assert (tmp_path / "run" / "config.toml").read_text() == "number = 2"


# ── where nothing can be written ────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def read_only():
    """Mounts a folder so that nothing can be written there, not even by root."""
    mounted = []

    def mount(folder: Path) -> None:
        done = subprocess.run(["mount", "--bind", folder, folder], capture_output=True, check=False)
        if done.returncode:
            pytest.skip(f"nothing can be mounted: {done.stderr.decode().strip()}")
        mounted.append(folder)
        subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.mark.parametrize("complete", [False, True])
def test_status_works_where_nothing_can_be_written(run, repetition, capsys, read_only, complete):
    """Not even the file that SQLite shares among those who read, which a copy may be without."""
    if complete:
        completes(capsys, run)
    wanted = printed(capsys, "status", run, "--json")
    (repetition / "journal.sqlite-shm").unlink(missing_ok=True)
    read_only(run)
    assert printed(capsys, "status", run, "--json") == wanted
    assert wanted[0] == 0
