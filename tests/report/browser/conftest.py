"""A real Chromium, and pages in it, over the DevTools protocol: messages through a pipe, no port."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest

REPOSITORY = Path(__file__).parents[3]
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
    "--force-color-profile=srgb", "--hide-scrollbars", "--remote-debugging-pipe", "--mute-audio",
)  # fmt: skip
KEYS = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "+": 187, "-": 189, "0": 48}
AT_MOST_S = 60.0


def do_without(reason: str) -> NoReturn:
    """Skip a test where no Chromium can be had; where ROTA_ENGINES is "required" it fails instead."""
    if os.environ.get("ROTA_ENGINES") == "required":
        pytest.fail(f"ROTA_ENGINES is required, but there is no Chromium: {reason}", pytrace=False)
    pytest.skip(f"no Chromium: {reason}")


class Chromium:
    """The browser: whoever asks gets a page of their own."""

    def __init__(self, program: str, folder: Path) -> None:
        self._folder = folder
        (theirs_in, self._to), (self._from, theirs_out) = os.pipe(), os.pipe()
        wait = f"exec '{program}' \"$@\" 3<&{theirs_in} 4>&{theirs_out}"
        command = ["bash", "-c", wait, "chromium", *FLAGS, f"--user-data-dir={folder}", "about:blank"]
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                command, pass_fds=(theirs_in, theirs_out), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        os.close(theirs_in)
        os.close(theirs_out)
        self._rest = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def ask(self, method: str, session: str = "", **parameters: object) -> dict[str, Any]:
        """Call a method and wait for what it says; events that come meanwhile are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                found: dict[str, Any] = answer["result"]
                return found
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            piece = os.read(self._from, 1 << 20)
            if not piece:
                raise RuntimeError(f"Chromium ended: {(self._folder / 'log').read_text()[-2000:]}")
            self._rest += piece
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def open(self, file: Path, **looks: Any) -> "Page":
        """A page of its own, with a file in it."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, target)
        page.open(file, **looks)
        return page

    def end(self) -> None:
        with suppress(OSError, RuntimeError):
            self.ask("Browser.close")
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._to)
        os.close(self._from)


@dataclass
class Page:
    """A page in the browser."""

    browser: Chromium
    session: str
    target: str
    loaded_s: float = field(default=0.0, init=False)
    """From asking for it until its script had run and it had been painted."""

    def ask(self, method: str, **parameters: object) -> dict[str, Any]:
        return self.browser.ask(method, self.session, **parameters)

    def open(self, file: Path, width: int = 1200, height: int = 900, dark: bool = False) -> None:
        for part in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{part}.enable")
        self.resize(width, height)
        self.look(dark)
        began_s = time.perf_counter()
        self.ask("Page.navigate", url=file.resolve().as_uri())
        self.until("document.documentElement?.dataset.ready")
        self.script("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        self.loaded_s = time.perf_counter() - began_s

    def look(self, dark: bool) -> None:
        """What the reader's system prefers."""
        preferred = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", features=preferred)

    def resize(self, width: int, height: int = 900) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.ask("Emulation.setDeviceMetricsOverride", **size)

    def script(self, expression: str) -> Any:
        """What an expression comes to."""
        found = self.ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, condition: str) -> Any:
        """Wait for an expression to come true; what it then is."""
        until_s = time.monotonic() + AT_MOST_S
        while not (found := self.script(condition)):
            assert time.monotonic() < until_s, f"never came: {condition}"
            time.sleep(0.02)
        return found

    def box(self, selector: str) -> dict[str, float]:
        """Where an element is, once it has been scrolled to the middle."""
        found: dict[str, float] = self.script(
            "(async e => { e.scrollIntoView({block: 'center', behavior: 'instant'});"
            " for (const _ of [1, 2]) await new Promise(requestAnimationFrame);"  # until it has scrolled
            " const {x, y, width, height} = e.getBoundingClientRect(); return {x, y, width, height}; })"
            f"(document.querySelector({json.dumps(selector)}))"
        )
        return found

    def mouse(self, kind: str, x: float, y: float, **more: object) -> None:
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def touch(self, *moments: Sequence[tuple[float, float]]) -> None:
        """Fingers, where they are at each moment; then they are lifted."""
        for number, fingers in enumerate(moments):
            points = [{"x": x, "y": y, "id": finger} for finger, (x, y) in enumerate(fingers)]
            kind = "touchMove" if number else "touchStart"
            self.ask("Input.dispatchTouchEvent", type=kind, touchPoints=points)
        self.ask("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def click(self, selector: str) -> None:
        box = self.box(selector)
        at = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, *at, button="left", clickCount=1)

    def press(self, key: str, *, shift: bool = False) -> None:
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if len(key) == 1 and kind == "keyDown" else {}
            self.ask(
                "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=KEYS[key],
                modifiers=8 if shift else 0, **text,
            )  # fmt: skip

    def screenshot(self, file: Path, *, whole: bool = False) -> Path:
        """What it looks like, as a PNG."""
        found = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(found["data"]))
        return file

    def complaints(self) -> list[str]:
        """Errors and warnings in the console, exceptions, and whatever was fetched from anywhere else."""
        self.script("0")
        mine = [each for each in self.browser.events if each.get("sessionId") == self.session]
        return [text for each in mine if (text := _complaint(each["method"], each["params"]))]

    def close(self) -> None:
        self.browser.ask("Target.closeTarget", targetId=self.target)


def _complaint(method: str, params: dict[str, Any]) -> str:
    if method == "Runtime.exceptionThrown":
        return str(params["exceptionDetails"])
    if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
        return str(params["args"])
    if method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
        return str(params["entry"])
    if method == "Network.requestWillBeSent" and not params["request"]["url"].startswith(("file:", "data:")):
        return f"fetched {params['request']['url']}"
    return ""


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """One browser for all tests, with an empty profile."""
    found = subprocess.run(
        ["bash", REPOSITORY / "setup" / "chromium.sh"], capture_output=True, text=True, timeout=900
    )
    if found.returncode != 0:
        do_without(found.stderr.strip().rpartition("\n")[2])
    folder = Path(tempfile.mkdtemp(prefix="rota-chromium-"))
    browser = Chromium(found.stdout.strip(), folder)
    yield browser
    browser.end()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def open_page(chromium: Chromium) -> Iterator[Callable[..., Page]]:
    """Gives a function that opens a file; it must have had nothing to complain about in the end."""
    opened: list[Page] = []

    def open_(file: Path, **looks: Any) -> Page:
        opened.append(chromium.open(file, **looks))
        return opened[-1]

    yield open_
    complaints = [each for page in opened for each in page.complaints()]
    for page in opened:
        page.close()
    assert not complaints, complaints
