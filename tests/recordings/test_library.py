"""All recordings below a folder, and what is said of them."""

import subprocess
import sys
from dataclasses import replace

import pytest

from rota.core.errors import InputError
from rota.recordings.curve import write_curves
from rota.recordings.describe import text
from rota.recordings.library import entries, read_library, recording_folders
from rota.recordings.profile import write_profiles
from rota.recordings.tree import folder_name, write_tree


@pytest.fixture
def store(tmp_path, make_tree, curves, profiles):
    """Two models, of which one has a whole tree and a part of another; curves; profiles; two wrecks."""
    late = make_tree(scenario="late", start_s=10.0, model="ConvNet3", seed=0)
    late = replace(late, curves={p: c for p, c in late.curves.items() if p != (1, 1)})
    for tree in (late, make_tree()):
        write_tree(tmp_path / "trees" / folder_name(tree), tree)
    write_curves(tmp_path / "curves", curves)
    write_profiles(tmp_path / "gpus" / "profiles", profiles)
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "curves.csv").write_text("setting\n")
    write_tree(tmp_path / "bent", make_tree(scenario="bent"))
    (tmp_path / "bent" / "points.csv").write_text("sequence\n")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "curves.csv").write_text("setting\n")
    return tmp_path


def test_folders_are_found_by_name_and_hidden_ones_are_not(store):
    found = [path.relative_to(store).as_posix() for path in recording_folders(store)]
    trees = ["trees/ConvNet2-early-seed3", "trees/ConvNet3-late-seed0"]
    assert found == ["bent", "curves", "gpus/profiles", "half", *trees]
    assert list(recording_folders(store / "curves")) == [store / "curves"]


def test_a_recording_does_not_hide_those_below_it(make_tree, curves, tmp_path):
    write_curves(tmp_path, curves)
    write_tree(tmp_path / "trees" / "early", make_tree())
    assert list(recording_folders(tmp_path)) == [tmp_path, tmp_path / "trees" / "early"]
    assert len(read_library(tmp_path)) == 2


LOOK = """
import sys
from pathlib import Path
from rota.recordings.library import read_library
print(*read_library(Path(sys.argv[1])).problems, sep="\\n")
"""


@pytest.mark.parametrize("mode", [0o000, 0o100, 0o400])
def test_a_folder_that_may_not_be_looked_into_is_a_problem(store, humble, mode):
    (store / "half").chmod(mode)
    look = [*humble, sys.executable, "-P", "-c", LOOK, str(store)]
    try:
        done = subprocess.run(look, capture_output=True, text=True, check=False)
    finally:
        (store / "half").chmod(0o700)
    said = f"{store}/half: may not be looked into; permit it, or give another folder"
    assert done.stdout.splitlines()[1] == said, done.stderr


def test_entries_say_their_shape_and_what_is_wrong(store):
    found = {entry.folder.name: entry for entry in entries(store)}
    assert found["profiles"].shape == "profile"
    assert found["half"].shape == "curves"
    assert found["half"].about is None
    assert "it has no recording.json" in found["half"].problem
    assert found["bent"].about is not None  # its own word is taken until it is read


def test_an_unknown_shape_is_a_problem(store):
    facts = store / "curves" / "recording.json"
    facts.write_text(facts.read_text().replace('"curves"', '"forest"', 1))
    problem = next(entry for entry in entries(store) if entry.folder.name == "curves").problem
    assert "unknown shape 'forest'" in problem


def test_a_library_reads_what_it_can_and_reports_the_rest(store):
    library = read_library(store)
    assert [held.name for held in library.trees] == [
        "trees/ConvNet2-early-seed3",
        "trees/ConvNet3-late-seed0",
    ]
    assert [held.name for held in library.curves] == ["curves"]
    assert [held.name for held in library.profiles] == ["gpus/profiles"]
    assert len(library) == 4
    bent, half = library.problems
    assert "bent/points.csv: not the file that recording.json describes" in bent
    assert "half: not a complete recording" in half
    assert (store / "half" / "curves.csv").exists()


def test_the_text_says_what_is_there_and_what_is_missing(store):
    said = text(read_library(store))
    assert said.startswith(
        f"{store}: 2 trees, 1 grid of curves, 1 set of profiles, 2 damaged or unfinished\n"
    )
    lines = [line.split() for line in said.splitlines()]
    early = "ConvNet2 digits early 3 10.0 s 40.0 s 4/4 75.0% 0-0 50.0% 25.0% rank 4"
    late = "ConvNet3 digits late 0 10.0 s 40.0 s 3/4 75.0% 0-0 58.3% –"
    assert early.split() in lines
    assert late.split() in lines
    assert "  missing: ConvNet2 on digits: late, ConvNet3 on digits: early" in said
    assert "  missing in trees/ConvNet3-late-seed0: 1-1" in said
    settings = (
        "ConvNet digits 2/3 2–3 4 s accuracy 50.0% to 75.0% lr: 0.1 0.001, batch_size: 64, rule: sgd adam"
    )
    assert settings.split() in lines  # 0.5 + 1 + 1.5 s, and 0.5 + 1 s
    assert "  missing in curves: b, c" in said
    measured = "gpus/profiles LM v100 4 1 1 4 load 50.0–150.0 ms 10 20"
    assert measured.split() in lines
    assert (
        "missing in gpus/profiles: ResNet batch 16 × 1 packed on v100, LM batch 10 × 1 packed on k80" in said
    )
    assert (
        "  from: cpu · torch 2.13.0 · rota 0.1.0 · abc · 2 recordings until 2026-01-02T03:04:05+00:00" in said
    )
    assert said.splitlines()[-2].startswith(f"  {store}/bent/points.csv: not the file")


def test_many_missing_things_are_counted(make_tree, tmp_path):
    write_tree(tmp_path, replace(make_tree(), curves={}))
    library = read_library(tmp_path)
    assert library.trees[0].name == tmp_path.name
    said = text(library)
    assert f"missing in {tmp_path.name}: the start, 0, 1, 0-0 and 3 more" in said
    assert "0/4" in said


def test_what_is_being_recorded_is_told_apart(tmp_path):
    pieces = tmp_path / "partial" / "ConvNet2-seed0" / "early"
    pieces.mkdir(parents=True)
    for name in ("0.json", "0.pt", "0-1.json"):
        (pieces / name).write_text("{}")
    library = read_library(tmp_path)
    assert library.unfinished == {"ConvNet2-seed0": 2}
    assert text(library).endswith("\n\nbeing recorded\n  ConvNet2-seed0: 2 pieces done")


def test_nothing_there(tmp_path):
    assert text(read_library(tmp_path)) == f"{tmp_path}: no recordings"
    with pytest.raises(InputError, match="nowhere: not there; give a folder with recordings in it"):
        read_library(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file: a file; give a folder"):
        read_library(tmp_path / "file")
