"""What is in folders is found out, whatever the mix."""

import shutil

import pytest

from rota.core.errors import InputError
from rota.report.assemble import find


def test_each_kind_of_result_is_found(
    tmp_path, two_runs, make_population, make_agent, placement_agent, evaluated
):
    population, agent = make_population("fifo"), make_agent("joint")
    found = find([tmp_path])
    assert found.jobs == [run.folder.path for run in two_runs]
    assert found.populations == [population.folder.path]
    none = {kind: [] for kind in ("schedule", "joint")}
    assert found.agents == {"adaptation": [agent], "placement": [placement_agent], **none}
    assert found.evaluations == {"adaptation": [evaluated], "placement": [placement_agent], **none}


def test_what_is_named_twice_is_there_once(tmp_path, two_runs):
    assert len(find([tmp_path, tmp_path / "jobs", tmp_path / "jobs" / "srtf"]).jobs) == 2


def test_a_run_that_is_not_complete_is_left_out_but_told(tmp_path, two_runs):
    (tmp_path / "jobs" / "fifo" / "metrics.json").unlink()
    found = find([tmp_path])
    assert [path.name for path in found.jobs] == ["srtf"]
    assert [path.name for path in found.incomplete] == ["fifo"]


def test_a_run_that_is_not_complete_is_refused_where_it_is_all_there_is(tmp_path, two_runs):
    (tmp_path / "jobs" / "fifo" / "metrics.json").unlink()
    with pytest.raises(InputError, match="fifo: not a complete run; let it end, or make it again"):
        find([tmp_path / "jobs" / "srtf", tmp_path / "jobs" / "fifo"])


def test_a_folder_without_results_is_refused(tmp_path, two_runs):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty: no results in it; make some first: rota simulate"):
        find([tmp_path / "jobs", tmp_path / "empty"])


@pytest.mark.parametrize(("name", "problem"), [("absent", "is not there"), ("file", "is not a folder")])
def test_what_is_no_folder_is_refused(tmp_path, name, problem):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=f"{name}: {problem}; give folders of results"):
        find([tmp_path / name])


def test_a_loop_of_links_ends(tmp_path, two_runs):
    (tmp_path / "jobs" / "again").symlink_to(tmp_path)
    assert len(find([tmp_path]).jobs) == 2


def test_what_a_real_run_keeps_for_itself_is_not_looked_at(tmp_path, make_population):
    run = make_population("fifo").folder.path
    shutil.copytree(run, run / "runs" / "0")
    assert find([tmp_path]).populations == [run]
