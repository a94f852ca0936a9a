"""An unfinished recording: its folder, its settings, and its progress."""

import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar

from tqdm import tqdm

from rota.core.errors import ConfigError, InputError
from rota.core.files import folder_lock, write_file
from rota.recordings.folder import complete, read_about
from rota.recordings.library import PARTIAL

BAR = "{desc}: {percentage:3.0f}%|{bar}| {n:.0f}/{total:.0f} s of training, {remaining} left"


class RecordingProgress:
    """A progress bar on a terminal, in seconds of training; silent elsewhere."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._bar: Any = tqdm(
            total=0.0,
            disable=True if quiet else None,
            unit="s",
            dynamic_ncols=True,
            bar_format=BAR,
        )

    def __enter__(self) -> "RecordingProgress":
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._bar.close()

    def expect(self, seconds: float) -> None:
        """Add so many seconds of work."""
        self._bar.total += seconds
        self._bar.refresh()

    def say(self, what: str) -> None:
        """Set the description of the current work."""
        self._bar.set_description(what)

    def advance(self, seconds: float) -> None:
        """Count so many seconds as done."""
        self._bar.update(seconds)


RENAMED = {"beside": "copies"}
"""Settings that older recordings know by another name."""
LATER = {"copies": 0, "storage_mb_s": None, "test": None}
"""Settings added after the first recordings, with their defaults: recordings leave defaults out."""


def check_name(name: str) -> None:
    """Raise unless a recording may have this name, which is also its folder's."""
    if not name.replace("-", "").replace("_", "").isalnum():
        raise ConfigError(f"name {name!r}: give letters, digits, '-' and '_'")


@dataclass(frozen=True, slots=True)
class Partial:
    """The finished pieces of a recording, each a file that is written atomically."""

    out: Path
    """Folder of the recordings."""
    name: str

    @property
    def folder(self) -> Path:
        """The folder of the pieces."""
        return self.out / PARTIAL / self.name

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the recording for one recorder, from outside the folder, which is removed at the end."""
        with folder_lock(self.out / PARTIAL / ".locks" / self.name):
            yield

    def claim(self, asked: dict[str, Any]) -> None:
        """Raise unless what is there was begun with the same settings."""
        file, text = self.folder / "asked.json", json.dumps(asked, indent=1, allow_nan=False)
        if not file.exists():
            write_file(file, text)
        elif as_asked(self.get("asked")) != as_asked(asked):
            raise InputError(
                f"{self.folder}: something unfinished with other settings is there; finish that, record into "
                f"another folder (--out), or delete {self.folder}"
            )

    def put(self, name: str, value: Any) -> None:
        """Store a piece: plain values."""
        write_file(self.folder / f"{name}.json", json.dumps(value))

    def get(self, name: str) -> Any | None:
        """Return a piece, or None if it is not there."""
        file = self.folder / f"{name}.json"
        try:
            return json.loads(file.read_text("utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise InputError(f"{file}: cannot be read ({error}); delete it to record it again") from None

    def drop(self, name: str) -> None:
        """Remove a piece, as what it belongs to is complete."""
        (self.folder / f"{name}.json").unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove all pieces, as the recording is complete."""
        shutil.rmtree(self.folder, ignore_errors=True)


def as_asked(settings: Any) -> Any:
    """Return settings as they are read back from a recording."""
    return json.loads(json.dumps(settings), object_hook=_without_later)


def _without_later(settings: dict[str, Any]) -> dict[str, Any]:
    named = {RENAMED.get(name, name): value for name, value in settings.items()}
    return {name: value for name, value in named.items() if name not in LATER or value != LATER[name]}


def recorded(folder: Path, asked: dict[str, Any]) -> bool:
    """Return whether this recording is complete; one with other settings is an error."""
    if not complete(folder):
        return False
    about = read_about(folder)
    for name in about.files:
        about.table(name)
    if as_asked(about.what["details"].get("asked")) != asked:
        raise refuse_other(folder)
    return True


@dataclass(frozen=True, slots=True)
class Recorder(ABC):
    """A recorder of one recording, into a folder of its kind."""

    out: Path
    config: Any
    command: str

    KIND: ClassVar[str]

    @property
    def folder(self) -> Path:
        """The folder of the recording."""
        return self.out / self.KIND / str(self.config.name)

    @property
    def partial(self) -> Partial:
        """The finished pieces of the recording."""
        return Partial(self.out, f"{self.KIND}-{self.config.name}")

    def record(self, progress: RecordingProgress) -> Iterator[Path]:
        """Record what is missing; yield the folder when it is complete."""
        asked = as_asked(asdict(self.config))
        with self.partial.alone():
            if not recorded(self.folder, asked):
                self._check()
                self.partial.claim(asked)
                self._record(progress)
                self._write(asked)
                yield self.folder
            self.partial.remove()

    @abstractmethod
    def _check(self) -> None:
        """Raise, before anything is recorded, if something is missing."""

    @abstractmethod
    def _record(self, progress: RecordingProgress) -> None:
        """Record the pieces that are missing."""

    @abstractmethod
    def _write(self, asked: dict[str, Any]) -> None:
        """Write the recording from its pieces."""


def refuse_other(folder: Path) -> InputError:
    """Return the error that a recording of that name has other settings."""
    return InputError(
        f"{folder}: was recorded with other settings; record into another folder (--out), or move it away"
    )
