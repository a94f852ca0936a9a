"""The controller is killed with SIGKILL at twenty random instants, and the run goes on each time."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rota.core.population.events import Reported
from rota.execution.entries import INSTANT, parse_events
from rota.execution.folder import RealFolder
from rota.execution.journal import read_journal

KILLS = 10
"""In each of two runs."""
LONGEST_S = 0.4
RATION = 5
"""Parts of a worker: 10 kills × 2 slots × 5 parts are fewer than 6 trials × 20 parts."""
GROWS = """
from dataclasses import dataclass

import rota
from rota.core.population.events import Assign, Grow


@dataclass(frozen=True)
class Grows(rota.Allocation):
    def assign(self, view):
        raise AssertionError

    def hand_out(self, view):
        for trial in list(view.waiting):
            if view.steps[trial] in (100, 240) and view.changes_allowed(trial):
                yield Grow(trial, "deepen 0")
        while view.idle and view.waiting:
            yield Assign(view.idle[0], view.first(1))
"""
CONFIG = """
allocation = "{allocation}"
changes = ["deepen 0", "deepen 0"]
evolution = "{evolution}"
trial = "{trial}"

[population]
trials = 6
steps = 400
interval = 20

[population.start]
lr = {{ low = 0.1, high = 1.0 }}

[options.pbt]
quantile = 0.34

{training}

[local]
slots = [{{ count = {slots}, cores = 0 }}]
"""


def rota(mark, *words):
    return subprocess.Popen(
        [sys.executable, "-m", "rota", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "ROTA_KILL_TEST": mark},
        text=True,
    )


def left_running(mark):
    """Processes that were started with this mark and are still there."""
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"ROTA_KILL_TEST={mark}".encode() in environment.read_bytes():
                found.append(environment.parent)
        except OSError:
            continue
    return found


def beginnings(folder):
    journal = RealFolder(folder).paths(0).journal
    if not journal.exists() or not journal.stat().st_size:
        return 0
    return sum(entry.kind in ("began", "resumed") for entry in read_journal(journal))


def killed(mark, folder, words, delay_s):
    """Start, wait until it has the journal, and so much longer; whether it was killed before it was done."""
    before = beginnings(folder)
    controller = rota(mark, *words)
    while beginnings(folder) == before and controller.poll() is None:
        time.sleep(0.005)
    time.sleep(delay_s)
    controller.send_signal(signal.SIGKILL)
    code = controller.wait()
    controller.stdout.close()
    until_s = time.monotonic() + 60
    while left_running(mark):
        assert time.monotonic() < until_s, "a worker is left without its controller"
        time.sleep(0.01)
    return code == -signal.SIGKILL


def killed_after_a_report(mark, folder, words, delay_s):
    """Start, wait until something new was reported, and so much longer."""
    before = len(journaled_reports(folder)) if beginnings(folder) else 0
    controller = rota(mark, *words)
    until_s = time.monotonic() + 120
    while not beginnings(folder) or len(journaled_reports(folder)) <= before:
        assert time.monotonic() < until_s, "nothing is reported"
        time.sleep(0.02)
    time.sleep(delay_s)
    controller.send_signal(signal.SIGKILL)
    code = controller.wait()
    controller.stdout.close()
    return code == -signal.SIGKILL


def finished(mark, *words):
    done = rota(mark, *words, "--json")
    text, _ = done.communicate(timeout=200)
    assert done.returncode == 0
    return json.loads(text)


def journaled_reports(folder):
    return [
        event
        for entry in read_journal(RealFolder(folder).paths(0).journal)
        if entry.kind == INSTANT
        for event in parse_events(entry.body["events"])
        if isinstance(event, Reported)
    ]


def essence(found):
    """What does not depend on time and place."""
    return [
        (trial["id"], trial["status"], trial["steps"], trial["best_metric"], trial["hyper"], trial["changes"])
        for trial in found
    ]


@pytest.mark.parametrize(
    ("allocation", "evolution", "slots"),
    [("grows.py:Grows", "none", 2), ("fifo", "pbt", 1)],
    ids=["growing", "pbt"],
)
def test_nothing_is_lost_or_done_twice_however_often_the_controller_is_killed(
    tmp_path, rationed, allocation, evolution, slots
):
    chance, mark = random.Random(slots), f"{tmp_path.name}-{time.time_ns()}"
    config, folder, calm = tmp_path / "config.toml", tmp_path / "disturbed", tmp_path / "calm"
    training = rationed.training(RATION, step_s=0.002 * slots)
    (tmp_path / "grows.py").write_text(GROWS)
    config.write_text(
        CONFIG.format(
            allocation=allocation, evolution=evolution, slots=slots, trial=rationed.trial, training=training
        )
    )
    kills = killed(mark, folder, ["run", config, "--out", folder], chance.uniform(0.0, LONGEST_S))
    for _ in range(KILLS - 1):
        kills += killed(mark, folder, ["run", "--resume", folder], chance.uniform(0.0, LONGEST_S))
    assert kills == KILLS
    rationed.free.touch()

    resumed = finished(mark, "run", "--resume", folder)
    undisturbed = finished(mark, "run", config, "--out", calm)
    assert essence(resumed["trials"]) == essence(undisturbed["trials"])
    if evolution == "none":
        assert [trial["changes"] for trial in resumed["trials"]] == [["deepen 0"] * 2] * 6
    assert (resumed["reports"], resumed["clones"]) == (undisturbed["reports"], undisturbed["clones"])
    assert resumed["failures"] == 0
    assert resumed["clones"] > 0 or evolution == "none"

    reports = journaled_reports(folder)
    assert [(each.trial, each.metric) for each in reports if each.trial == 5] == [
        (each.trial, each.metric) for each in journaled_reports(calm) if each.trial == 5
    ]
    assert sorted(each.trial for each in reports) == [trial for trial in range(6) for _ in range(20)]
    times = [each.at_s for each in reports]
    assert times == sorted(times)
    last = {each.trial: each.metric for each in reports}
    assert last == written(folder)


FORKS = """
    import os, time
    from rota.execution.idle import Idle

    class Forks(Idle):
        def train(self, steps, hyper, changes):
            if not os.fork():
                time.sleep(600)
                os._exit(0)
            super().train(steps, hyper, changes)

    def make(settings, seed) -> Forks:
        return Forks(0.002)
"""


def test_what_trials_have_started_is_gone_with_the_controller(tmp_path, trial_module):
    mark, config, folder = f"{tmp_path.name}-{time.time_ns()}", tmp_path / "config.toml", tmp_path / "run"
    config.write_text(
        CONFIG.format(allocation="fifo", evolution="none", slots=2, trial=trial_module(FORKS), training="")
    )
    assert killed_after_a_report(mark, folder, ["run", config, "--out", folder], 0.0)
    until_s = time.monotonic() + 60
    while left_running(mark):
        assert time.monotonic() < until_s, "somebody is left"
        time.sleep(0.01)


def written(folder):
    """Trial → what is in its newest checkpoint."""
    found = {}
    for trial in range(6):
        file = RealFolder(folder).paths(0).checkpoints.file(trial, 20)
        found[trial] = json.loads(file.read_bytes().split(b"\n")[3])["had"]
    return found


DIGITS = """
evolution = "pbt"
trial = "{trial}"

[population]
trials = 4
steps = 120
interval = 20

[population.start]
lr = {{ low = 0.001, high = 0.3, log = true }}
momentum = {{ low = 0.1, below = 0.95 }}

[options.pbt]
quantile = 0.5

[options.pbt.grow]
probability = 0.3
actions = ["deepen 0"]

{training}

[local]
slots = [{{ cores = 1 }}]
"""


def test_real_networks_come_to_the_same_too(tmp_path, rationed):
    mark = f"{tmp_path.name}-{time.time_ns()}"
    config, folder, calm = tmp_path / "config.toml", tmp_path / "disturbed", tmp_path / "calm"
    training = rationed.training(4, model="feedforward1", optimizer="sgd")
    config.write_text(DIGITS.format(trial=rationed.trial, training=training))
    assert killed_after_a_report(mark, folder, ["run", config, "--out", folder], 0.05)
    assert killed_after_a_report(mark, folder, ["run", "--resume", folder], 0.02)
    rationed.free.touch()
    resumed = finished(mark, "run", "--resume", folder)
    undisturbed = finished(mark, "run", config, "--out", calm)
    assert essence(resumed["trials"]) == essence(undisturbed["trials"])
    assert resumed["clones"] == undisturbed["clones"] > 0
    assert [each.metric for each in journaled_reports(folder)] == [
        each.metric for each in journaled_reports(calm)
    ]
    assert resumed["reports"] == 4 * 6
