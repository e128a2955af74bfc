# SPDX-License-Identifier: Apache-2.0
"""Which tool an execution ran, and TOML that contradicts itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from etrace.compilers.tools import Tools, load
from etrace.errors import SpecError

IDENTIFIED = [
    (b"/usr/bin/gcc", b"gcc", "gcc"),
    (b"/usr/bin/cc", b"cc", "gcc"),
    (b"/usr/bin/c++", b"c++", "g++"),
    (b"/usr/bin/x86_64-linux-gnu-gcc-12", b"gcc", "gcc"),
    (b"/usr/bin/gcc-12.2.0", b"", "gcc"),
    (b"/usr/bin/g++-103", b"", "g++"),
    (b"/opt/arm-none-eabi-g++", b"x", "g++"),
    (b"/opt/x86_64-w64-mingw32-gcc.exe", b"x", "gcc"),
    (b"/opt/aarch64-poky-linux-musl-gcc-13", b"x", "gcc"),
    (b"/usr/bin/clang", b"clang++", "clang++"),
    (b"/usr/lib/llvm-14/bin/clang", b"clang-14", "clang"),
    (b"/usr/bin/clang++-14", b"", "clang++"),
    (b"/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus", b"cc1plus", "cc1plus"),
    (b"/usr/bin/ccache", b"gcc", "ccache"),
    (b"/usr/lib/ccache/gcc", b"gcc", "ccache"),
    (b"/usr/lib64/ccache/bin/clang", b"clang", "ccache"),
    (b"/usr/local/go/pkg/tool/linux_amd64/compile", b"compile", "go"),
    (b"/usr/bin/x86_64-linux-gnu-as", b"", "as"),
    (b"/usr/bin/busybox", b"nasm", "nasm"),
    (b"/usr/bin/perl", b"gcc", "gcc"),
    (b"/usr/bin/compile", b"compile", None),
    (b"/usr/bin/bash", b"-bash", None),
    (b"", b"", None),
]


@pytest.mark.parametrize(("binary", "argv0", "name"), IDENTIFIED)
def test_a_tool_is_known_by_path_or_argv0(binary: bytes, argv0: bytes, name: str | None) -> None:
    tool = load().identify(binary, argv0)
    assert (tool.name if tool else None) == name


def test_a_link_of_another_name_is_followed(tmp_path: Path) -> None:
    link = tmp_path / "our-tool"
    link.symlink_to("/usr/bin/ar")
    found, wanted = (
        load().identify(binary, b"./our-tool") for binary in (os.fsencode(link), b"/usr/bin/ar")
    )
    assert found is wanted is not None


def test_options_and_settings_are_inherited_and_names_are_not() -> None:
    tools = Tools(
        {
            "a": {
                "kind": "linker",
                "names": ["a"],
                "default": "x",
                "options": {"output": ["-o ARG"], "other": ["-z ARG"]},
            },
            "b": {"extends": "a", "names": ["b"], "options": {"output": ["-z ARG"]}},
        }
    )
    tool = tools.identify(b"/b", b"")
    assert tool is tools["b"]
    assert (tool.kind, tool.family, tool.settings) == ("linker", "b", {"default": "x"})
    assert tool.options.forms == {"-o ARG": "output", "-z ARG": "output"}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (
            {"a": {"kind": "tool"}},
            "a: kind is not one of compiler, linker, archiver, launcher, runner",
        ),
        ({"a": {"extends": "b"}}, "a extends b: no such tool"),
        ({"a": {"extends": "a"}}, "a extends a: no such tool"),
        (
            {"a": {"kind": "linker", "names": ["x"]}, "b": {"kind": "linker", "names": ["x"]}},
            "x is both a and b",
        ),
    ],
)
def test_contradictions_are_named(raw: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError) as caught:
        Tools(raw)
    assert caught.value.message == f"compilers: {message}"
