# SPDX-License-Identifier: Apache-2.0
"""`etrace attest`: what it vouches for is found changed, and a signature of it checked."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import bills
import databases
import pytest

from etrace.cli.main import etrace

KEEPS = "someone@example.org"


@pytest.fixture
def built(tmp_path: Path) -> Path:
    databases.capture_database(tmp_path, ["true"], tmp_path)
    (tmp_path / "sbom.json").write_text("{}")
    return tmp_path


def attest(built: Path, *words: str | Path) -> int:
    return etrace(["attest", *map(str, words)])


def test_every_file_is_found_as_it_was(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = built / "out" / "build.att.json"
    output.parent.mkdir()
    assert attest(built, "write", built / "sbom.json", "--db", built, "-o", output) == 0
    said = json.loads(output.read_text())
    names = [each["name"] for each in said["subject"]]
    assert {"../.nfsdb", "../.nfsdb.img", "../sbom.json"} <= set(names)
    capsys.readouterr()
    assert attest(built, "check", output) == 0
    assert capsys.readouterr().out == "".join(f"ok         {name}\n" for name in names)


@pytest.mark.parametrize("state", ["changed", "missing", "unreadable"])
def test_what_differs_is_named(built: Path, capsys: pytest.CaptureFixture[str], state: str) -> None:
    output, file = built / "a.json", built / "sbom.json"
    assert attest(built, "write", file, "--db", built, "-o", output) == 0
    file.unlink()
    if state == "changed":
        file.write_text("{ }")
    if state == "unreadable":
        os.mkfifo(file)
    capsys.readouterr()
    assert attest(built, "check", output) == 1
    assert f"{state:10} sbom.json\n" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"_type": 1}', "[" * 100_000])
def test_what_is_no_statement_is_refused(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.json"
    file.write_text(text)
    assert attest(tmp_path, "check", file) == 2
    assert "etrace attest" in capsys.readouterr().err


def test_a_statement_is_not_about_itself(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = built / "sbom.json"
    assert attest(built, "write", there, "--db", built, "-o", there) == 2
    assert "is both written and attested" in capsys.readouterr().err
    assert there.read_text() == "{}"


def test_a_missing_statement_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert attest(tmp_path, "check", tmp_path / "none") == 2
    assert capsys.readouterr().err == f"etrace: error: {tmp_path}/none: No such file or directory\n"


def test_a_signature_by_ssh_keygen_is_checked(built: Path) -> None:
    """The commands are those of docs/sbom.md."""
    page = (Path(__file__).parents[2] / "docs/sbom.md").read_text()
    script = page.partition("<!-- sign -->\n```\n")[2].partition("```")[0]
    assert "ssh-keygen -Y sign" in script
    folder = built / "signing"
    folder.mkdir()
    environment = {**os.environ, "PATH": f"{bills.BIN}:{os.environ['PATH']}", "DB_DIR": str(built)}
    (folder / "sbom.spdx.json").write_text("{}")

    def run(text: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-e", "-c", text], cwd=folder, env=environment, capture_output=True, text=True,
            check=False,
        )  # fmt: skip

    done = run(script)
    assert done.returncode == 0, done.stderr
    assert "Good" in done.stdout
    statement = folder / "build.att.json"
    statement.write_text(statement.read_text().replace("sha256", "sha256 "))
    checking = script[script.index("ssh-keygen -Y verify") :]
    assert run(checking).returncode != 0
