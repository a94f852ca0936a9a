"""A Ray cluster: a running one, or one that is started on this machine for a run."""

import functools
import logging
import math
import os
import secrets
import shutil
import signal
import socket
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
"""Size of the object store of an own cluster, which only carries messages."""
ALONE = {
    "RAY_AUTH_MODE": "token",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # the name is misleading: all sockets are on the loopback
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",  # else 15: on a busy machine, actors hardly get to start
}
"""The environment of an own cluster: private, its actors with the priority of local workers."""
TOKEN = "RAY_AUTH_TOKEN_PATH"
ANSWERS_WITHIN_S = 10.0
"""Seconds within which a running cluster accepts a connection."""
PREFIX = "rota-ray-"
"""The prefix of folders of own clusters."""
PASSED_ON = ("PYTHONPATH", "GLOO_SOCKET_IFNAME")
"""Environment variables passed on to workers: where modules are found, and where gangs meet."""


class NoCluster(InputError):
    """Ray is not installed, does not start, or refuses the connection."""


@dataclass(frozen=True, slots=True)
class RayNode:
    """A node of the cluster that is alive."""

    id: str
    name: str
    """Name that it was given, or else its address."""
    names: frozenset[str]
    """Names that it may have: name, address and host."""
    labels: Mapping[str, str]
    resources: Mapping[str, float]


@dataclass(slots=True)
class RayCluster:
    """A Ray cluster, connected from `connect` to `close`; one at a time in a process."""

    address: str
    """The address of a running cluster; empty: one is started here."""
    cpus: float = 1.0
    """Number of CPUs of an own cluster."""
    resources: Mapping[str, float] = field(default_factory=dict)
    """Further resources of an own cluster."""
    link: Path | None = None
    """A link to the folder of an own cluster, so that a resumed run can remove what a killed one left."""
    _folder: Path | None = field(default=None, init=False)

    def connect(self) -> Any:
        """Connect to the cluster; return the module `ray`."""
        if self.address:
            _check_answers(self.address)
        else:
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
                raise NoCluster(f"Ray {where}: {first_line(error)}; {fix}") from error
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
        """Return the environment of workers; gangs of an own cluster stay on this machine."""
        passed = {name: os.environ[name] for name in PASSED_ON if os.environ.get(name)}
        return passed if self.address else LOOPBACK | passed

    def nodes(self) -> list[RayNode]:
        """Return the nodes that are alive, sorted by name."""
        ray = _imported()
        try:
            found = [_node(entry) for entry in ray.nodes() if entry["Alive"]]
        except ray.exceptions.RayError as error:
            raise NoCluster(f"Ray: {first_line(error)}; go on with --resume when it is back") from error
        return sorted(found, key=lambda node: (node.name, node.id))

    def here(self) -> str:
        """Return the id of the node of this process."""
        return str(_imported().get_runtime_context().get_node_id())

    def close(self) -> None:
        """Disconnect; an own cluster ends."""
        with _own_signals():
            _imported().shutdown()
        self._remove_folder()

    def _prepare(self) -> None:
        """Create a folder for its owner only, with a short name, as paths of sockets must be."""
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
        """Remove the link and the folder of a cluster that a killed controller left."""
        if self.link is not None and self.link.is_symlink():
            left = self.link.readlink()
            if left.parent == Path(tempfile.gettempdir()) and left.name.startswith(PREFIX):
                shutil.rmtree(left, ignore_errors=True)
            self.link.unlink()


def _check_answers(address: str) -> None:
    """Raise NoCluster if no process listens at `HOST:PORT`: Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        try:
            socket.create_connection((host.strip("[]"), int(port)), ANSWERS_WITHIN_S).close()
        except (OSError, OverflowError) as error:
            raise NoCluster(f"Ray {address}: does not answer ({error}); is it running?") from None


def _node(entry: Mapping[str, Any]) -> RayNode:
    names = (entry["NodeName"], entry["NodeManagerAddress"], entry["NodeManagerHostname"])
    return RayNode(entry["NodeID"], names[0], frozenset(names), entry["Labels"], entry["Resources"])


def _imported() -> Any:
    """Import ray, which reads the environment once, at that time."""
    try:
        import ray
    except ModuleNotFoundError:
        raise NoCluster('ray: not installed; pip install "rota[ray]"') from None
    return ray


@functools.cache
def _token() -> str:
    """Return the token of all clusters that this process starts: Ray reads it once."""
    return secrets.token_hex(32)


@contextmanager
def _own_signals() -> Iterator[None]:
    """Restore the signal handlers that Ray replaces."""
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


def first_line(error: Exception) -> str:
    """Return the first line of an error message, or the name of the error if it has none."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
