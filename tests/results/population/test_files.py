"""What a population leaves on disk, and what is read back."""

import json
import math

import pytest

from rota.core.errors import InputError
from rota.core.population.events import Idled, Reported
from rota.results.folder import PopulationFolder
from rota.results.population.run import read_population, write_population
from rota.results.population.timeline_file import Logged, Logs, read_events, read_log, write_event

ABOUT = {"config": "", "inputs": "other", "command": "rota"}


def test_a_timeline_is_read_back_as_it_was_written(tmp_path, events):
    path = tmp_path / "timeline.jsonl"
    third = Reported(1 / 3, 0, 1, 7, 0.1, 0.2, 0.0, math.nan)
    with path.open("wb") as stream:
        for event in [*events, third, Idled(1 / 3, 0)]:
            write_event(stream, event)
    found = read_events(path)
    assert list(map(repr, found)) == list(map(repr, [*events, third, Idled(1 / 3, 0)]))


def test_each_line_of_a_timeline_names_its_event(run):
    lines = run.folder.timeline(0).read_text().splitlines()
    first, clone = json.loads(lines[0]), json.loads(lines[8])
    assert first == {"event": "Joined", "at_s": 0.0, "node": 0}
    assert (clone["event"], clone["trial"], clone["donor"], clone["changes"]) == (
        "Cloned",
        1,
        0,
        ["deepen 0"],
    )


@pytest.mark.parametrize("line", ["", "{}", "[1]", '{"event": "Vanished"}', '{"event": "Joined", "at_s": 0}'])
def test_a_line_that_is_no_event_is_named_in_the_error(tmp_path, line):
    path = tmp_path / "timeline.jsonl"
    path.write_text('{"event": "Joined", "at_s": 0.0, "node": 0}\n' + line + "\n")
    with pytest.raises(InputError, match=r"timeline\.jsonl: line 2: not an event"):
        read_events(path)


def test_a_timeline_that_is_not_there_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_events(tmp_path / "timeline.jsonl")


def test_every_trial_has_a_log_in_which_its_own_steps_go_on_after_a_clone(run):
    folder = run.folder.of_seed(1)
    lines = (folder / "1-accuracy.json").read_text().splitlines()
    assert lines == ['{"iteration": 50, "accuracy": 0.25}', '{"iteration": 100, "accuracy": 0.625}']
    assert read_log(folder, 0) == [Logged(50, 0.5), Logged(100, 0.75)]


def test_what_was_not_measured_is_not_logged():
    events = [
        Reported(1.0, 0, 0, 5, 0.0, 1.0, 0.0, math.nan),
        Reported(2.0, 0, 0, 5, 1.0, 2.0, 0.0, 0.5),
        Reported(3.0, 0, 1, 5, 2.0, 3.0, 0.0, math.nan),
    ]
    logs = Logs()
    for event in events:
        logs.see(event)
    assert logs.by_trial() == {0: [Logged(10, 0.5)]}


def test_a_run_is_read_back_as_it_was(run, by_hand, events):
    assert run.summary == by_hand
    assert run.command == "rota simulate x.toml"
    assert list(map(repr, run.events(1))) == list(map(repr, events))


def test_a_run_is_complete_once_its_summary_is_there(run):
    folder = run.folder
    assert folder.complete()
    assert folder.complete("digest")
    assert not folder.complete("other")
    folder.head.unlink()
    assert not folder.complete()
    assert folder.begun


def test_a_run_that_is_made_anew_leaves_nothing_of_the_one_before(run, by_hand, events):
    (run.folder.of_seed(0) / "99-accuracy.json").write_text("")
    write_population(run.folder.path, by_hand, {0: events}, **ABOUT)
    assert run.folder.complete("other")
    assert sorted(path.name for path in run.folder.path.rglob("*")) == [
        "0-accuracy.json", "1-accuracy.json", "config.toml", "seed0", "summary.json", "summary.md",
        "timeline.jsonl",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "[]", '{"kind": "population", "format": 0}', '{"format": 1}'])
def test_what_is_no_summary_is_no_run(tmp_path, text):
    (tmp_path / "summary.json").write_text(text)
    assert not PopulationFolder(tmp_path).complete()


def test_a_summary_that_lacks_something_is_an_input_error(run):
    found = json.loads(run.folder.head.read_text())
    del found["slots"]
    run.folder.head.write_text(json.dumps(found))
    with pytest.raises(InputError, match=r"summary.json: missing key 'slots': a list; delete the folder"):
        read_population(run.folder.path)


def test_the_summary_has_averages_first(run):
    found = json.loads(run.folder.head.read_text())
    assert found["mean"] == {
        "makespan_s": 50.0,
        "lower_bound_s": 25.0,
        "ratio": 2.0,
        "decisions_per_s": pytest.approx(10 / 0.003),
        "best_accuracy": 0.75,
        "final_accuracy": 0.75,
        "to_target_s": 35.0,
        "best_three": 0.6875,
        "test_accuracy": None,
        "gpu_s": 70.0,
        "growths": 0.0,
    }
    assert found["batch_sizes"] == {"a": {"16": 300}, "b": {"32": 100}}
