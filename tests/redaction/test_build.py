# SPDX-License-Identifier: Apache-2.0
"""Nothing that is written from a build shows a secret that the build has anywhere."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path

import fleets
import pytest
from builders import TraceBuilder
from databases import database_of
from fleets import SECRETS

from etrace.nfsdb.store import open_database
from etrace.query.rows.labels import Labels
from etrace.redaction.build import Redaction

KEY = "zQ36x7Kp9Lm2Vt5Rw8"
UPID = 1 << 22 | 1


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return two builds with secrets in words, names of files, scripts and the environment."""
    folder = tmp_path_factory.mktemp("redaction")
    return fleets.traced(folder / "a"), fleets.traced(folder / "b", other="int f(void){return 1;}")


def test_a_step_is_named_by_redacted_words(tmp_path: Path) -> None:
    commands = [
        ["curl", "-H", f"Authorization: Bearer {KEY}", "https://h/x"],
        ["fetch", "--password", KEY, "https://h/x"],
        ["curl", "-u", f"me:{KEY}", "https://h/x"],
        ["vault", "login", KEY],
        ["sh", "-c", f"mysql -p{KEY} db"],
        ["cp", "a", f"/tmp/out-{KEY}"],
        ["make", f"out-{KEY}"],
        ["gcc", f"-DTOKEN={KEY}", "-c", f"gen-{KEY}.c"],
    ]
    trace = TraceBuilder(cwd="/src")
    for argv in commands:
        trace.exec(UPID, f"/usr/bin/{argv[0]}", argv)
    image = database_of(tmp_path, trace.exit(UPID).trace())
    labels = Labels(image, Redaction(image).words)
    names = [labels.of(row) for row in range(image["executions"].n_rows)]
    assert [name for name in names if KEY[:6] in name] == []
    assert {"curl Authorization: [hidden]", "cp out-[hidden]", "cc gen-[hidden].c"} & set(names)
    plain = Labels(image)
    assert any(KEY in plain.of(row) for row in range(image["executions"].n_rows))


@pytest.mark.parametrize("words", [
    ["cas", "export", "sbom", "hello", "--format", "spdx3"],
    ["cas", "export", "sbom", "hello", "--format", "spdx2.3"],
    ["cas", "export", "sbom", "hello", "--format", "cyclonedx"],
    ["cas", "export", "sbom", "hello", "--format", "in-toto"],
    ["cas", "export", "sbom", "hello", "--format", "spdx3", "--environment", "*"],
    ["etrace", "timeline", "--format", "chrome"],
    ["etrace", "timeline", "--format", "perfetto"],
])  # fmt: skip
def test_no_document_of_a_build_shows_a_secret(
    words: list[str], trees: tuple[Path, Path], tmp_path: Path
) -> None:
    name = tmp_path / "document"
    fleets.run([str(fleets.BIN / words[0]), *words[1:], "-o", str(name)], cwd=trees[0])
    text = name.read_bytes().decode(errors="replace")
    assert len(text) > 100
    assert [secret for secret in SECRETS if secret in text] == []


def texts_of_page(page: str) -> str:
    """Return all that a report has as text: its markup, and what its data block unpacks to."""
    block = re.search(r'<script type="application/octet-stream" id="data">([^<]*)<', page)
    data = zlib.decompress(base64.b64decode(block[1])) if block else b""
    return page + data.decode(errors="replace")


def test_a_report_shows_no_secret(trees: tuple[Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    fleets.run([str(fleets.BIN / "etrace"), "report", "-o", str(page)], cwd=trees[0])
    found = texts_of_page(page.read_text())
    assert [secret for secret in SECRETS if secret in found] == []
    assert "[hidden]" in found
    assert "main.c" in found


def test_a_comparison_shows_no_secret(trees: tuple[Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "compare.html"
    words = ["compare", str(trees[0]), str(trees[1])]
    fleets.run([str(fleets.BIN / "etrace"), *words, "-o", str(page)], cwd=tmp_path)
    said, _ = fleets.run([str(fleets.BIN / "etrace"), *words], cwd=tmp_path)
    found = texts_of_page(page.read_text()) + said
    assert [secret for secret in SECRETS if secret in found] == []


def test_an_attestation_shows_no_secret(trees: tuple[Path, Path]) -> None:
    name = trees[0] / "statement.json"
    fleets.run([str(fleets.BIN / "etrace"), "attest", "write", "-o", str(name)], cwd=trees[0])
    text = name.read_text()
    assert json.loads(text)["subject"]
    assert [secret for secret in SECRETS if secret in text] == []


def test_values_of_the_environment_are_hidden_on_command_lines(trees: tuple[Path, Path]) -> None:
    redaction = Redaction(open_database(trees[0]))
    assert set(SECRETS) <= redaction.values
    shown = redaction.words([b"true", f"x{SECRETS[0]}y".encode(), b"main.c"])
    assert shown == [b"true", b"x[hidden]y", b"main.c"]
    assert redaction.within({"a": [SECRETS[1], 1, None]}) == {"a": ["[hidden]", 1, None]}


def test_bytes_that_are_no_text_are_kept(tmp_path: Path) -> None:
    trace = TraceBuilder(cwd="/src").exec(UPID, "/bin/a", ["a"]).exit(UPID)
    redaction = Redaction(database_of(tmp_path, trace.trace()))
    shown = redaction.words([b"\xff", b"--token", b"\xfe12345"])
    assert shown == [b"\xff", b"--token", b"[hidden]"]
    assert redaction.raw(b"\xffx") == b"\xffx"
