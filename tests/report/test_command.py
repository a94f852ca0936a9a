"""`rota report` from the command line."""

import subprocess
import sys

import pytest

from rota.cli import main


def test_a_page_is_written_and_said_where(tmp_path, two_runs, capsys):
    out = tmp_path / "pages" / "mine.html"
    assert main(["report", str(tmp_path / "jobs"), "--out", str(out), "--title", "Mine & yours"]) == 0
    assert capsys.readouterr().out.startswith(f"{out} (0.1 MB)")
    text = out.read_text("utf-8")
    assert "<h1>Mine &amp; yours</h1>" in text
    assert [file.name for file in out.parent.iterdir()] == ["mine.html"]  # nothing half-written beside it


def test_without_a_title_it_is_called_after_what_is_in_it(tmp_path, two_runs, make_population, capsys):
    out = tmp_path / "report.html"
    assert main(["report", str(tmp_path / "jobs"), "--out", str(out)]) == 0
    assert "<h1>by hand: 3 jobs on 2 GPUs</h1>" in out.read_text("utf-8")
    make_population("fifo")
    assert main(["report", str(tmp_path), "--out", str(out)]) == 0
    assert "<h1>Schedulers and populations</h1>" in out.read_text("utf-8")


def test_any_mix_is_shown(tmp_path, two_runs, make_population, make_agent, placement_agent, evaluated):
    make_population("fifo")
    make_population("fifo", 1.2, command="rota run local.toml --out x")
    make_agent("joint")
    out = tmp_path / "report.html"
    assert main(["report", str(tmp_path), "--out", str(out)]) == 0
    text = out.read_text("utf-8")
    for part in (
        "jobs-0",
        "population-0",
        "population-1",
        "fidelity-0",
        "evaluation-0",
        "comparison-0",
        "learning-0",
    ):
        assert f'"id":"{part}"' in text


def test_nothing_to_show_is_the_users_mistake(tmp_path, capsys):
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "x.html")]) == 2
    assert "no results in it; make some first" in capsys.readouterr().err
    assert not (tmp_path / "x.html").exists()


def test_what_is_incomplete_is_left_out_with_a_note(tmp_path, two_runs, capsys):
    (tmp_path / "jobs" / "fifo" / "metrics.json").unlink()
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "x.html")]) == 0
    assert "fifo: not a complete run, left out" in capsys.readouterr().err


def test_a_report_needs_no_torch(tmp_path, two_runs, evaluated, placement_agent, make_agent):
    make_agent("joint")
    code = "import sys; from rota.cli import main; main(sys.argv[1:]); print('torch' in sys.modules)"
    command = [sys.executable, "-c", code, "report", str(tmp_path), "--out", str(tmp_path / "x.html")]
    assert subprocess.check_output(command, text=True).split()[-1] == "False"


@pytest.mark.parametrize("name", ["a b", "it's"])
def test_the_page_says_how_it_was_made(tmp_path, two_runs, name):
    out = tmp_path / f"{name}.html"
    main(["report", str(tmp_path / "jobs"), "--out", str(out)])
    assert '"command":"rota report ' in out.read_text("utf-8")
