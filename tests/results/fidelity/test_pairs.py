"""Which run goes with which."""

import pytest

from rota.core.errors import InputError
from rota.results.fidelity.compare import paired


def titles(*folders):
    pairs, notes = paired(*folders)
    return [pair.title for pair in pairs], notes


def test_the_only_two_runs_are_compared_whatever_they_are_called(hand, tmp_path):
    real = hand.write_trials(tmp_path / "real", *hand.REAL, allocation="fifo")
    hand.write_trials(tmp_path / "sim" / "finish", *hand.SIMULATED)
    assert titles(real, tmp_path / "sim") == (["fifo / finish, seed 0"], [])
    assert titles(real, tmp_path / "sim" / "finish") == (["fifo / finish, seed 0"], [])


def test_of_several_those_of_the_same_name_are_and_the_others_are_noted(hand, tmp_path):
    real, simulated = tmp_path / "real", tmp_path / "sim"
    for scheduler in ("srtf", "fifo"):
        hand.write_jobs(real / scheduler, *hand.PREEMPTED, scheduler=scheduler)
    for scheduler in ("tiresias", "srtf"):
        hand.write_jobs(simulated / scheduler, *hand.SLOWER, scheduler=scheduler)
    names, notes = titles(real, simulated)
    assert names == ["srtf"]
    assert notes == [f"fifo: only in {real}, left out", f"tiresias: only in {simulated}, left out"]


def test_points_of_a_grid_are_told_by_their_folders(hand, tmp_path):
    for side, parts in (("real", hand.REAL), ("sim", hand.SIMULATED)):
        for point in ("nine", "spread"):
            hand.write_trials(tmp_path / side / point / "finish", *parts)
    names, _ = titles(tmp_path / "real", tmp_path / "sim")
    assert names == ["nine/finish, seed 0", "spread/finish, seed 0"]


def test_seeds_that_both_have_are_aligned(hand, tmp_path):
    real = hand.write_trials(tmp_path / "real", *hand.REAL, seeds=(3, 4, 5))
    simulated = hand.write_trials(tmp_path / "sim", *hand.SIMULATED, seeds=(0, 1, 2, 3, 4))
    assert titles(real, simulated)[0] == ["finish, seed 3", "finish, seed 4"]
    pairs, _ = paired(real, simulated)
    pair = pairs[0].timelines()
    assert (pair[0].makespan_s, pair[1].makespan_s) == (22.0, 23.0)


def test_without_a_common_seed_there_is_nothing_to_align(hand, tmp_path):
    real = hand.write_trials(tmp_path / "real", *hand.REAL, seeds=(3,))
    simulated = hand.write_trials(tmp_path / "sim", *hand.SIMULATED, seeds=(0, 1))
    with pytest.raises(InputError, match="real run has the seeds 3, the simulated one 0, 1"):
        paired(real, simulated)


def test_without_a_common_name_both_are_listed(hand, tmp_path):
    for side, schedulers in (("real", ("srtf", "fifo")), ("sim", ("themis", "antman"))):
        for scheduler in schedulers:
            hand.write_jobs(tmp_path / side / scheduler, *hand.PREEMPTED, scheduler=scheduler)
    with pytest.raises(InputError, match=r"has fifo, srtf and .* has antman, themis"):
        paired(tmp_path / "real", tmp_path / "sim")


def test_a_population_is_not_compared_with_jobs(hand, tmp_path):
    trials = hand.write_trials(tmp_path / "trials", *hand.REAL)
    jobs = hand.write_jobs(tmp_path / "jobs", *hand.PREEMPTED)
    with pytest.raises(InputError, match=r"trials has a population, .*jobs has jobs of a trace"):
        paired(trials, jobs)
    with pytest.raises(InputError, match="runs of a population and of jobs"):
        paired(tmp_path, jobs)


def test_an_incomplete_run_is_refused(hand, tmp_path):
    whole = hand.write_trials(tmp_path / "whole", *hand.REAL)
    torn = hand.write_trials(tmp_path / "torn", *hand.REAL)
    (torn / "summary.json").unlink()
    with pytest.raises(InputError, match="torn: not a complete run"):
        paired(whole, torn)
    jobs = hand.write_jobs(tmp_path / "jobs", *hand.PREEMPTED)
    (jobs / "metrics.json").unlink()
    with pytest.raises(InputError, match="jobs: not a complete run"):
        paired(jobs, whole)


def test_a_folder_without_runs_is_refused(tmp_path):
    with pytest.raises(InputError, match="no run is there"):
        paired(tmp_path, tmp_path)
    with pytest.raises(InputError, match="no run is there"):
        paired(tmp_path / "nowhere", tmp_path)
