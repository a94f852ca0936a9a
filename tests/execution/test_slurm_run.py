"""Runs on a real Slurm go on, whatever is killed: nodes, controllers, the job itself."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rota.core.population.events import Joined, NodeFailed, Reported, TrialFailed
from rota.execution.entries import INSTANT, parse_events
from rota.execution.folder import RealFolder
from rota.execution.journal import read_journal

REPOSITORY = Path(__file__).parents[2]
KILLS = 3
PARTS = 6 * 10
CONFIG = """
backend = "slurm"
trial = "{trial}"

[population]
trials = 6
steps = 200
interval = 20

[population.start]
lr = {{ low = 0.1, high = 1.0 }}

{training}

[slurm]
nodes = {nodes}
"""
TWO = "[{ count = 2, cpus = 4 }]"
"""Whole nodes, so that they are two."""


@pytest.fixture
def rota(outside):
    """Starts `rota`; gives what it prints when asked."""

    def start(*words):
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "rota", *map(str, words)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    return start


@pytest.fixture
def configured(tmp_path, rationed):
    def write(ration, nodes=TWO, **more):
        training = rationed.training(ration, **{"step_s": 0.003, **more})
        (tmp_path / "config.toml").write_text(
            CONFIG.format(nodes=nodes, trial=rationed.trial, training=training)
        )
        return tmp_path / "config.toml"

    return write


@pytest.fixture
def submit(outside, tmp_path):
    """Submits a script as a batch job, in whose PATH `rota` is; gives its number."""
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "rota").write_text(f'#!/bin/bash\nexec "{sys.executable}" -P -m rota "$@"\n')
    (commands / "rota").chmod(0o700)

    def submit(script, *words, options=()):
        path = f"PATH={commands}:{os.environ['PATH']},PYTHONPATH={REPOSITORY / 'src'}:{tmp_path}"
        return outside.submit(
            *options, f"--export=ALL,{path}", f"--output={tmp_path}/out.txt", str(script), *map(str, words)
        )

    return submit


def answer(process):
    text, _ = process.communicate(timeout=200)
    assert process.returncode == 0
    return json.loads(text)


def events(folder):
    """What the journal has so far."""
    journal = RealFolder(folder).paths(0).journal
    if not journal.exists() or not journal.stat().st_size:
        return []
    return [
        event
        for entry in read_journal(journal)
        if entry.kind == INSTANT
        for event in parse_events(entry.body["events"])
    ]


def reports(folder):
    return [event for event in events(folder) if isinstance(event, Reported)]


def until(condition, within_s=120.0, why=lambda: ""):
    until_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < until_s, f"not so within {within_s:g} s: {why()}"
        time.sleep(0.05)


def running(slurm):
    return slurm.run("squeue", "--noheader", "--format=%i %N", "--states=RUNNING").splitlines()


def trained(folder):
    """Trial → its metrics, in the order in which they were reported."""
    found = {trial: [] for trial in range(6)}
    for report in reports(folder):
        found[report.trial].append(report.metric)
    return found


def expected(found):
    """What six trials report whose every step adds their `lr`, worked out from what they are said to have."""
    return {
        trial["id"]: pytest.approx(
            [trial["id"] * 2**-20 + trial["hyper"]["lr"] * 20 * part for part in range(1, 11)]
        )
        for trial in found["trials"]
    }


def test_the_controller_can_be_killed_again_and_again_and_leaves_no_job(
    rota, configured, rationed, outside, tmp_path
):
    chance, folder = random.Random(3), tmp_path / "run"
    words = ["run", configured(ration=8), "--out", folder]  # 3 kills × 2 slots × 8 parts are fewer than 60
    for _ in range(KILLS):
        before = len(reports(folder))
        controller = rota(*words)
        until(lambda before=before: len(reports(folder)) > before)
        time.sleep(chance.uniform(0.0, 0.3))
        controller.send_signal(signal.SIGKILL)
        assert controller.wait() == -signal.SIGKILL
        controller.stdout.close()
        until(lambda: not running(outside))
        words = ["run", "--resume", folder]
    rationed.free.touch()
    found = answer(rota(*words, "--json"))
    assert (found["complete"], found["reports"], found["failures"]) == (True, PARTS, 0)
    assert trained(folder) == expected(found)


def test_a_controller_that_is_killed_while_its_job_is_in_the_queue_takes_it_along(
    rota, configured, outside, tmp_path
):
    blocker = outside.submit("--nodelist=node4", "--exclusive", "--output=/dev/null", "--wrap=sleep 600")
    until(lambda: any(line.startswith(f"{blocker} ") for line in running(outside)))
    controller = rota("run", configured(0, '[{ host = "node4" }]'), "--out", tmp_path / "run")
    pending = ("squeue", "--noheader", "--format=%i", "--states=PENDING")
    until(lambda: outside.run(*pending))
    controller.send_signal(signal.SIGKILL)
    controller.wait()
    controller.stdout.close()
    until(lambda: not outside.run(*pending))
    outside.run("scancel", blocker)
    outside.wait_for(blocker)


KILLED_INSIDE = """#!/bin/bash
rota run "$1" --out "$2" &
controller=$!
while [[ $(rota status "$2" --json 2> /dev/null) != *'"best": {'* ]]; do sleep 0.1; done
kill -9 $controller
for turn in {1..600}; do
    scontrol show step > steps.txt
    grep -q "StepId=$SLURM_JOB_ID.[0-9]" steps.txt || break
    sleep 0.1
done
touch free
rota run --resume "$2" --json > result.json
"""


def test_in_an_allocation_no_step_is_left_when_only_the_controller_is_killed(
    submit, configured, outside, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.sh").write_text(KILLED_INSIDE)
    folder = tmp_path / "run"
    options = ("--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=4")
    job = submit(tmp_path / "job.sh", configured(ration=5), folder, options=options)
    outside.wait_for(job)
    printed = (tmp_path / "out.txt").read_text()
    steps = [line for line in (tmp_path / "steps.txt").read_text().splitlines() if "StepId=" in line]
    assert [step.split()[0] for step in steps] == [f"StepId={job}.batch"], printed
    found = json.loads((tmp_path / "result.json").read_text())
    assert (found["complete"], found["reports"], found["failures"]) == (True, PARTS, 0)
    assert trained(folder) == expected(found)
    assert {trial["node"] for trial in found["trials"]} == {"node-0", "node-1"}
    assert kinds(folder) == ["began", "resumed", "ended"]


def kinds(folder):
    """How the journal says that controllers began, and the last one ended."""
    entries = read_journal(RealFolder(folder).paths(0).journal)
    return [entry.kind for entry in entries if entry.kind in ("began", "resumed", "ended")]


def test_a_job_that_is_requeued_goes_on_where_it_was(submit, configured, rationed, outside, tmp_path):
    folder, script = tmp_path / "run", REPOSITORY / "examples" / "slurm-population.sh"
    job = submit(script, configured(ration=5, nodes="[{ count = 2, slots = 2 }]"), folder)
    until(lambda: len(reports(folder)) > 5, why=(tmp_path / "out.txt").read_text)
    outside.run("scontrol", "requeue", job)
    until(lambda: "resumed" in kinds(folder), why=(tmp_path / "out.txt").read_text)
    rationed.free.touch()
    outside.wait_for(job)
    found = json.loads((folder / "result.json").read_text())
    assert (found["reports"], found["failures"]) == (PARTS, 0)
    assert kinds(folder) == ["began", "resumed", "ended"]
    assert trained(folder) == expected(found)


def test_a_job_whose_time_is_nearly_over_stops_and_the_run_goes_on_outside(
    rota, submit, configured, rationed, outside, tmp_path
):
    folder, script = tmp_path / "run", REPOSITORY / "examples" / "slurm-population.sh"
    # after 4 slots × 2 parts the others take so long that there are 40 s left to tell it to stop
    slow = configured(ration=2, nodes="[{ count = 2, slots = 2 }]", patience_s=3.0)
    job = submit(script, slow, folder)
    until(lambda: len(reports(folder)) > 5, why=(tmp_path / "out.txt").read_text)
    outside.run("scancel", "--batch", "--signal=TERM", job)
    outside.wait_for(job)
    assert "rota run --resume" in (tmp_path / "out.txt").read_text()
    assert 5 < len(reports(folder)) < PARTS
    rationed.free.touch()
    found = answer(rota("run", "--resume", folder, "--json"))
    assert (found["complete"], found["reports"], found["failures"]) == (True, PARTS, 0)
    assert trained(folder) == expected(found)


def changes_of_nodes(folder):
    return [event for event in events(folder) if isinstance(event, Joined | NodeFailed)]


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start nodes that end as a whole")


@needs_root
def test_another_node_takes_the_place_of_one_that_is_killed(rota, configured, rationed, outside, tmp_path):
    folder = tmp_path / "run"
    controller = rota("run", configured(ration=5), "--out", folder, "--json")
    until(lambda: len({report.slot for report in reports(folder)}) == 2)
    lost = running(outside)[-1].split()[1]
    try:
        outside.kill_node(lost)
        until(lambda: len(changes_of_nodes(folder)) == 4)
        rationed.free.touch()
        found = answer(controller)
    finally:
        outside.start_node(lost)
    assert (found["complete"], found["reports"], found["failures"]) == (True, PARTS, 0)
    changes = changes_of_nodes(folder)
    assert [type(event) for event in changes] == [Joined, Joined, NodeFailed, Joined]
    assert changes[2].node == changes[3].node
    assert any(report.slot == changes[2].node and report.at_s > changes[3].at_s for report in reports(folder))
    assert trained(folder) == expected(found)


@needs_root
def test_in_an_allocation_the_others_go_on_without_a_node_that_is_killed(
    submit, configured, rationed, outside, tmp_path
):
    folder, script = tmp_path / "run", REPOSITORY / "examples" / "slurm-population.sh"
    options = ("--ntasks-per-node=1", "--cpus-per-task=4")
    job = submit(script, configured(ration=5), folder, options=options)
    until(lambda: len({report.slot for report in reports(folder)}) == 2, why=(tmp_path / "out.txt").read_text)
    shown = outside.run("scontrol", "--oneliner", "show", "job", job)
    batch = next(word for word in shown.split() if word.startswith("BatchHost=")).removeprefix("BatchHost=")
    names = outside.run("squeue", "--noheader", "--format=%N", f"--jobs={job}")
    (lost,) = set(outside.run("scontrol", "show", "hostnames", names).split()) - {batch}
    try:
        outside.kill_node(lost)
        until(lambda: any(isinstance(event, NodeFailed) for event in events(folder)))
        rationed.free.touch()
        outside.wait_for(job)
    finally:
        outside.start_node(lost)
    found = json.loads((folder / "result.json").read_text())
    assert (found["reports"], found["failures"]) == (PARTS, 0)
    (gone,) = [event for event in events(folder) if isinstance(event, NodeFailed)]
    assert not [event for event in events(folder) if isinstance(event, TrialFailed)]
    assert {report.slot for report in reports(folder) if report.at_s > gone.at_s} == {1 - gone.node}
    assert trained(folder) == expected(found)
