# SPDX-License-Identifier: Apache-2.0
"""The build spec of builds written by hand; real ones are in tests/cli/test_unix_tracer.py."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from builders import Text
from compiling import BuildTeller, write_database
from hypothesis import given, settings
from hypothesis import strategies as st
from libetrace.image.file import Image

from etrace.export.build_spec import BuildSpec, KnownPrograms, write
from etrace.nfsdb.products import add_responses
from etrace.nfsdb.store import open_database

TEXTS = st.binary(min_size=1, max_size=12).filter(lambda text: b"\0" not in text)


def database(tmp_path: Path, build: BuildTeller) -> Image:
    return write_database(tmp_path, build.trace())


def spec(image: Image, *known: str, **options: bool) -> list[dict[str, Any]]:
    return list(BuildSpec(image, KnownPrograms(known) if known else None).items(**options))


def text(image: Image, **options: bool) -> bytes:
    stream = io.BytesIO()
    write(stream, BuildSpec(image), **options)
    return stream.getvalue()


@pytest.fixture
def image(tmp_path: Path) -> Image:
    build = BuildTeller().run(10, "/usr/bin/gcc", "gcc -c a.c", cwd="/src/x")
    build.run(11, "/usr/lib/cc1", "cc1 a.c", parent=10).run(12, "/usr/bin/as", "as a.s", parent=10)
    build.end(11, 12, 10).run(20, "/opt/bin/gcc-12", "/opt/bin/gcc-12 -c b.c").end(20)
    build.run(9, "/usr/bin/ar", "/usr/bin/ar rc a.a a.o").end(9)  # a lower number, but later
    return database(tmp_path, build)


def test_known_programs_are_items_in_the_order_of_time(image: Image) -> None:
    assert spec(image) == [
        {"directory": "/src/x", "arguments": ["gcc", "-c", "a.c"]},
        {"directory": "/src", "arguments": ["/usr/bin/ar", "rc", "a.a", "a.o"]},
    ]


def test_other_programs_may_be_known_by_name_or_glob(image: Image) -> None:
    assert [each["arguments"][0] for each in spec(image, "as", "gcc-*")] == [
        "as", "/opt/bin/gcc-12",
    ]  # fmt: skip


def test_the_layout_is_that_of_xcalbuild(image: Image) -> None:
    assert text(image) == (
        b'[\n{\n  "directory": "/src/x",\n  "arguments": ["gcc","-c","a.c"]\n}\n,\n'
        b'{\n  "directory": "/src",\n  "arguments": ["/usr/bin/ar","rc","a.a","a.o"]\n}\n]\n'
    )


def test_a_build_without_known_programs_is_an_empty_array(tmp_path: Path) -> None:
    image = database(tmp_path, BuildTeller().run(10, "/bin/sh", "sh x").run(11, "/bin/sh", "sh y"))
    assert text(image) == b"[\n]\n"
    built = BuildSpec(image)
    assert list(built.items()) == []
    assert built.written.others == {"make": 1, "sh": 2}


def test_the_debug_form_has_every_call_with_seven_keys(image: Image) -> None:
    found = spec(image, is_debug=True)
    assert [each["arguments"][0] for each in found] == [
        "make", "gcc", "cc1", "as", "/opt/bin/gcc-12", "/usr/bin/ar",
    ]  # fmt: skip
    assert list(found[2].items()) == [
        ("pid", "11"),
        ("ppid", "10"),
        ("function", "execve"),
        ("directory", "/src"),
        ("arguments", ["cc1", "a.c"]),
        ("respfile", ""),
        ("isKnown", 0),
    ]
    assert (found[0]["ppid"], found[1]["isKnown"]) == ("0", 1)
    assert b'  "isKnown": 1\n}\n,\n' in text(image, is_debug=True)


def test_what_a_thread_starts_is_a_child_of_its_process(tmp_path: Path) -> None:
    build = BuildTeller()
    build.thread(1, 5)
    build.run(6, "/usr/bin/gcc", "gcc -c a.c", parent=5)
    (found,) = [each for each in spec(database(tmp_path, build), is_debug=True) if each["isKnown"]]
    assert (found["pid"], found["ppid"]) == ("6", "1")


@settings(deadline=None, max_examples=30)
@given(words=st.lists(TEXTS, max_size=4), cwd=TEXTS)
def test_every_byte_survives(
    words: list[bytes], cwd: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    argv: list[Text] = [b"gcc", *words]
    build = BuildTeller().run(10, "/usr/bin/gcc", argv, cwd=b"/" + cwd)
    (found,) = json.loads(text(database(tmp_path_factory.mktemp("bytes"), build)))
    shown = [each.encode("utf-8", "surrogateescape") for each in found["arguments"]]
    assert shown == argv
    assert found["directory"].encode("utf-8", "surrogateescape") == b"/" + cwd


# ---- response files ----


def with_files(tmp_path: Path, command: str, files: dict[str, bytes]) -> Image:
    image = database(tmp_path, BuildTeller().run(10, "/usr/bin/gcc", command))
    upid = image["executions"]["upid"][-1]
    add_responses(image.path, [(upid, name.encode(), content) for name, content in files.items()])
    return open_database(tmp_path)


def test_the_content_of_a_response_file_is_beside_the_arguments(tmp_path: Path) -> None:
    image = with_files(tmp_path, "gcc @a.rsp", {"/src/a.rsp": b"-O2 -c \xff'b c.c' \n"})
    assert spec(image) == [
        {
            "directory": "/src",
            "arguments": ["gcc", "@a.rsp"],
            "respfile": "-O2 -c \udcff'b c.c' \n",
        }
    ]
    assert b'  "respfile": "-O2 -c \\udcff\'b c.c\' \\n"\n}\n' in text(image)


def test_all_response_files_are_in_it_nested_ones_in_their_place(tmp_path: Path) -> None:
    files = {
        "/src/one": b"-DA '@in ner'\n",
        "/src/in ner": b'-DB="x y" @gone -DC',
        "/abs/two": b"z.c",
    }
    image = with_files(tmp_path, "gcc @one -c @/abs/two @gone @", files)
    (found,) = spec(image)
    assert found["respfile"] == '-DA -DB="x y" @gone -DC\n\nz.c'
    (found,) = spec(image, expands=True)
    assert found == {
        "directory": "/src",
        "arguments": [
            "gcc", "-DA", "-DB=x y", "@gone", "-DC", "-c", "z.c", "@gone", "@",
        ],
    }  # fmt: skip


def test_files_that_name_each_other_end(tmp_path: Path) -> None:
    files = {"/src/a": b"@b @b " * 20, "/src/b": b"@a @a " * 20}
    (found,) = spec(with_files(tmp_path, "gcc @a", files))
    assert len(found["respfile"]) < 1 << 20


def test_files_that_still_exist_are_read_for_known_programs_only(tmp_path: Path) -> None:
    (tmp_path / "words").write_bytes(b"-c a.c")
    build = BuildTeller().run(10, "/usr/bin/gcc", f"gcc @{tmp_path}/words")
    build.run(11, "/usr/bin/curl", f"curl -d @{tmp_path}/words")
    found = {each["arguments"][0]: each for each in spec(database(tmp_path, build), is_debug=True)}
    assert found["gcc"]["respfile"] == "-c a.c"
    assert found["curl"]["respfile"] == ""


@pytest.mark.root
def test_no_file_is_read_for_the_database_of_another_user(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"words")
    build = BuildTeller().run(10, "/usr/bin/gcc", f"gcc @{tmp_path}/secret")
    image = database(tmp_path, build)
    assert "respfile" in spec(image)[0]
    os.chown(image.path, 12345, -1)
    assert "respfile" not in spec(image)[0]
