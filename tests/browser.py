# SPDX-License-Identifier: Apache-2.0
"""Debian's chromium without a window, driven over its pipe by the DevTools protocol.

Messages are JSON, each ended by a zero byte: https://chromedevtools.github.io/devtools-protocol/.
Two pipes take the place of a port, so nothing listens on the network.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SECONDS = 120
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
    "--hide-scrollbars", "--no-first-run", "--disable-extensions", "--disable-component-update",
    "--disable-background-networking", "--remote-debugging-pipe", "--force-color-profile=srgb",
)  # fmt: skip
#: ends when the page shows the report, or why it does not, or a comparison
READY = """new Promise(done => {
    const look = () => document.readyState === "complete" &&
        (globalThis.etraceReport || document.querySelector(".bad, main"))
        ? requestAnimationFrame(() => requestAnimationFrame(done))
        : requestAnimationFrame(look);
    look();
})"""


class BrowserError(Exception):
    """The browser is missing, ended, or a script of the page failed."""


def find() -> str:
    """Return the browser's program."""
    program = shutil.which("chromium")
    if program is None:
        raise BrowserError("no chromium: apt-get install chromium")
    return program


class Page:
    """One page of a running browser."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from, self._rest = to_browser, from_browser, b""
        self._number, self._session = 0, ""
        self.messages: list[str] = []  #: of the console, and exceptions
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def _read(self) -> dict[str, Any]:
        deadline = time.monotonic() + SECONDS
        while b"\0" not in self._rest:
            if not select.select([self._from], [], [], max(0, deadline - time.monotonic()))[0]:
                raise BrowserError(f"the browser said nothing for {SECONDS} s")
            data = os.read(self._from, 1 << 20)
            if not data:
                raise BrowserError("the browser ended")
            self._rest += data
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        self._note(found)
        return found

    def _note(self, message: dict[str, Any]) -> None:
        method, given = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.messages.append(json.dumps(given["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.messages.append(given["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        while (answer := self._read()).get("id") != self._number:
            pass
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page; promises are awaited."""
        result = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in result:
            raise BrowserError(json.dumps(result["exceptionDetails"]))
        return result["result"].get("value")

    def open(self, path: Path, *, dark: bool = False, width: int = 1280, height: int = 900) -> None:
        """Open a report and wait until its scripts are done."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        self.run("globalThis.isLeft = true")
        self.call("Page.navigate", url=path.absolute().as_uri())
        while self._is_left():
            pass
        self.run(READY)

    def _is_left(self) -> bool:
        """Whether scripts still run in the page that was shown before."""
        try:
            return bool(self.run("globalThis.isLeft === true"))
        except BrowserError as error:
            if "context" in str(error):  # of the page that goes away
                return True
            raise

    def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def click(self, x: float, y: float, to_x: float | None = None) -> None:
        """Click at a place, or drag from there to `to_x`."""
        end = x if to_x is None else to_x
        for kind, at in (("mousePressed", x), ("mouseMoved", end), ("mouseReleased", end)):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind, x=at, y=y, button="left", buttons=1, clickCount=1,
            )  # fmt: skip
        self.settle()

    def key(self, key: str, code: int = 0) -> None:
        """Press a key."""
        typed = "\r" if key == "Enter" else key
        text = {"text": typed} if len(typed) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code,
                **(text if kind == "keyDown" else {}),
            )  # fmt: skip
        self.settle()

    def picture(self) -> bytes:
        """Return what is shown, as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])


@contextmanager
def browser() -> Iterator[Page]:
    """Run a browser; yield its page."""
    program = find()
    with tempfile.TemporaryDirectory(prefix="etrace-browser-") as home:
        their_in, to_browser = os.pipe()
        from_browser, their_out = os.pipe()
        command = [program, *FLAGS, f"--user-data-dir={home}"]
        shell = f'exec "$@" 3<&{their_in} 4>&{their_out}'
        process = subprocess.Popen(
            ["bash", "-c", shell, "browser", *command],
            pass_fds=(their_in, their_out), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            env={**os.environ, "HOME": home},
        )  # fmt: skip
        os.close(their_in)
        os.close(their_out)
        try:
            yield Page(to_browser, from_browser)
        finally:
            os.close(to_browser)  # it ends when its pipe does
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            os.close(from_browser)
