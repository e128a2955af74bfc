# SPDX-License-Identifier: Apache-2.0
"""How the commands start Python: isolated from what a build sets for a Python of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent
COMMANDS = ("cas", "etrace", "etrace_parser", "etraced", "unix-tracer")
START = "etrace_start"
FOREIGN = 'raise SystemExit("a module of the build")\n'
VARIABLES = (
    ("PYTHONHOME", "/nonexistent"), ("PYTHONPATH", "{}"), ("PYTHONPATH", ":"),
    ("PYTHONSTARTUP", "{}/etrace.py"), ("PYTHONSAFEPATH", "1"), ("PYTHONNOUSERSITE", "1"),
    ("PYTHONWARNINGS", "error"), ("PYTHONOPTIMIZE", "2"), ("PYTHONINSPECT", "1"),
    ("PYTHONDONTWRITEBYTECODE", "1"), ("PYTHONMALLOC", "no such allocator"),
    ("PYTHONIOENCODING", "no such encoding"), ("PYTHONUTF8", "no number"),
    ("PYTHONHASHSEED", "no number"), ("PYTHONBREAKPOINT", "etrace"), ("PYTHONUSERBASE", "{}"),
    ("PYTHONPLATLIBDIR", "nowhere"), ("PYTHONPYCACHEPREFIX", "{}"), ("PYTHONVERBOSE", "1"),
    ("PYTHONDEVMODE", "1"), ("PYTHONEXECUTABLE", "/nonexistent"), ("PYTHONPROFILEIMPORTTIME", "1"),
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with modules of a build that have the names of ours and of Python's."""
    for name in ("etrace", "libetrace", "sitecustomize", "usercustomize", "json", "argparse"):
        (tmp_path / f"{name}.py").write_text(FOREIGN)
    return tmp_path


def call(folder: Path, *words: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, cwd=folder, env={**os.environ, **more}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(("name", "value"), VARIABLES)
def test_a_variable_for_python_reaches_the_build_alone(name: str, value: str, folder: Path) -> None:
    given = value.format(folder)
    shown = ("sh", "-c", f'printf %s "${name}"')
    done = call(folder, BIN / "etrace", "run", "-q", "--", *shown, **{name: given})
    assert (done.returncode, done.stdout, done.stderr) == (0, given, "")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_isolated(command: str, folder: Path) -> None:
    foreign = {"PYTHONHOME": "/nonexistent", "PYTHONPATH": str(folder)}
    done = call(folder, BIN / command, "--help", **foreign)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: {command}")


def test_a_link_starts_the_command_that_it_leads_to(folder: Path) -> None:
    (folder / "links").mkdir()
    link = folder / "links" / "trace-it"
    link.symlink_to(BIN / "cas")
    assert call(folder, link, "--version").stdout.startswith("cas ")


@pytest.mark.parametrize("name", ["libetrace", "json", "argparse"])
def test_as_a_module_it_takes_no_other_module_from_the_working_directory(
    name: str, folder: Path
) -> None:
    (folder / "etrace.py").unlink()
    (folder / "sitecustomize.py").unlink()  # Python itself imports both
    (folder / "usercustomize.py").unlink()
    for more in ({}, {"PYTHONPATH": str(folder)}, {"PYTHONPATH": f"/nowhere:{folder}"}):
        words = (sys.executable, "-m", "etrace", "summary", "--help")
        done = call(folder, *words, **more)
        assert (done.returncode, done.stderr) == (0, ""), name


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the launcher, and a Python that prints its arguments."""
    (tmp_path / "bin").mkdir()
    shutil.copy(BIN / "cas", tmp_path / "bin/cas")
    python = tmp_path / "a folder/python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    python.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    "head",
    ["#!{}\n", "#! {}\n", "#!/bin/sh\n'''exec' \"{}\" \"$0\" \"$@\"\n' '''\n",
     "#!/bin/sh\n'''exec' '{}' \"$0\" \"$@\"\n' '''\n"],
)  # fmt: skip
def test_python_is_the_one_that_an_installer_wrote_down(head: str, place: Path) -> None:
    python = place / "a folder/python"
    if '"' not in head:  # no blank can be in such a line
        python = python.rename(place / "python")
    start = place / "bin" / START
    start.write_text(head.format(python) + "# the rest\n")
    done = call(place, place / "bin/cas", "deps", "a b", "")
    assert done.stdout.split("\n") == ["-I", str(start), "cas", "deps", "a b", "", ""]


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("", "names no Python"),
        ("#!python\n", "names no Python"),
        ("#!/none/python\n", "/none/python: No such file"),
        (None, f"{START}: No such file"),
    ],
)  # fmt: skip
def test_a_python_that_is_gone_is_named(head: str | None, said: str, place: Path) -> None:
    if head is not None:
        (place / "bin" / START).write_text(head)
    done = call(place, place / "bin/cas", "deps")
    assert (done.returncode, said in done.stderr) == (125, True)
    assert "install etrace again" in done.stderr


@pytest.mark.parametrize("home", ["/nonexistent", "{}/home"])
def test_packages_installed_beside_the_commands_are_found(home: str, place: Path) -> None:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    package = place / "lib" / version / "site-packages/etrace/cli"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "main.py").write_text("PROGRAMS = {'cas': lambda: print('this one')}\n")
    start = place / "bin" / START
    start.write_text((BIN / START).read_text())
    done = call(place, place / "bin/cas", "deps", HOME=home.format(place))
    assert (done.returncode, done.stdout, done.stderr) == (0, "this one\n", "")
