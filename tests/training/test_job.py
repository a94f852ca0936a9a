"""Real networks as jobs: exact checkpoints, gangs that share a batch."""

import io
import json
import os
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from rota.core.errors import ConfigError, InputError
from rota.execution.jobs.worker import JobFactory
from rota.training.job import JobKind, Networks, bound, networks
from rota.training.recorder.gang import digest

KINDS = {
    "vision": {"setup": {"model": "convnet2", "data": "digits", "threads": 1}},
    "language": {"setup": {"model": "transformer", "threads": 1, "hyper": {"batch_size": 4}}},
    "a2c": {"setup": {"model": "a2c", "threads": 1}},
    "dqn": {"setup": {"model": "dqn", "threads": 1}},
}


@pytest.fixture(scope="module")
def site():
    return networks(KINDS, seed=0)


def iterate(work, count):
    for _ in range(count):
        for stage in (work.fetch, work.compute, work.exchange, work.update):
            stage()
    return work


def test_it_is_a_site(site):
    assert isinstance(site, JobFactory)


@pytest.mark.parametrize("kind", KINDS)
def test_stopped_and_gone_on_with_it_is_what_it_would_have_been(site, kind):
    whole = iterate(site.open(3, kind, 0, 1, ""), 9)
    half = iterate(site.open(3, kind, 0, 1, ""), 4)
    rest = site.open(3, kind, 0, 1, "")
    rest.load(half.save())
    iterate(rest, 5)
    assert digest(rest._work.network) == digest(whole._work.network)
    assert rest.metric == whole.metric


def test_jobs_of_a_kind_have_weights_of_their_own(site):
    one, other = (digest(site.open(job, "vision", 0, 1, "")._work.network) for job in (1, 2))
    assert one != other


def test_tasks_that_remember_nothing_are_shared(site):
    one, other = (site.open(job, "vision", 0, 1, "")._work.task for job in (1, 2))
    assert one is other
    one, other = (site.open(job, "a2c", 0, 1, "")._work.task for job in (1, 2))
    assert one is not other


def test_a_job_waits_for_its_storage_where_it_fetches():
    """64 images of 8 × 8 numbers of 4 bytes: 16,384 bytes are 0.1 s at 0.16384 MB/s."""
    slow = {"slow": {"setup": {**KINDS["vision"]["setup"], "storage_mb_s": 0.16384}}}
    work = networks(slow, 0).open(0, "slow", 0, 1, "")
    began_s = time.perf_counter()
    work.fetch()
    assert time.perf_counter() - began_s >= 0.1


MEMBER = """
import json, sys
from rota.training.job import networks
from rota.training.recorder.gang import digest
rank, meeting, kinds = int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
work = networks(kinds, 0).open(0, "vision", rank, 2, meeting)
for _ in range(5):
    for stage in (work.fetch, work.compute, work.exchange, work.update):
        stage()
print(digest(work._work.network), work._work.position)
"""


def test_members_of_a_gang_share_a_batch_and_have_one_network(tmp_path):
    kinds = json.dumps({"vision": KINDS["vision"]})
    members = [
        subprocess.Popen(
            [sys.executable, "-c", MEMBER, str(rank), str(tmp_path / "meeting"), kinds],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"},
        )
        for rank in range(2)
    ]
    one, other = (process.communicate(timeout=240)[0] for process in members)
    assert one == other
    assert one.split()[1] == str(5 * 64 // 2)


def test_members_of_a_gang_may_be_on_several_machines(monkeypatch):
    """The process that starts them says on which of their networks they meet."""
    monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    networks({}, 0)
    assert "GLOO_SOCKET_IFNAME" not in os.environ


def test_a_batch_that_cannot_be_shared_is_refused():
    with pytest.raises(ConfigError, match=r"kinds\.vision: a batch of 64 cannot be shared equally by 3"):
        JobKind().member("vision", 3)


def test_so_is_one_that_leaves_a_member_of_a2c_too_little():
    kind = bound({"a2c": {"setup": {"model": "a2c", "hyper": {"batch_size": 16}}}})["a2c"]
    assert kind.member("a2c", 2).hyper.batch_size == 8
    with pytest.raises(ConfigError, match=r"kinds\.a2c: shared by 4: batch_size is 4; .* a multiple of 8"):
        kind.member("a2c", 4)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"changes": ["nothing", "deepen 9"]}, "deepen 9"),
        ({"agent": "some", "actions": ["deepen 9", "nothing"]}, "deepen 9"),
        ({"agent": "some"}, "must add up to 1"),
    ],
)
def test_what_cannot_be_decided_is_refused_before_anything_is_trained(settings, said):
    class Unsure:
        def probabilities(self, observation):
            return [0.1] * len(observation.actions)

    kinds = bound({"grows": {**KINDS["vision"], "adaptive": settings}})
    with pytest.raises(ConfigError, match=rf"kinds\.grows\.adaptive: .*{said}"):
        Networks(kinds, 0, lambda folder: Unsure())


def test_a_kind_that_nobody_described_is_refused(site):
    with pytest.raises(ConfigError, match=r"kinds.vison is not in the configuration"):
        site.open(0, "vison", 0, 1, "")


def test_wrong_settings_say_where():
    with pytest.raises(ConfigError, match=r"kinds.vision.*storage"):
        networks({"vision": {"setup": {"storage_mbs": 3}}}, 0)
    with pytest.raises(ConfigError, match="storage_mb_s is -1; it must be above 0"):
        networks({"vision": {"setup": {"storage_mb_s": -1.0}}}, 0)


def test_a_checkpoint_is_no_pickle(site, tmp_path):
    work = iterate(site.open(0, "vision", 0, 1, ""), 1)
    file = Path(tmp_path / "kept")
    file.write_bytes(work.save())
    assert set(torch.load(file, weights_only=True)) == {"weights", "optimizer", "position", "task", "data"}


def test_a_checkpoint_that_was_trained_on_other_texts_is_refused(site):
    work = iterate(site.open(0, "language", 0, 1, ""), 1)
    state = torch.load(io.BytesIO(work.save()), weights_only=True)
    for data, fits in (("", True), ("others", False)):
        content = io.BytesIO()
        torch.save({**state, "data": data}, content)
        with nullcontext() if fits else pytest.raises(InputError, match="was trained on other data"):
            site.open(0, "language", 0, 1, "").load(content.getvalue())


def test_a_class_of_the_users_decides_for_any_opportunistic_job(tmp_path):
    file = tmp_path / "grow.py"
    file.write_text(
        "from dataclasses import dataclass\nimport rota\n\n@dataclass(frozen=True)\n"
        "class Last(rota.Growth):\n"
        "    back: int = 1\n    def choose(self, observation):\n"
        "        return observation.actions[-self.back]\n"
    )
    adaptive = {"agent": f"{file}:Last", "options": {"last": {"back": 2}}, "epoch": {"steps": 1}}
    site = networks({"grows": {**KINDS["vision"], "adaptive": adaptive}}, 0)
    job = site.open(0, "grows", 0, 1, "")
    job.tell(room=1, at_s=1.0)
    job.compute()
    decided = [note["chosen"] for note in job.notes() if note["what"] == "decided"]
    assert decided == ["deepen 2"]  # the last of three blocks; after it, there is nothing
