# SPDX-License-Identifier: Apache-2.0
"""Each form of response files against the tool that it is of, where one is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etrace.compilers.response import ResponseFiles
from etrace.compilers.response_forms import forms, naming_of

#: words that only some forms take apart, none of them an option
TEXTS = [
    b"a b\tc\nd\r\ne",
    b"'a b' \"c d\" e\\ f g\\\\h",
    b'"a \\" b" c\\"d "" "e ""f"',
    b"a'b c'd \"e'f\"",
    b"dir\\file.o \\\\host\\x 'q\\'",
    b"# c1 c2\na #b c#d\n",
    b"\xc3\xa9.o end",
]
PLAIN = {"LC_ALL": "C", "JAVA_TOOL_OPTIONS": "", "JDK_JAVAC_OPTIONS": ""}


def need(program: str, package: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.fail(f"{program} is missing: install {package}")
    return found


def complaints(command: Sequence[str], cwd: Path, before: bytes, after: bytes) -> list[bytes]:
    """Return what a tool complains of: its arguments, for none of them is a file."""
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, check=False, env=os.environ | PLAIN
    )
    lines = [line.partition(before)[2] for line in done.stderr.split(b"\n") if before in line]
    return [line.rpartition(after)[0] for line in lines]


def clang(cwd: Path, *options: str) -> list[bytes]:
    command = [need("clang", "clang"), *options, "@words"]
    return complaints(command, cwd, b"no such file or directory: '", b"'")


def lld_link(cwd: Path, *options: str) -> list[bytes]:
    command = [need("lld-link", "lld"), *options, "@words"]
    return complaints(command, cwd, b"could not open '", b"': No such")


FROM_JAVA = """
import java.util.Arrays;
public class Words {
    public static void main(String[] words) throws Exception {
        if (words.length == 1 && words[0].startsWith("@@"))
            words = com.sun.tools.javac.main.CommandLine.parse(Arrays.asList(words[0].substring(1)))
                .toArray(new String[0]);
        for (String word : words) { System.out.write((word + "\\0").getBytes("ISO-8859-1")); }
        System.out.flush();
    }
}
"""
EXPORT = "--add-exports=jdk.compiler/com.sun.tools.javac.main=ALL-UNNAMED"


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A class that prints what javac, or the JVM's launcher, makes of an argument file."""
    folder = tmp_path_factory.mktemp("java")
    (folder / "Words.java").write_text(FROM_JAVA)
    command = [need("javac", "default-jdk-headless"), EXPORT, "Words.java"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder


def run_java(folder: Path, *words: str) -> list[bytes]:
    latin = ["-Dfile.encoding=ISO-8859-1", "-Dsun.jnu.encoding=ISO-8859-1"]
    done = subprocess.run(
        ["java", EXPORT, *latin, *words], cwd=folder, capture_output=True, check=True
    )
    return done.stdout.split(b"\0")[:-1]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("options", [(), ("--rsp-quoting=windows",)])
def test_clang(tmp_path: Path, text: bytes, options: tuple[str, ...]) -> None:
    (tmp_path / "words").write_bytes(text)
    argv = [b"clang", *map(os.fsencode, options), b"@words"]
    found = ResponseFiles().expand(argv, tmp_path).argv[1 + len(options) :]
    # clang says nothing of an empty word
    assert clang(tmp_path, *options) == [word for word in found if word]


@pytest.mark.parametrize("text", TEXTS)
def test_lld_link(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "words").write_bytes(text)
    found = ResponseFiles().expand([b"lld-link", b"@words"], tmp_path).argv[1:]
    shown = [word if b"." in word else word + b".obj" for word in found if word]
    assert lld_link(tmp_path) in (shown, [word for word in found if word])


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_llvm_reads_unicode_with_a_mark(tmp_path: Path, encoding: str) -> None:
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    for name, text in (("words", "é.o @inner \U0001f600.o"), ("inner", "日本.o")):
        (tmp_path / name).write_bytes(mark + text.encode(encoding))
    wanted = ["é.o".encode(), "日本.o".encode(), "\U0001f600.o".encode()]
    assert clang(tmp_path) == wanted
    assert list(ResponseFiles().expand([b"clang", b"@words"], tmp_path).argv[1:]) == wanted
    assert ResponseFiles().text([b"ld.lld", b"@words"], os.fsencode(tmp_path)) == b" ".join(wanted)


def test_what_is_no_utf16_stays_bytes() -> None:
    assert forms()["llvm"].decode(b"\xff\xfea") == b"\xff\xfea"
    assert forms()["gnu"].decode(b"\xef\xbb\xbfa") == b"\xef\xbb\xbfa"


JAVA_TEXTS = [
    *TEXTS[:-1],
    b'"open\nnext',
    b"\"a\\tb\\nc\\\\d\\qe\" f\\tg 'h\\\n   i' @nested @@twice #r\ns",
    b'\'unclosed "x\nnext "back\\\\slash\\"',
]


@pytest.mark.parametrize("text", JAVA_TEXTS)
def test_javac_and_its_launcher(java: Path, text: bytes) -> None:
    (java / "words").write_bytes(text)
    (java / "whole").write_bytes(b"-cp . Words " + text)
    found = list(ResponseFiles().expand([b"javac", b"@words"], java).argv[1:])
    assert found == run_java(java, "-cp", ".", "Words", "@@words")
    assert found == run_java(java, "@whole")


def test_rustc_has_an_argument_a_line(tmp_path: Path) -> None:
    (tmp_path / "words").write_bytes(
        b"--crate-type=lib\r\n--crate-name\nother\n-o\nx y.rlib\na b.rs"
    )
    (tmp_path / "a b.rs").write_bytes(b"pub fn f() {}")
    done = subprocess.run(
        [need("rustc", "rustc"), "@words"], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "x y.rlib").exists()
    found = ResponseFiles().expand([b"rustc", b"@words"], tmp_path).argv[1:]
    assert found == (b"--crate-type=lib", b"--crate-name", b"other", b"-o", b"x y.rlib", b"a b.rs")


@pytest.mark.parametrize(
    ("program", "text", "expected"),
    [
        ("rustc", b"a\n\n @b\n'c d'\n", [b"a", b"", b" @b", b"'c d'"]),
        ("nvcc", b"-DX='a b' \"c d\" e\\ f", [b"-DX='a", b"b'", b"c d", b"e f"]),
        ("armcc", b"; x\n-c 'a b' ;x\n # y\nz", [b"-c", b"a b", b";x", b"z"]),
        ("icc", b"# x\n-c #y\n", [b"-c", b"#y"]),
        ("swiftc", b"// x y\na//b // c", [b"a//b", b"//", b"c"]),
        ("iccarm", b'-a // b\n/* c\nd */ "e ""f" g\\h', [b"-a", b'e "f', b"g\\h"]),
        ("cl", b'\xff\xfe"\0a\0 \0b\0"\0 \0@\0c\0', [b"a b", b"@c"]),
        ("llvm-ar", b"'a b' c", [b"a b", b"c"]),
        ("llvm-lib", b"'a b' c", [b"'a", b"b'", b"c"]),
    ],
)
def test_what_is_documented(program: str, text: bytes, expected: list[bytes]) -> None:
    files = ResponseFiles(lambda _upid, _path: text, reads_disk=False)
    assert list(files.expand([program.encode(), b"@words"], b"/").argv[1:]) == expected


@pytest.mark.parametrize(
    ("argv", "form"),
    [
        ("gcc", "gnu"), ("clang-17", "llvm"), ("aarch64-linux-gnu-ld.lld", "llvm"),
        ("llvm-ar --rsp-quoting=windows", "llvm-windows"), ("clang-cl", "llvm-windows"),
        ("clang-cl --rsp-quoting=posix", "llvm"), ("ccache clang", "llvm"),
        ("sccache A=b rustc", "rust"), ("distcc env -u X A=b clang", "llvm"),
        ("/lib64/ld-linux-x86-64.so.2 --library-path gcc /usr/bin/javac", "java"), ("cat", "gnu"),
    ],
)  # fmt: skip
def test_a_form_is_that_of_the_tool_that_runs(argv: str, form: str) -> None:
    assert naming_of(argv.encode().split(), None, is_windows=False).form.name == form


@given(st.binary(), st.sampled_from(sorted(forms())))
def test_places_of_words_hold_them(text: bytes, name: str) -> None:
    form, end = forms()[name], 0
    for word in form.words(text):
        assert end <= word.start <= word.end <= len(text)
        end = word.end


def of_quotes(n: int) -> bytes:
    return b"'\\\"" * n


def of_comments(n: int) -> bytes:
    return b"#;//" * n


@pytest.mark.parametrize("make", [of_quotes, of_comments])
def test_a_text_takes_time_by_its_length(make: Callable[[int], bytes]) -> None:
    """Without possessive patterns a minute."""
    for form in forms().values():
        assert sum(len(word.text) for word in form.words(make(100_000))) <= 400_000
