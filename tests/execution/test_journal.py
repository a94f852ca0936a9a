"""What was appended is there, whoever died meanwhile; nobody else writes, and nobody else reads."""

import errno
import fcntl
import math
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading

import pytest

from rota.core.errors import InputError
from rota.execution.journal import Journal, NotWritten, has_owner, read_journal


@pytest.fixture
def file(tmp_path):
    return tmp_path / "run" / "journal.sqlite"


def test_entries_come_back_in_their_order_with_numbers_from_one(file):
    with Journal(file) as journal:
        journal.append("began", {"seed": 3}, at_s=0.5)
        journal.append_all([(1.5, "reported", {"metric": 0.1 + 0.2}), (1.5, "emptied", {})])
    with Journal(file) as journal:
        assert list(journal.read()) == [
            (1, 0.5, "began", {"seed": 3}),
            (2, 1.5, "reported", {"metric": 0.30000000000000004}),
            (3, 1.5, "emptied", {}),
        ]


def test_what_is_not_finite_comes_back_as_it_was(file):
    with Journal(file) as journal:
        journal.append("reported", {"metric": math.nan, "least": -math.inf})
        (entry,) = journal.read()
    assert math.isnan(entry.body["metric"])
    assert entry.body["least"] == -math.inf


def test_the_journal_and_its_folder_are_for_their_owner_only(file):
    with Journal(file) as journal:
        journal.append("began", {})
        assert file.parent.stat().st_mode & 0o777 == 0o700
        assert {path.stat().st_mode & 0o777 for path in file.parent.iterdir()} == {0o600}
        assert len(list(file.parent.iterdir())) >= 3  # with its lock and what is not yet in the main file


def test_there_is_one_owner_at_a_time(file):
    with Journal(file):
        assert has_owner(file)
        with pytest.raises(InputError, match="another process runs this"):
            Journal(file)
    assert not has_owner(file)
    Journal(file).close()


def test_a_file_system_without_locks_is_refused_with_a_sentence(file, monkeypatch):
    def flock(lock, how):
        raise OSError(errno.ENOLCK, "No locks available")

    Journal(file).close()
    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(InputError, match=r"No locks available\); choose a folder on another file system"):
        Journal(file)
    assert not has_owner(file)


def test_what_cannot_be_written_for_another_reason_than_room_is_not_said_to_need_room(file):
    with Journal(file) as journal, sqlite3.connect(file, isolation_level=None) as other:
        journal._database.execute("PRAGMA busy_timeout = 0")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(NotWritten, match=r"locked\); make it writable"):
            journal.append("began", {})
        other.execute("ROLLBACK")
    other.close()


def test_a_journal_that_is_about_to_be_made_has_no_entries(file):
    file.parent.mkdir()
    file.touch()
    assert list(read_journal(file)) == []


def test_others_may_read_while_its_owner_writes(file):
    with Journal(file) as journal:
        journal.append("began", {})
        entries = read_journal(file)
        assert next(entries).kind == "began"
        journal.append("ended", {})
        assert [entry.kind for entry in read_journal(file)] == ["began", "ended"]


def test_reading_what_is_not_there_makes_nothing(file):
    with pytest.raises(InputError, match="no such journal"):
        list(read_journal(file))
    assert not file.parent.exists()
    assert not has_owner(file)


@pytest.mark.parametrize("content", [b"not a database, but text of some length" * 40, None])
def test_a_file_of_something_else_is_refused_and_left_alone(file, content):
    file.parent.mkdir()
    if content is None:
        with sqlite3.connect(file) as other:
            other.execute("CREATE TABLE mine (a)")
        other.close()
    else:
        file.write_bytes(content)
    before = file.read_bytes()
    with pytest.raises(InputError, match="not a journal"):
        Journal(file)
    assert file.read_bytes() == before


def test_all_of_an_instant_is_kept_or_none_of_it(file):
    with Journal(file) as journal:
        with pytest.raises(TypeError):
            journal.append_all([(0.0, "good", {}), (0.0, "bad", {"what": object()})])
        assert list(journal.read()) == []


def appended(journal, most=1000):
    for _ in range(most):
        journal.append("reported", {"text": "x" * 1000})


def test_a_full_disk_is_an_error_after_which_what_was_kept_is_whole(file):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Journal(file) as journal:
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, before[1]))
        try:
            with pytest.raises(NotWritten, match="make room"):
                appended(journal)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        kept = len(list(journal.read()))
        journal.append("reported", {"text": "there is room again"})
    assert 1 <= kept < 1000
    assert [entry.number for entry in read_journal(file)] == list(range(1, kept + 2))


def test_what_was_appended_is_there_after_its_writer_was_killed(file):
    code = f"""
        from pathlib import Path
        from rota.execution.journal import Journal
        journal = Journal(Path({str(file)!r}))
        for number in range(100000):
            journal.append("wrote", {{"number": number}})
            print(number, flush=True)
    """
    writer = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    for _ in range(50):
        said = int(writer.stdout.readline())
    os.kill(writer.pid, signal.SIGKILL)
    said = max([said, *map(int, writer.stdout.read().split())])
    writer.wait()
    writer.stdout.close()
    with Journal(file) as journal:
        numbers = [entry.body["number"] for entry in journal.read()]
    assert numbers == list(range(len(numbers)))
    assert said < len(numbers) <= said + 2


def test_what_its_owner_moves_to_the_main_file_while_a_copy_is_made_is_in_the_copy(file, monkeypatch):
    """Where nothing can be written a copy is read, which is made of two files, one after the other."""
    copied = []

    def copy(source, target):
        target.write_bytes(source.read_bytes())
        copied.append(source.name)
        if len(copied) == 1:
            journal.settle()
            journal.append("reported", {"number": 3})

    with Journal(file) as journal:
        journal.append_all([(0.0, "reported", {"number": number}) for number in range(3)])
        monkeypatch.setattr("rota.execution.journal.copyfile", copy)
        monkeypatch.setattr("rota.execution.journal.os.access", lambda path, how: False)
        numbers = [entry.body["number"] for entry in read_journal(file)]
    assert numbers == [0, 1, 2]
    assert len(copied) == 2


def test_a_journal_can_be_read_while_it_is_made(tmp_path):
    """Marks and tables are read as of one moment: half of them may be there at the next."""
    failed = []

    def look(file, made):
        try:
            while not made.is_set():
                if file.exists() and file.stat().st_size:
                    list(read_journal(file))
        except Exception as error:
            failed.append(error)

    for number in range(40):
        file, made = tmp_path / f"{number}.sqlite", threading.Event()
        reader = threading.Thread(target=look, args=(file, made))
        reader.start()
        with Journal(file) as journal:
            journal.append("began", {}, 0.0)
        made.set()
        reader.join()
    assert failed == []
