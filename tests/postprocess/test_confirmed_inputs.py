# SPDX-License-Identifier: Apache-2.0
"""gcc's own word on the input files of captured compilations, by the plugin; nothing is written."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from backends import capture
from compiling import BuildTeller, write_database
from libetrace.depend import configuration as config
from libetrace.image.file import Image

import etrace
from etrace.errors import EtraceError
from etrace.nfsdb.store import open_database
from etrace.postprocess import run
from etrace.postprocess.compilations.confirmed_inputs import PLUGIN, Answer, confirm, find_plugin

SOURCE = Path(__file__).parents[2] / "native/gcc_input_name/plugin.cc"
BUILD = """\
gcc -c a.c -DX -Ino -MD
gcc a.c sub/b.c -o prog
g++ -x c++ -c a.c -o cxx.o
gcc a.o sub/b.c -o linked
gcc -c link.c
gcc -c s.S
clang -c a.c
gcc -x c -c -o in.o - < a.c
gcc -c gone.c
rm gone.c
"""


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the plugin: the installed one is only there when its headers were before the build."""
    asked = subprocess.run(
        ["gcc", "-print-file-name=plugin"], capture_output=True, check=True, text=True
    )
    include = Path(asked.stdout.strip()) / "include"
    if not (include / "gcc-plugin.h").is_file():
        pytest.fail(f"{include}/gcc-plugin.h is missing: build-aux/setup test")
    path = tmp_path_factory.mktemp("plugin") / PLUGIN
    flags = ["-std=gnu++17", "-shared", "-fPIC", "-fno-rtti", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["g++", *flags, "-isystem", include, SOURCE, "-o", path], check=True)
    return path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Image]:
    directory = tmp_path_factory.mktemp("confirmed") / "build"
    (directory / "sub").mkdir(parents=True)
    for name, text in {
        "a.c": "int main(void) { return 0; }\n",
        "sub/b.c": "int b(void) { return 0; }\n",
        "gone.c": "",
        "s.S": "",
        "build.sh": BUILD,
    }.items():
        (directory / name).write_text(text)
    (directory / "link.c").symlink_to("sub/b.c")
    captured = capture(["bash", "build.sh"], directory)
    database = directory.parent / "database"
    database.mkdir()
    image = write_database(database, captured.trace.read_bytes())
    run.postprocess(image, config.load(database), ["compilations"])
    return directory, open_database(image.path)


def snapshot(directory: Path) -> dict[str, tuple[int, bytes]]:
    """Return what every file is: time and content."""
    return {
        str(path): (path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in sorted(directory.rglob("*"))
    }


def test_gcc_names_the_inputs_that_were_found(built: tuple[Path, Image], plugin: Path) -> None:
    directory, image = built
    before = snapshot(directory)
    answers = confirm(image, config.load(image.path.parent), plugin, 2, lambda *_: None)
    assert snapshot(directory) == before
    base = os.fsencode(directory)
    named = [
        answer.named and tuple(path.removeprefix(base + b"/") for path in answer.named)
        for answer in answers
    ]
    assert named == [
        (b"a.c",), (b"a.c", b"sub/b.c"), (b"a.c",), (b"sub/b.c",), (b"link.c",), None,
    ]  # fmt: skip
    assert [answer.is_same for answer in answers] == [True] * 5 + [False]


def test_other_names_are_a_difference() -> None:
    assert Answer(0, (b"/a.c",), (b"/a.c",)).is_same
    assert not Answer(0, (b"/a.c",), (b"/b.c",)).is_same
    assert not Answer(0, (b"/a.c",), None).is_same


def test_without_compilations_it_is_said_what_to_do(tmp_path: Path, plugin: Path) -> None:
    image = write_database(tmp_path, BuildTeller().trace())
    with pytest.raises(EtraceError, match="has no compilations yet"):
        confirm(image, config.load(tmp_path), plugin, 1, lambda *_: None)


def test_an_etrace_built_without_the_plugin_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(etrace, "__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(EtraceError, match="built without gcc's plugin") as caught:
        find_plugin()
    assert "gcc-$(gcc -dumpversion)-plugin-dev" in caught.value.hint
    (tmp_path / "libexec").mkdir()
    (tmp_path / "libexec" / PLUGIN).write_bytes(b"")
    assert find_plugin() == tmp_path / "libexec" / PLUGIN


def test_the_plugin_prints_inputs_and_compiles_nothing(tmp_path: Path, plugin: Path) -> None:
    (tmp_path / "bad.c").write_text("#error never read\n")
    done = subprocess.run(
        ["gcc", "-fsyntax-only", f"-fplugin={plugin}", "bad.c"],
        cwd=tmp_path, capture_output=True, check=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (b"bad.c\n", b"")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.c"]
