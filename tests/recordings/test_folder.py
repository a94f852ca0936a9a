"""The files of a recording: complete or not, and nothing in between goes unnoticed."""

import json
import math

import pytest

from rota.core.errors import InputError
from rota.recordings.folder import CsvSheet, complete, read_about, write_recording

COLUMNS = {"name": "", "at_s": "s"}


@pytest.fixture
def folder(tmp_path, origin):
    """A recording of two rows."""
    sheet = CsvSheet(COLUMNS, [("a, b", 0.1 + 0.2), ("c", math.nan)])
    write_recording(tmp_path / "r", "tree", {"model": "x"}, origin, {"rows.csv": sheet})
    return tmp_path / "r"


def change(folder, **facts):
    path = folder / "recording.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | facts))


def test_the_files_say_what_they_are(folder, origin):
    assert (folder / "rows.csv").read_text() == 'name,at_s\n"a, b",0.30000000000000004\nc,\n'
    facts = json.loads((folder / "recording.json").read_text())
    assert (facts["format"], facts["version"], facts["shape"]) == ("rota recording", 1, "tree")
    assert facts["files"]["rows.csv"]["columns"] == COLUMNS
    assert facts["files"]["rows.csv"]["rows"] == 2
    assert sorted(path.name for path in folder.iterdir()) == ["recording.json", "rows.csv"]
    about = read_about(folder, "tree")
    assert about.what == {"model": "x"}
    assert about.provenance == origin
    assert about.table("rows.csv").texts("name") == ["a, b", "c"]


def test_a_write_that_fails_leaves_what_was_there(folder, origin):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def rows():
        yield ("d", 1.0)
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError):
        write_recording(folder, "tree", {}, origin, {"rows.csv": CsvSheet(COLUMNS, rows())})
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_csv_that_cannot_be_written_does_not_make_a_recording(tmp_path, origin):
    (tmp_path / "r" / "rows.csv").mkdir(parents=True)
    with pytest.raises(InputError, match=r"rows.csv: exists and is not a file"):
        write_recording(tmp_path / "r", "tree", {}, origin, {"rows.csv": CsvSheet(COLUMNS, [])})
    assert not complete(tmp_path / "r")
    assert [path.name for path in (tmp_path / "r").iterdir()] == ["rows.csv"]


def test_without_recording_json_it_is_not_complete_and_nothing_is_deleted(folder):
    (folder / "recording.json").unlink()
    assert not complete(folder)
    with pytest.raises(
        InputError, match=r"r: not a complete recording, it has no recording.json; let the rec"
    ):
        read_about(folder)
    assert (folder / "rows.csv").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "recording.json: cannot be read"),
        ("[]", "recording.json: not the facts of a recording"),
        ('{"format": "other"}', "recording.json: not the facts of a recording"),
        (
            '{"format": "rota recording", "version": 2}',
            "a recording of version 2, this rota reads 1; move the folder",
        ),
        (
            '{"format": "rota recording", "version": 1}',
            "missing key 'shape': a string; move the",
        ),
        ('{"format": "rota recording", "version": 1, "files": 3}', "missing key 'shape'"),
    ],
)
def test_facts_that_are_none(folder, content, message):
    (folder / "recording.json").write_text(content)
    with pytest.raises(InputError, match=message):
        read_about(folder)


def test_another_shape_than_asked_for(folder):
    with pytest.raises(InputError, match="a recording of shape 'tree'; expected 'curves'"):
        read_about(folder, "curves")


@pytest.mark.parametrize("text", ["name,at_s\n", 'name,at_s\n"a, b",0.3\nc,\n', ""])
def test_a_csv_that_is_not_the_one_written(folder, text):
    (folder / "rows.csv").write_text(text)
    with pytest.raises(InputError, match=r"rows.csv: not the file that recording.json describes .checksum"):
        read_about(folder).table("rows.csv")


def test_a_csv_that_is_gone_or_not_listed(folder):
    (folder / "rows.csv").unlink()
    with pytest.raises(InputError, match=r"rows.csv: cannot be read"):
        read_about(folder).table("rows.csv")
    with pytest.raises(InputError, match=r"recording.json: does not list others.csv"):
        read_about(folder).table("others.csv")


def test_a_wrong_count_of_rows(folder):
    files = json.loads((folder / "recording.json").read_text())["files"]
    files["rows.csv"]["rows"] = 3
    change(folder, files=files)
    with pytest.raises(
        InputError, match=r"rows.csv: 2 rows where recording.json says 3; move the folder away"
    ):
        read_about(folder).table("rows.csv")


def test_a_provenance_that_is_none(folder):
    change(folder, provenance={"device": "cpu"})
    with pytest.raises(InputError, match=r"recording.json: provenance: missing key 'libraries'"):
        read_about(folder)
