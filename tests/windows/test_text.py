# SPDX-License-Identifier: Apache-2.0
"""native/windows/text on Linux, with sanitizers, against Python's own UTF-16, JSON and others."""

from __future__ import annotations

import json
import ntpath
import struct
import subprocess
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum

import event_lines as oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from windows.wine import PROGRAMS, TOP

from etrace.compilers import response_forms
from etrace.export.build_spec import KNOWN, KNOWN_WINDOWS

Ask = Callable[["Answer", bytes], bytes]


class Answer(IntEnum):
    """What tests/windows/programs/text.c answers."""

    COMMAND_LINE = 0
    OFFSET = 1
    WINDOWS = 2
    GNU = 3
    FROM_UTF16 = 4
    TO_UTF16 = 5
    FROM_FILE = 6
    JSON = 7
    SPEC = 8
    SPEC_DEBUG = 9
    CONFIG = 10
    RESPONSE = 11
    EXPAND = 12
    LINES = 13
    JOIN = 14
    NAMES = 15


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Give a function that asks the program."""
    program = tmp_path_factory.mktemp("text") / "text"
    sources = [PROGRAMS / "text.c", *sorted((TOP / "native/windows/text").glob("*.c"))]
    sources.append(TOP / "native/format/etrace_format.c")
    folders = [TOP / "native/windows/text", TOP / "native/format", TOP / "kmod/include"]
    flags = ["-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"]
    command = ["gcc", *flags, *(f"-I{each}" for each in folders), "-o", program, *sources]
    done = subprocess.run([str(each) for each in command], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        to, back = process.stdin, process.stdout
        assert to is not None
        assert back is not None

        def answer(which: Answer, data: bytes) -> bytes:
            to.write(struct.pack("=II", which, len(data)) + data)
            to.flush()
            (length,) = struct.unpack("=I", back.read(4))
            return back.read(length)

        yield answer
        to.close()
    assert process.returncode == 0


def words(answer: bytes) -> list[str]:
    """Return the words of an answer."""
    return [each.decode() for each in answer.split(b"\0")[:-1]]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # "Parsing C command-line arguments", learn.microsoft.com
        ('a "a b c" d e', ["a", "a b c", "d", "e"]),
        (r'a "ab\"c" "\\" d', ["a", 'ab"c', "\\", "d"]),
        (r'a a\\\b d"e f"g h', ["a", r"a\\\b", "de fg", "h"]),
        (r"a a\\\"b c d", ["a", r"a\"b", "c", "d"]),
        (r'a a\\\\"b c" d e', ["a", r"a\\b c", "d", "e"]),
        ('a a"b"" c d', ["a", 'ab" c d']),
        ('"C:\\Program Files\\x" ""', [r"C:\Program Files\x", ""]),
        ('C:\\"a b"\\c x', [r"C:\a b\c", "x"]),
        (" a", ["", "a"]),
        ("", []),
        ("a\t\tb ", ["a", "b"]),
    ],
)
def test_command_lines_are_cut_as_microsoft_documents_it(
    ask: Ask, line: str, expected: list[str]
) -> None:
    assert words(ask(Answer.COMMAND_LINE, line.encode())) == expected


@given(st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8"))))
def test_what_python_quotes_for_windows_is_read_back(ask: Ask, arguments: list[str]) -> None:
    line = subprocess.list2cmdline(["program", *arguments])
    assert words(ask(Answer.COMMAND_LINE, line.encode())) == ["program", *arguments]


def test_the_rest_of_a_command_line_stays_as_it_was_typed(ask: Ask) -> None:
    line = b'"t r" "-d"   cl "/Fo a\\\\" x'
    assert line[int(ask(Answer.OFFSET, line)) :] == b'cl "/Fo a\\\\" x'
    assert int(ask(Answer.OFFSET, b"t -d")) == 4


@given(st.binary())
def test_response_files_of_gnu_tools_are_cut_as_cas_cuts_them(ask: Ask, text: bytes) -> None:
    text = text.replace(b"\0", b"")
    expected = [word.replace(b"\0", b"") for word in response_forms.forms()["gnu"].split(text)]
    assert ask(Answer.GNU, text).split(b"\0")[:-1] == expected


@given(st.text('ab\\\\"" \n\t').map(str.encode))
def test_response_files_of_windows_tools_are_cut_as_cas_cuts_them(ask: Ask, text: bytes) -> None:
    assert ask(Answer.WINDOWS, text).split(b"\0")[:-1] == response_forms.forms()[
        "llvm-windows"
    ].split(text)


@pytest.mark.parametrize("name", [*KNOWN, *KNOWN_WINDOWS, "arm-none-eabi-gcc-12.2", "clang-17"])
def test_cas_quotes_for_a_program_as_the_tracer_does(ask: Ask, name: str) -> None:
    shown = ask(Answer.NAMES, name.encode()).split(b"\0")[0].decode()
    assert (shown[2] == "w") == response_forms.quotes_as_windows(name.encode())


def test_lines_of_a_response_file_are_blanks(ask: Ask) -> None:
    assert words(ask(Answer.WINDOWS, b'/c\r\n"a b.c"\n-DX=\\"y\\" src\\z.c')) == [
        "/c", "a b.c", '-DX="y"', "src\\z.c",
    ]  # fmt: skip


@given(st.lists(st.integers(0, 0xFFFF)))
def test_utf16_of_any_kind_survives(ask: Ask, units: list[int]) -> None:
    raw = struct.pack(f"<{len(units)}H", *units)
    there = ask(Answer.FROM_UTF16, raw)
    assert there == raw.decode("utf-16-le", "surrogatepass").encode("utf-8", "surrogatepass")
    assert ask(Answer.TO_UTF16, there) == raw


@given(st.binary())
def test_bytes_that_are_no_text_become_replacement_characters(ask: Ask, data: bytes) -> None:
    units = ask(Answer.TO_UTF16, data).decode("utf-16-le", "surrogatepass")
    if "\ufffd" not in units:
        assert units.encode("utf-8", "surrogatepass").decode("utf-8", "surrogatepass") == units
    assert len(units) <= len(data)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a b", "a b"),
        (b"\xef\xbb\xbfa", "a"),
        ("\ufeffß 日".encode("utf-16-le"), "ß 日"),
        ("\ufeffß 日".encode("utf-16-be"), "ß 日"),
        (b"\xff\xfe", ""),
    ],
)
def test_byte_order_marks_decide_the_encoding(ask: Ask, content: bytes, expected: str) -> None:
    assert ask(Answer.FROM_FILE, content).decode() == expected


@given(st.text(st.characters()))
def test_json_is_pythons(ask: Ask, text: str) -> None:
    raw = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    shown = ask(Answer.JSON, raw.encode("utf-8", "surrogatepass")).decode()
    assert json.loads(shown) == raw
    if raw.isprintable():
        assert shown == json.dumps(raw, ensure_ascii=False)


@given(st.binary())
def test_json_of_any_bytes_is_valid(ask: Ask, data: bytes) -> None:
    shown = ask(Answer.JSON, data).decode()
    text = json.loads(shown)
    try:
        data.decode()
    except UnicodeDecodeError:
        return
    assert text == data.decode()


def test_a_build_spec_has_the_layout_of_unix_tracer(ask: Ask) -> None:
    item = (
        '{\n  "directory": "C:\\\\w",\n  "arguments": ["cl","a b"],\n'
        '  "respfile": "cl\\u0000a b\\u0000"\n}\n'
    )
    assert ask(Answer.SPEC, b"cl\0a b\0").decode() == f"[\n{item},\n{item}]\n"
    debug = json.loads(ask(Answer.SPEC_DEBUG, b"cl\0a b\0"))
    assert list(debug[0]) == [
        "pid", "ppid", "function", "directory", "arguments", "respfile", "isKnown",
    ]  # fmt: skip
    assert debug[0]["pid"] == "12"
    assert debug[0]["isKnown"] == 1


def test_the_configuration_of_xcalbuild_is_read(ask: Ask) -> None:
    config = [
        {"binary": "armclang", "responseFileArgs": [{"argument": "@", "argFormat": ["attached"]}]},
        {"binary": "armlink", "more": [1, {"x": None}],
         "responseFileArgs": [{"argument": "--Via", "argFormat": ["equal", "space"]}]},
    ]  # fmt: skip
    expected = b"armclang\0armlink\0armclang @ 1\narmlink --Via 6\n"
    assert ask(Answer.CONFIG, json.dumps(config, indent=1).encode()) == expected
    assert ask(Answer.CONFIG, b"[]") == b""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", b"expected a list@0"),
        (b"{}", b"expected a list@0"),
        (b'[{"binary": 1}]', b"expected a string@12"),
        (b"[{}]", b'the tool has no "binary"@3'),
        (b'[{"binary": "x"}', b"expected a comma or the end of the list@16"),
        (b"[] x", b"expected the end of the file@3"),
        (b'[{"binary": "x", "responseFileArgs": [{"argFormat": ["y"]}]}]',
         b"argFormat is not attached, space or equal@56"),
        (b"[" * 100, b"expected an object@1"),
    ],
)  # fmt: skip
def test_a_wrong_configuration_names_the_byte(ask: Ask, text: bytes, problem: bytes) -> None:
    assert ask(Answer.CONFIG, text) == problem


def request(directory: str, arguments: Sequence[str], files: dict[str, str]) -> bytes:
    """Return a request for RESPONSE and EXPAND."""
    flat = [part for pair in files.items() for part in pair]
    parts = [directory, "x" * len(arguments), *arguments, *flat]
    return "".join(f"{part}\0" for part in parts).encode()


FILES = {r"C:\w\a.rsp": r'-DA "x y" @b.rsp -c', r"C:\w\b.rsp": "-DB\nsrc\\b.c", r"D:\v": "-DV"}


@pytest.mark.parametrize(
    ("arguments", "text", "expanded"),
    [
        (["cl", "@a.rsp", "z"], '-DA "x y" -DB\nsrc\\b.c -c',
         ["cl", "-DA", "x y", "-DB", "src\\b.c", "-c", "z"]),
        (["gcc", "@a.rsp"], '-DA "x y" -DB\nsrc\\b.c -c',
         ["gcc", "-DA", "x y", "-DB", "srcb.c", "-c"]),
        (["C:\\t\\ARMCC.EXE", "--Via", "D:\\v", "--via=b.rsp"], "-DV\n-DB\nsrc\\b.c",
         ["C:\\t\\ARMCC.EXE", "-DV", "-DB", "src\\b.c"]),
        (["iccarm", "-f", "b.rsp", "x.c"], "-DB\nsrc\\b.c", ["iccarm", "-DB", "src\\b.c", "x.c"]),
        (["cl", "-f", "b.rsp"], "", ["cl", "-f", "b.rsp"]),
        (["cl", "@gone", "@b.rsp"], "-DB\nsrc\\b.c", ["cl", "@gone", "-DB", "src\\b.c"]),
        (["armcc", "--via"], "", ["armcc", "--via"]),
    ],
)  # fmt: skip
def test_response_files_are_put_in_the_place_of_their_names(
    ask: Ask, arguments: list[str], text: str, expanded: list[str]
) -> None:
    data = request(r"C:\w", arguments, FILES)
    assert ask(Answer.RESPONSE, data).decode() == text
    assert words(ask(Answer.EXPAND, data)) == expanded


def test_response_files_that_name_themselves_come_to_an_end(ask: Ask) -> None:
    data = request(r"C:\w", ["cl", "@a"], {r"C:\w\a": "@a @a -c"})
    assert len(ask(Answer.RESPONSE, data)) < 100_000


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=2000))
def test_event_lines_are_those_of_the_format(ask: Ask, text: str) -> None:
    data = text.encode() + b"\0"
    lines = ask(Answer.LINES, data)
    assert lines.startswith(b"INITCWD=C:\\w\n4194312,0,0,5!SchedFork|pid=8388620\n")
    head = oracle.prefix(8388620, 0, 1_000_000_007)
    assert head + b"New_proc|argsize=%d," % len(data) in lines
    assert b"!End_of_args|\n" in lines


@pytest.mark.parametrize(
    "name", ["x.c", r"\x", "D:x", "C:y", r"C:\y", r"\\s\h\x", "C:/y", "/x", "a/b"]
)
@pytest.mark.parametrize("directory", ["C:\\", r"C:\w", r"\\server\share\d"])
def test_names_are_joined_as_python_joins_them(ask: Ask, directory: str, name: str) -> None:
    joined = ask(Answer.JOIN, f"{directory}\0{name}\0".encode()).decode()
    expected = ntpath.join(directory, name)
    if name[:2] in ("C:", "D:") and "\\" not in expected.replace("/", "\\"):
        expected = f"{name[:2]}\\{name[2:]}"  # the directory of another drive is not known
    assert ntpath.normcase(joined) == ntpath.normcase(expected)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("cl", "10wcl"), (r"C:\VC\CL.EXE", "10wCL"),
        ("C:/x/arm-none-eabi-gcc.exe", "10garm-none-eabi-gcc"),
        ("cmd", "00wcmd"), ("x86_64-w64-mingw32-gcc-12.exe", "00gx86_64-w64-mingw32-gcc-12"),
        ("clang-cl", "10wclang-cl"), ("llvm-ar", "00wllvm-ar"),
    ],
)  # fmt: skip
def test_programs_are_known_by_name_without_case(ask: Ask, name: str, answer: str) -> None:
    shown = ask(Answer.NAMES, name.encode()).split(b"\0")[0].decode()
    assert (shown[0], shown[2:]) == (answer[0], answer[2:])
