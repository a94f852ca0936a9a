"""The controller of a run on Ray is killed with SIGKILL, and the run goes on; nobody is left of it."""

import ipaddress
import json
import os
import random
import signal
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from rota.core.population.events import Reported
from rota.execution.entries import INSTANT, parse_events
from rota.execution.folder import RealFolder
from rota.execution.journal import read_journal

KILLS = 3
RATION = 4
"""Parts of a worker: 3 kills × 3 slots × 4 parts are fewer than 6 trials × 10 parts."""
CONFIG = """
backend = "ray"
trial = "{trial}"

[population]
trials = 6
steps = 200
interval = 20

[population.start]
lr = {{ low = 0.1, high = 1.0 }}

{training}

[ray]
slots = [{slots}]
"""
THREE = '{ node = "head", cpus = 1 }, { node = "fast", cpus = 1, speed = 2.0 }, { node = "slow", cpus = 1 }'
HERE = "{ count = 2 }"


def rota(*words):
    return subprocess.Popen(
        [sys.executable, "-m", "rota", *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finished(*words):
    done = rota(*words, "--json")
    text, complaint = done.communicate(timeout=200)
    assert done.returncode == 0, complaint
    return json.loads(text)


def reports_in(folder):
    journal = RealFolder(folder).paths(0).journal
    if not journal.exists() or not journal.stat().st_size:
        return []
    return [
        event
        for entry in read_journal(journal)
        if entry.kind == INSTANT
        for event in parse_events(entry.body["events"])
        if isinstance(event, Reported)
    ]


def until(what, happens, at_most_s=120):
    until_s = time.monotonic() + at_most_s
    while not happens():
        assert time.monotonic() < until_s, what
        time.sleep(0.02)


def commands():
    """Process → its command; one that has ended has none."""
    found = {}
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found[int(file.parent.name)] = file.read_bytes()
    return {pid: command for pid, command in found.items() if command}


def actors(home):
    """Of the cluster whose files are there: others may be on this machine."""
    found = commands()
    raylets = {pid for pid, command in found.items() if os.fsencode(home) in command}
    return {
        pid
        for pid, command in found.items()
        if command.startswith(b"ray::SlotActor") and parent(pid) in raylets
    }


def parent(pid):
    """Nothing if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def killed_after_a_report(folder, delay_s, words, home, look=lambda: None):
    """Start, wait until something new was reported, and so much longer."""
    before = len(reports_in(folder))
    controller = rota(*words)
    until("nothing is reported", lambda: len(reports_in(folder)) > before or controller.poll() is not None)
    look()
    time.sleep(delay_s)
    seen = actors(home())
    controller.send_signal(signal.SIGKILL)
    _, complaint = controller.communicate()
    assert controller.returncode == -signal.SIGKILL, complaint
    assert seen
    until("an actor is left without its controller", lambda: not seen & set(commands()))


def check_nothing_was_lost(folder, resumed):
    assert resumed["complete"]
    assert (resumed["reports"], resumed["failures"]) == (6 * 10, 0)
    reports = reports_in(folder)
    assert sorted(each.trial for each in reports) == [trial for trial in range(6) for _ in range(10)]
    for found in resumed["trials"]:
        trial, lr = found["id"], found["hyper"]["lr"]
        assert (found["status"], found["steps"]) == ("finished", 200)
        assert [each.metric for each in reports if each.trial == trial] == pytest.approx(
            [trial * 2**-20 + lr * 20 * part for part in range(1, 11)]
        )  # as if nothing had happened
        file = RealFolder(folder).paths(0).checkpoints.file(trial, 10)
        written = json.loads(file.read_bytes().split(b"\n")[3])["had"]
        assert written == [each.metric for each in reports if each.trial == trial][-1]


def test_nothing_is_lost_on_a_cluster_of_three_however_often_the_controller_is_killed(
    ray, rationed, tmp_path
):
    chance, folder = random.Random(0), tmp_path / "disturbed"
    config = tmp_path / "config.toml"
    training = rationed.training(RATION, step_s=0.004)
    config.write_text(CONFIG.format(slots=THREE, trial=rationed.trial, training=training))
    at = ("--address", ray.address)
    words = ["run", config, "--out", folder, *at]
    for _ in range(KILLS):
        killed_after_a_report(folder, chance.uniform(0.0, 0.2), words, lambda: ray.home)
        words = ["run", "--resume", folder]
    rationed.free.touch()
    resumed = finished("run", "--resume", folder, *at)
    check_nothing_was_lost(folder, resumed)
    again = finished("run", "--replay", folder, *at)["stages"]
    assert [stage["metric"] for stage in again] == [stage["metric_then"] for stage in again]
    assert {trial["node"] for trial in resumed["trials"]} <= {"head", "fast", "slow"}


def listening(pids):
    """Addresses on which these processes can be reached."""
    inodes = set()
    for pid in pids:
        for name in descriptors(pid):
            if name.startswith("socket:["):
                inodes.add(name[8:-1])
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                raw = bytes.fromhex(fields[1].partition(":")[0])
                words = [raw[at : at + 4][::-1] for at in range(0, len(raw), 4)]
                found.add(ipaddress.ip_address(b"".join(words)))
    return found


def descriptors(pid):
    """What a process has open, but for what it closes meanwhile."""
    with suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                yield str(descriptor.readlink())


def is_loopback(address):
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def test_a_cluster_of_its_own_is_private_and_ends_with_a_controller_that_is_killed(tmp_path, rationed):
    folder, config, seen = tmp_path / "run", tmp_path / "config.toml", {}
    training = rationed.training(RATION, step_s=0.004)
    config.write_text(CONFIG.format(slots=HERE, trial=rationed.trial, training=training))
    link = folder / "runs" / "0" / "ray"

    def look():
        home, workers = link.readlink(), actors(link.readlink())
        pids = [pid for pid, command in commands().items() if os.fsencode(home) in command or pid in workers]
        seen.update(home=home, pids=pids, addresses=listening(pids))
        seen["niceness"] = {os.getpriority(os.PRIO_PROCESS, pid) for pid in workers}
        seen["modes"] = [stat.S_IMODE(file.stat().st_mode) for file in (link, link / "token")]

    killed_after_a_report(folder, 0.1, ["run", config, "--out", folder], link.readlink, look)
    assert len(seen["addresses"]) > 0
    assert all(is_loopback(address) for address in seen["addresses"])
    assert seen["modes"] == [0o700, 0o600]
    assert seen["niceness"] == {os.getpriority(os.PRIO_PROCESS, 0)}  # they start beside a busy machine, too
    until("Ray is left without its controller", lambda: not set(seen["pids"]) & set(commands()))
    rationed.free.touch()
    check_nothing_was_lost(folder, finished("run", "--resume", folder))
    assert not link.is_symlink()
    assert not seen["home"].exists()
