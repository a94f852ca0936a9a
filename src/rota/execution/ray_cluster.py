"""A cluster of Ray: one that runs, or one that is started on this machine for as long as a run takes."""

import functools
import logging
import math
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

from rota.core.errors import InputError
from rota.execution.local import LOOPBACK

STORE_BYTES = 100_000_000
"""Of a cluster of our own: nothing but orders and answers goes through it."""
ALONE = {
    "RAY_AUTH_MODE": "token",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # the name is misleading: all sockets are on the loopback
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",  # else 15: beside anything busy, actors hardly get to start
}
"""The environment of a cluster of our own: private, its actors as important as local workers."""
TOKEN = "RAY_AUTH_TOKEN_PATH"
PREFIX = "rota-ray-"
"""By which folders of clusters of our own are known."""
HANDED_ON = ("PYTHONPATH", "GLOO_SOCKET_IFNAME")
"""Of this process's environment: workers find what it finds, and gangs meet where it says."""


class NoCluster(InputError):
    """Ray is not installed, does not start, or does not let us in."""


@dataclass(frozen=True, slots=True)
class RayNode:
    """A node of the cluster that is alive."""

    id: str
    name: str
    """That it was given; its address if it was given none."""
    names: frozenset[str]
    """What it may be called: its name, its address, its host."""
    labels: Mapping[str, str]
    resources: Mapping[str, float]


@dataclass(slots=True)
class RayCluster:
    """Connected to from the first `connect` to `close`; one at a time in a process."""

    address: str
    """Of one that runs; nothing: one is started here."""
    cpus: float = 1.0
    """That one of our own has to give away."""
    resources: Mapping[str, float] = field(default_factory=dict)
    """And what else."""
    link: Path | None = None
    """Points at the folder of one of our own, so that whoever resumes a run that was killed can remove it."""
    _folder: Path | None = field(default=None, init=False)

    def connect(self) -> Any:
        """The module `ray`, in contact with the cluster."""
        if not self.address:
            self._prepare()
        ray = _imported()
        with _own_signals():
            try:
                ray.init(**self._arguments())
            except Exception as error:
                self._remove_folder()
                where = self.address or "on this machine"
                fix = (
                    f"is it running, and is {TOKEN} the file with its token?" if self.address else "see above"
                )
                raise NoCluster(f"Ray {where}: {_first_line(error)}; {fix}") from error
        return ray

    def _arguments(self) -> dict[str, Any]:
        common: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if environment := self._environment():
            common["runtime_env"] = {"env_vars": environment}
        if self.address:
            return {"address": self.address, **common}
        assert self._folder is not None
        return {
            "address": "local",
            "num_cpus": max(1, math.ceil(self.cpus)),
            "resources": dict(self.resources),
            "include_dashboard": False,
            "object_store_memory": STORE_BYTES,
            "_temp_dir": str(self._folder / "ray"),
            **common,
        }

    def _environment(self) -> dict[str, str]:
        """Of workers; gangs of a cluster of our own stay on this machine."""
        told = {name: os.environ[name] for name in HANDED_ON if os.environ.get(name)}
        return told if self.address else LOOPBACK | told

    def nodes(self) -> list[RayNode]:
        """Those that are alive, in the order of their names."""
        ray = _imported()
        try:
            found = [_node(entry) for entry in ray.nodes() if entry["Alive"]]
        except ray.exceptions.RayError as error:
            raise NoCluster(f"Ray: {_first_line(error)}; go on with --resume when it is back") from error
        return sorted(found, key=lambda node: (node.name, node.id))

    def here(self) -> str:
        """The id of the node that this process is on."""
        return str(_imported().get_runtime_context().get_node_id())

    def close(self) -> None:
        """Leave it; one of our own ends."""
        with _own_signals():
            _imported().shutdown()
        self._remove_folder()

    def _prepare(self) -> None:
        """A folder with a short name, as paths of sockets must be; only its owner can enter."""
        self._remove_link()
        self._folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        token = self._folder / "token"
        with os.fdopen(os.open(token, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            stream.write(_token())
        if self.link is not None:
            self.link.symlink_to(self._folder)
        os.environ.update(ALONE | {TOKEN: str(token)})

    def _remove_folder(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
            self._remove_link()

    def _remove_link(self) -> None:
        """And what it points at, if we made that: left by a controller that was killed."""
        if self.link is not None and self.link.is_symlink():
            left = self.link.readlink()
            if left.parent == Path(tempfile.gettempdir()) and left.name.startswith(PREFIX):
                shutil.rmtree(left, ignore_errors=True)
            self.link.unlink()


def _node(entry: Mapping[str, Any]) -> RayNode:
    names = (entry["NodeName"], entry["NodeManagerAddress"], entry["NodeManagerHostname"])
    return RayNode(entry["NodeID"], names[0], frozenset(names), entry["Labels"], entry["Resources"])


def _imported() -> Any:
    """Not before the environment says what it has to: Ray reads it once."""
    try:
        import ray
    except ModuleNotFoundError:
        raise NoCluster('ray: not installed; pip install "rota[ray]"') from None
    return ray


@functools.cache
def _token() -> str:
    """The same for all clusters that this process starts: Ray reads it once."""
    return secrets.token_hex(32)


@contextmanager
def _own_signals() -> Iterator[None]:
    """Ray takes SIGTERM for itself; whoever had it gets it back."""
    if current_thread() is not main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            with suppress(TypeError):  # one that was not set from Python
                signal.signal(number, handler)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
