"""`rota plot` finds what was learned and evaluated, and draws it without the libraries of learning."""

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

from rota.commands import plot
from rota.figures.files import draw_evaluations
from rota.learning.files import HistoryRow, write_history
from rota.learning.outcome import Baselines, Evaluation, EvaluationOutcome, write_evaluations
from rota.learning.outcome import EvaluationRow as Evaluated
from rota.policies.agents import AgentFacts, write_agent_file


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def learn(folder, *scenarios):
    """An agent as `rota learn` leaves it."""
    folder.mkdir(parents=True)
    stages = [{"trees": [f"net/{each}"], "episodes": 20, "temperature": 1.0} for each in scenarios]
    about = {"seed": 0, "stages": stages, "started_from": ""}
    made = {"command": "rota learn a.toml"}
    facts = AgentFacts(kind="adaptation", network="original", about=about, provenance=made, sha256="")
    write_agent_file(folder, facts, {})
    rows = [
        HistoryRow(at, n, 1.0, 0.1 * n, 0.5 + 0.01 * n, 1.0, 0.1, 1.0)
        for at in range(len(stages))
        for n in (10, 20)
    ]
    write_history(folder, rows)


def evaluated():
    outcome = EvaluationOutcome(
        "early", "net", 0, (0,), ("deepen 0",), ("deepen 0", "nothing"), 0.6, 1, 2, 1.0, ((0.75, 0.25),)
    )
    return [
        Evaluation(
            "joint", {"seed": 0}, (Evaluated(outcome, Baselines(0.5, 0.5, 0.6, (0,), 0.6, 0.55), True),)
        )
    ]


def run_plot(*arguments):
    parser = argparse.ArgumentParser()
    plot.add_parser(parser.add_subparsers(dest="command"))
    return plot.run(parser.parse_args(["plot", *arguments]))


def test_what_was_learned_and_evaluated_is_drawn_even_without_runs(here, capsys):
    learn(Path("results/learn/scratch/late"), "late")
    learn(Path("results/learn/transfer/early_late"), "early", "late")
    write_evaluations(Path("results/evaluate/joint"), evaluated(), "rota evaluate --agent joint")
    assert run_plot() == 0
    captured = capsys.readouterr()
    files = captured.out.split()
    assert files == [
        "plots/learn/scratch/objective.png",
        "plots/learn/transfer/objective.png",
        "plots/learn/transfer/jump-start.png",
        "plots/evaluate/joint/accuracy.png",
        "plots/evaluate/joint/probabilities.png",
    ]
    assert all(Path(file).stat().st_size > 5_000 for file in files)
    assert captured.err == "note: no runs in results; make some: rota simulate --out results/simulate\n"


def test_an_agent_in_the_folder_of_its_family_and_one_that_still_learns(here, capsys):
    learn(Path("results/learn/joint"), "early")
    Path("results/learn/begun/stages").mkdir(parents=True)
    assert run_plot("--out", "figures") == 0
    assert capsys.readouterr().out.split() == ["figures/learn/joint/objective.png"]


def test_figures_that_were_asked_for_by_name_come_alone(here, make_run, capsys):
    make_run("results/simulate/a")
    learn(Path("results/learn/joint"), "early")
    run_plot("--figure", "jct", "--quick")
    assert [Path(file).name for file in capsys.readouterr().out.split()] == ["jct.png"]


def test_an_evaluation_is_drawn_where_it_is_asked_for(here):
    files = list(draw_evaluations(evaluated(), Path("there"), "rota evaluate --agent joint"))
    assert files == [Path("there/accuracy.png"), Path("there/probabilities.png")]
    assert sorted(Path("there").iterdir()) == files


def test_drawing_needs_none_of_the_libraries_of_learning():
    code = "import sys, rota.figures.files; print(*sys.modules)"
    loaded = set(subprocess.check_output([sys.executable, "-c", code], text=True).split())
    assert not loaded & {"torch", "gymnasium", "tensorboardX"}
    assert "rota.figures.learned_transfer" in loaded
