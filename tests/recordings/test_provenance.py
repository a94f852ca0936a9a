"""Where a recording comes from."""

import subprocess
from datetime import UTC, datetime, timedelta, timezone

import pytest

from rota import __version__
from rota.config.bind import facts
from rota.core.errors import InputError
from rota.recordings.folder import Provenance, commit_of, provenance


def git(folder, *words):
    subprocess.run(
        ["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@b", *words],
        check=True,
        capture_output=True,
    )


def test_what_is_gathered():
    now = datetime(2026, 1, 2, 4, 4, 5, tzinfo=timezone(timedelta(hours=1)))
    found = provenance(device="cpu", seed=7, command="rota record", libraries=("numpy", "no-such"), now=now)
    assert found.recorded_at == "2026-01-02T03:04:05+00:00"
    assert list(found.libraries) == ["numpy"]
    assert (found.device, found.seed, found.command, found.rota) == ("cpu", 7, "rota record", __version__)


def test_the_clock_is_read_in_utc():
    found = datetime.fromisoformat(provenance(device="cpu", seed=None, command="").recorded_at)
    assert found.utcoffset() == timedelta(0)
    assert abs(found - datetime.now(UTC)) < timedelta(minutes=5)


def test_the_commit_of_a_checkout_with_and_without_changes(tmp_path):
    code = tmp_path / "src"
    code.mkdir()
    (code / "a.py").write_text("a = 1\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    commit = commit_of(code)
    assert len(commit) == 40
    (tmp_path / "results.csv").write_text("not code\n")
    assert commit_of(code) == commit
    (code / "a.py").write_text("a = 2\n")
    assert commit_of(code) == commit + "+changes"


def test_no_commit_outside_a_checkout_or_in_that_of_another_project(tmp_path):
    assert commit_of(tmp_path) == ""
    git(tmp_path, "init", "-q")
    (tmp_path / "environment").mkdir()
    (tmp_path / "environment" / "rota.py").write_text("")
    assert commit_of(tmp_path / "environment") == ""


def test_it_survives_json(origin):
    assert facts(Provenance, origin.to_json(), "f.json", "again") == origin


@pytest.mark.parametrize("change", [{"device": 3}, {"seed": "3"}, {"libraries": [1]}, {"more": 1}])
def test_what_is_not_one_is_refused(origin, change):
    with pytest.raises(InputError, match=f"f.json: .*{next(iter(change))}.*; record it again"):
        facts(Provenance, origin.to_json() | change, "f.json", "record it again")
