"""`rota recordings`, as its user sees it."""

import json
import subprocess
import sys

import pytest

from rota import cli
from rota.recordings.profile import read_profiles
from rota.recordings.tree import read_tree

TABLE = """\
scenario,action_1,left_1_s,total_s,accuracy
early,0,30,40,0.5
early,1,32,40,0.25
late,0,10,40,0.125
"""
THROUGHPUTS = {"v100": {"('LM (batch size 5)', 1)": {"null": 4.0, "('LM (batch size 5)', 1)": [2.0, 2.0]}}}
APPLICATION = {
    "placements.csv": "placement,local_bsz,step_time,sync_time\n1,10,0.5,0.1\n4,10,1,0.25\n",
    "validation-10.csv": "progress,iteration,metric\n50,49,0.5\n100,99,0.75\n",
}


@pytest.fixture
def recordings(here, capsys):
    """Gives a function that runs `rota recordings …` in the folder `here`; the code, stdout and stderr."""

    def run(*words):
        return (cli.main(["recordings", *map(str, words)]), *capsys.readouterr())

    return run


@pytest.fixture
def sources(here):
    """A table, throughputs and an application."""
    (here / "table.csv").write_text(TABLE)
    (here / "gavel.json").write_text(json.dumps(THROUGHPUTS))
    (here / "bert").mkdir()
    for name, text in APPLICATION.items():
        (here / "bert" / name).write_text(text)
    return here


@pytest.fixture
def imported(recordings, sources):
    """All three, imported into `out`."""
    assert recordings("import-adaptation", "table.csv", "--model", "ConvNet2", "--out", "out/trees")[0] == 0
    assert recordings("import-gavel", "gavel.json", "--out", "out/profiles")[0] == 0
    assert recordings("import-pollux", "bert", "--out", "out/pollux")[0] == 0
    return sources / "out"


def test_a_table_becomes_trees(recordings, sources):
    words = ("table.csv", "--model", "ConvNet2", "--device", "GV100", "--out", "out")
    code, out, _ = recordings("import-adaptation", *words)
    assert code == 0
    assert out.splitlines() == [
        "out/ConvNet2-early-seed0: 2 of 2 sequences of deepen 0, nothing",
        "out/ConvNet2-late-seed0: 1 of 2 sequences of deepen 0, nothing",
    ]
    origin = read_tree(sources / "out" / "ConvNet2-early-seed0").provenance
    assert origin.device == "GV100"
    assert origin.command == "rota recordings import-adaptation table.csv --model ConvNet2"
    assert "sha256" in origin.note


def test_a_table_may_lack_actions_that_there_are(recordings, sources):
    words = ("table.csv", "--model", "ConvNet2", "--actions", "3", "--out", "out")
    code, out, _ = recordings("import-adaptation", *words)
    assert (code, out.splitlines()[0]) == (
        0, "out/ConvNet2-early-seed0: 2 of 3 sequences of deepen 0, deepen 1, nothing",
    )  # fmt: skip
    origin = read_tree(sources / "out" / "ConvNet2-early-seed0").provenance
    assert origin.command.endswith(" --model ConvNet2 --actions 3")


def test_throughputs_become_profiles(recordings, sources):
    code, out, _ = recordings("import-gavel", "gavel.json", "--out", "out")
    assert (code, out) == (0, "out: 1 profiles alone, 1 beside another\n")
    profiles = read_profiles(sources / "out")
    assert profiles.provenance.device == "v100"
    assert profiles.find("LM", 5, "v100").iteration_s == 0.25
    assert profiles.find("LM", 5, "v100", beside="LM", beside_batch_size=5).iteration_s == 0.5


@pytest.mark.parametrize("source", ["bert", "."])
def test_an_application_becomes_profiles_and_curves(recordings, sources, source):
    code, out, _ = recordings("import-pollux", source, "--device", "a100", "--out", "out")
    assert (code, out) == (0, "out/bert: 2 profiles, 1 curves\n")
    assert read_profiles(sources / "out" / "bert" / "profiles").devices == ("a100",)


def test_profiles_are_merged_and_where_they_come_from_is_said(recordings, sources):
    said = ("--source", "measured by hand")
    assert recordings("import-gavel", "gavel.json", "--out", "one", *said)[0] == 0
    (sources / "gavel.json").write_text(json.dumps({"k80": THROUGHPUTS["v100"]}))
    assert recordings("import-gavel", "gavel.json", "--out", "two")[0] == 0
    code, out, _ = recordings("merge", "one", "two", "--out", "both")
    assert (code, out) == (0, "both: 4 profiles of 1 models on v100, k80\n")
    both = read_profiles(sources / "both")
    assert both.provenance.command == "rota recordings merge one two"
    assert both.details["merged"]["one"]["note"].startswith("measured by hand; imported; sha256")
    code, _, err = recordings("merge", "one", "both", "--out", "more")
    assert code == 2
    assert "both: has LM at batch size 5 on 1 × v100, as one has; leave one of them out" in err


def test_what_was_imported_is_described_and_drawn(recordings, imported):
    code, out, err = recordings("describe", "out", "--figure", "what.png")
    assert code == 0
    assert out.startswith("out: 2 trees, 1 grid of curves, 2 sets of profiles\n")
    assert err == "note: drawn into what.png\n"
    assert (imported.parent / "what.png").read_bytes().startswith(b"\x89PNG")


def test_the_shipped_recordings_are_described_if_nothing_is_said(recordings, here):
    (here / "results" / "recordings").mkdir(parents=True)
    assert recordings("describe") == (0, "results/recordings: no recordings\n", "")


def test_a_simulation_takes_its_speeds_from_imported_profiles(recordings, sources, capsys):
    """On one K80, half as fast as the V100: 100 steps at 4 per second take 25 s there and 50 s here."""
    folder = sources / "trace"
    folder.mkdir()
    (folder / "a.trace").write_text("LM (batch size 5)\tpython3 lm.py\t--steps\t0\t100\t0\t1\n")
    both = {**THROUGHPUTS, "k80": {"('LM (batch size 5)', 1)": {"null": 2.0}}}
    (sources / "gavel.json").write_text(json.dumps(both))
    assert recordings("import-gavel", "gavel.json", "--out", "trace/profiles")[0] == 0
    (sources / "a.toml").write_text(
        'schedulers = ["fifo"]\ncost = "interval"\n[workload]\ntrace = "trace/a.trace"\n'
        '[cluster]\ngroups = [{ count = 1, gpus = 1, kind = "k80" }]\n'
    )
    assert cli.main(["simulate", "a.toml", "--out", "runs"]) == 0
    capsys.readouterr()
    metrics = json.loads(next((sources / "runs").rglob("metrics.json")).read_text())["metrics"]
    assert metrics["makespan_s"] == pytest.approx(50.0, abs=12.0)  # and the start


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("describe", "nowhere"), "nowhere: not there; give a folder with recordings in it"),
        (("describe", "bert", "--figure", "a.png"), "bert: no complete recording to draw"),
        (("import-adaptation", "no.csv", "--model", "m", "--out", "x"), "no.csv: cannot be read"),
        (("import-adaptation", "gavel.json", "--model", "m", "--out", "x"), "gavel.json: line 1: no column"),
        (("import-gavel", "table.csv", "--out", "x"), "table.csv: is not JSON"),
        (("import-pollux", "out", "--out", "x"), "no placements.csv in it"),
        (("import-gavel", "gavel.json", "--out", "table.csv/x"), "cannot be written"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(recordings, sources, words, message):
    before = sorted(sources.rglob("*"))
    code, _, err = recordings(*words)
    assert code == 2
    assert err.startswith("rota: error: ")
    assert message in err
    assert err.count("\n") == 1
    assert sorted(sources.rglob("*")) == before


@pytest.mark.parametrize(
    "words",
    [
        ("import-adaptation", "table.csv", "--model", "ConvNet2", "--out", "out/trees"),
        ("import-gavel", "gavel.json", "--out", "out/profiles"),
        ("import-pollux", "bert", "--out", "out/pollux"),
    ],
)
def test_nothing_that_was_recorded_is_written_over(recordings, imported, words):
    before = {path: path.read_bytes() for path in imported.rglob("*.*")}
    code, _, err = recordings(*words)
    assert code == 2
    assert "there is a recording in it; move it away, or choose another --out" in err
    assert {path: path.read_bytes() for path in imported.rglob("*.*")} == before


def test_recordings_are_read_without_anything_heavy(imported):
    code = (
        "import sys; from pathlib import Path; from rota.recordings.library import read_library; "
        f"read_library(Path({str(imported)!r})); print(*sys.modules)"
    )
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert not {"torch", "numba", "matplotlib", "pandas", "ray"} & set(loaded)
