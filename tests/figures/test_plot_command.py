"""`rota plot` from the command line."""

import argparse
import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from rota.commands import plot
from rota.core.errors import ConfigError, InputError


def parse(*arguments):
    parser = argparse.ArgumentParser()
    plot.add_parser(parser.add_subparsers(dest="command"))
    return parser.parse_args(["plot", *map(str, arguments)])


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def drawn(capsys):
    return [Path(line) for line in capsys.readouterr().out.splitlines()]


def test_all_figures_of_all_runs_are_drawn_and_said(here, make_run, capsys):
    make_run("results/simulate/a/srtf")
    make_run("results/simulate/a/fifo", "fifo")
    assert plot.run(parse("--quick")) == 0
    files = drawn(capsys)
    folder = Path("plots/by-hand-3-jobs-2-gpus")
    assert files == [folder / f"{name}.png" for name in ("jct", "comparison", "load", "gantt-fifo")]
    assert sorted(folder.iterdir()) == sorted(files)


def test_only_what_is_asked_for_is_drawn(here, make_run, capsys):
    make_run("run")
    plot.run(parse("run", "--quick", "--figure", "jct", "--figure", "load", "--out", "elsewhere"))
    assert [file.name for file in drawn(capsys)] == ["jct.png", "load.png"]
    assert not Path("plots").exists()


def test_traces_are_written_beside_the_figures(here, make_run, capsys):
    make_run("run")
    plot.run(parse("run", "--quick", "--figure", "jct", "--chrome", "--window", 0, 0.5))
    trace = drawn(capsys)[-1]
    assert trace.name == "trace-srtf.json"
    bars = [record for record in json.loads(trace.read_text())["traceEvents"] if record["ph"] == "X"]
    assert [(record["ts"], record["dur"]) for record in bars] == [(0, 1_800_000_000)]


def test_a_run_is_drawn_once_however_often_it_is_named(here, make_run, capsys):
    make_run("runs/a")
    plot.run(parse("runs", "runs/a", "runs/a", "--quick", "--figure", "gantt"))
    assert [file.name for file in drawn(capsys)] == ["gantt-srtf.png"]


def test_without_runs_it_says_what_to_run_first(here):
    with pytest.raises(InputError, match=r"no runs in results; .*rota simulate --out results/simulate"):
        plot.run(parse())


def test_a_run_that_is_not_complete_is_refused_if_it_was_asked_for(here, make_run):
    make_run("run")
    Path("run/metrics.json").unlink()
    with pytest.raises(InputError, match="run: not a complete run"):
        plot.run(parse("run"))


def test_a_run_that_is_not_complete_is_left_out_of_many(here, make_run, capsys):
    make_run("runs/a")
    make_run("runs/b", "fifo")
    Path("runs/b/metrics.json").unlink()
    plot.run(parse("runs", "--quick"))
    captured = capsys.readouterr()
    assert captured.err == "note: runs/b: not a complete run, left out\n"
    assert "gantt-srtf.png" in captured.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--figure", "gant"], "unknown figure 'gant'. Did you mean 'gantt'?"),
        (["--window", "5", "2"], "--window 5 2"),
        (["--window", "nan", "2"], "--window nan 2"),
        (["--normalise-to", "tiresias"], "unknown scheduler 'tiresias'"),
    ],
)
def test_a_mistake_is_an_error_that_says_what_would_be_right(here, make_run, arguments, message):
    make_run("run")
    with pytest.raises((ConfigError, InputError)) as error:
        plot.run(parse("run", "--quick", *arguments))
    assert message in str(error.value)


def test_a_folder_that_cannot_be_written_is_an_input_error(here, make_run):
    make_run("run")
    Path("file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        plot.run(parse("run", "--quick", "--out", "file"))


def test_footers_name_a_command_that_says_the_same():
    options = "--out there --figure jct --figure load --normalise-to fifo --window 2 3.5 --chrome --quick"
    command = f"rota plot 'my runs' {options}"
    assert plot.command_of(parse()) == "rota plot"
    assert plot.command_of(parse(*shlex.split(command)[2:])) == command


def test_the_command_is_imported_without_anything_heavy():
    code = "import sys, rota.commands.plot; print(*sys.modules)"
    loaded = set(subprocess.check_output([sys.executable, "-c", code], text=True).split())
    assert not loaded & {"numpy", "numba", "matplotlib"}


def test_it_can_say_how_many_figures_are_where(here, make_run, capsys):
    make_run("run")
    plot.run(parse("run", "--quick", "--svg", "--chrome", "--figure", "jct", "--figure", "load", "--count"))
    assert capsys.readouterr().out == "2 figures and 1 trace in plots/by-hand-3-jobs-2-gpus\n"


def git(*words):
    names = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *names, *words], check=True, capture_output=True)


def test_figures_of_a_checkout_that_are_in_git_are_drawn_only_if_asked_for(here, make_run, capsys):
    make_run("results/run")
    folder = Path("plots/by-hand-3-jobs-2-gpus")
    folder.mkdir(parents=True)
    (folder / "jct.png").write_text("as it was")
    git("init", "-q")
    git("add", "plots")
    git("commit", "-qm", "a figure")
    words = ("--quick", "--svg", "--figure", "jct")
    Path("plotting.py").write_text("")
    assert plot.run(parse(*words)) == 0
    said = capsys.readouterr()
    assert said.out == f"{folder}/jct.svg\n"  # which is not in git
    assert said.err == f"note: in git, and left as it was: {folder}/jct.png; --shipped draws it, too\n"
    assert (folder / "jct.png").read_text() == "as it was"
    plot.run(parse(*words, "--shipped"))
    assert (folder / "jct.png").read_bytes().startswith(b"\x89PNG")
    Path("plotting.py").unlink()  # somebody else's folder: figures there are the user's own
    (folder / "jct.png").write_text("as it was")
    plot.run(parse(*words))
    assert (folder / "jct.png").read_bytes().startswith(b"\x89PNG")
