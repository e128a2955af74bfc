# SPDX-License-Identifier: Apache-2.0
"""A server in a process of its own, and one that asks it."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

PROGRAM = "import sys; from etrace.cli.main import etrace; sys.exit(etrace())"


@dataclass(frozen=True, slots=True)
class Answer:
    """A response; `value` is its JSON, None for other types."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        """The JSON."""
        return json.loads(self.body)


class Server:
    """`etrace serve` on these databases."""

    def __init__(
        self, *databases: Path, options: tuple[str, ...] = (), program: str = PROGRAM
    ) -> None:
        words = ["serve", "--port", "0", *options, *map(str, databases)]
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, *words],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/(?:fleet)?#token=(\S+)\n", line)
        assert found, line
        self.port, self.token = int(found[1]), found[2]

    def ask(self, address: str, headers: dict[str, str] | None = None, method: str = "GET",
            **parameters: Any) -> Answer:  # fmt: skip
        """Send a request, with the token unless headers are given."""
        given = {"Authorization": f"Bearer {self.token}"} if headers is None else headers
        words = f"?{urlencode(parameters, doseq=True)}" if parameters else ""
        connection = self.connected()
        connection.request(method, address + words, headers=given)
        response = connection.getresponse()
        answer = Answer(response.status, dict(response.getheaders()), response.read())
        connection.close()
        return answer

    def connected(self) -> http.client.HTTPConnection:
        """A connection."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def query(self, name: str, database: str = "build", **parameters: Any) -> Answer:
        """Ask a query; `_` in names of parameters stands for `-`."""
        dashed = {key.replace("_", "-"): value for key, value in parameters.items()}
        return self.ask(f"/api/v1/databases/{database}/{name}", **dashed)

    def end(self) -> str:
        """End it; returns what it said."""
        self.process.terminate()
        return self.process.communicate(timeout=30)[1]
