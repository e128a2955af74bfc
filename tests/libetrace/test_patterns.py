# SPDX-License-Identifier: Apache-2.0
"""The pattern engine against fnmatch(3), and its bits against those that bas.md 1.7 describes."""

from __future__ import annotations

import doctest
import os
import signal
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path

import libetrace
import pytest
import trying
from c_fnmatch import c_fnmatch, c_locale
from hypothesis import example, given, settings
from hypothesis import strategies as st
from libetrace.select.patterns import PatternSet

#: what a pattern is made of: whole words of brackets, so that many are well-formed, and pieces
PIECES = (
    b"*", b"?", b"[", b"]", b"!", b"^", b"-", b"\\", b":", b".", b"=", b"a", b"b", b"c", b"z", b"/",
    b" ", b"\x80", b"\xff", b"\n", b"[:alpha:]", b"[:digit:]", b"[:z:]", b"[:foo:]", b"[=a=]",
    b"[=", b"[.a.]", b"[.-.]", b"[.", b".]", b"[a-c]", b"[!a]", b"[^b]", b"[]a]", b"[[:punct:]]",
    b"[[=a=]b]", b"[[.a.]-z]", b"abc", b"bca", b"a*b", b".c", b"**", b"?*",
)  # fmt: skip
LETTERS = b"abczA1 /.-:=[]!^\\*?\x80\xff\n"


def words(pieces: Sequence[bytes], n: int) -> st.SearchStrategy[bytes]:
    return st.lists(st.sampled_from(pieces), max_size=n).map(b"".join)


PATTERN = words(PIECES, 8)
TEXT = words([bytes([letter]) for letter in LETTERS] + [b"abc", b"bca", b"aab", b".c"], 10)


def bits_by_fnmatch(patterns: Sequence[bytes], text: bytes) -> bytes:
    bits = bytearray((len(patterns) + 7) // 8)
    with c_locale():
        for i, pattern in enumerate(patterns):
            if c_fnmatch(pattern, text):
                bits[i // 8] |= 0x80 >> i % 8
    return bytes(bits)


def columns(
    argvs: Sequence[Sequence[bytes]],
) -> tuple[array[int], bytes, array[int], array[int]]:
    """Return string offsets and bytes, argv offsets and arguments, as the image has them."""
    strings = sorted({argument for argv in argvs for argument in argv})
    start, argv_start, arguments = array("Q", [0]), array("Q", [0]), array("I")
    for string in strings:
        start.append(start[-1] + len(string))
    for argv in argvs:
        arguments.extend(strings.index(argument) for argument in argv)
        argv_start.append(len(arguments))
    return start, b"".join(strings), argv_start, arguments


def match_argvs(patterns: Sequence[bytes], argvs: Sequence[Sequence[bytes]]) -> list[bytes]:
    compiled = PatternSet(patterns)
    bits = bytes(compiled.match_rows(*columns(argvs)))
    n = compiled.row_bytes
    return [bits[i : i + n] for i in range(0, len(bits), n)]


@settings(max_examples=400, deadline=None)
@given(st.lists(PATTERN, min_size=1, max_size=16), st.lists(TEXT, min_size=1, max_size=8))
@example([b"[a[:x]]", b"[[.a.]-]", b"[a-", b"[[:" + b"a" * 256 + b":]]"], [b"a", b"a]", b"[a-"])
@example([b"\\", b"a\\", b"*\\", b"", b"*", b"[", b"[]", b"[]]"], [b"", b"\\", b"a\\", b"[", b"]"])
def test_a_pattern_means_what_fnmatch_says(patterns: list[bytes], texts: list[bytes]) -> None:
    compiled = PatternSet(patterns)
    for text in texts:
        assert compiled.match(text) == bits_by_fnmatch(patterns, text)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(PATTERN, min_size=1, max_size=40),
    st.lists(st.lists(TEXT, max_size=4), min_size=1, max_size=8),
)
def test_rows_match_as_their_joined_argv_does(
    patterns: list[bytes], argvs: list[list[bytes]]
) -> None:
    assert match_argvs(patterns, argvs) == [
        bits_by_fnmatch(patterns, b" ".join(argv)) for argv in argvs
    ]


SEGMENT = words([b"ab", b"ba", b"abab", b"aaa", b"?b", b"[ab]a", b"b", b"a b", b".c"], 3)
STARRED = st.lists(SEGMENT, min_size=1, max_size=5).map(b"*".join)
REPEATS = words([b"a", b"b", b"ab", b"abab", b" ", b".c"], 24)


@settings(max_examples=400, deadline=None)
@given(st.lists(STARRED, min_size=1, max_size=40), st.lists(REPEATS, min_size=1, max_size=6))
def test_segments_that_overlap_are_found_in_order(
    patterns: list[bytes], texts: list[bytes]
) -> None:
    """Few letters: grams collide, segments share needles, the last one overlaps the others."""
    assert match_argvs(patterns, [[text] for text in texts]) == [
        bits_by_fnmatch(patterns, text) for text in texts
    ]


def test_pattern_i_is_a_bit_from_the_left_of_byte_i_over_8() -> None:
    patterns = [b"no"] * 10
    patterns[1] = patterns[9] = b"gcc -c *"
    compiled = PatternSet(patterns)
    assert compiled.row_bytes == 2
    assert compiled.match(b"gcc -c a.c") == b"\x40\x40"
    patterns[0] = b"*build.sh*"
    assert PatternSet(patterns).match(b"/bin/bash /src/build.sh all") == b"\x80\x00"


def test_a_star_crosses_slashes_spaces_and_leading_periods() -> None:
    """The seed's example of an exclusion: `<path_to>/build.sh*`."""
    patterns = [b"/path/to/build.sh*", b"*build.sh*", b"/bin/sh *", b"build.sh*"]
    assert PatternSet(patterns).match(b"/path/to/build.sh .x /y") == b"\xc0"
    assert PatternSet(patterns).match(b"/bin/sh /path/to/build.sh") == b"\x60"


def test_equal_rows_and_empty_ones_have_their_own_bits() -> None:
    argvs = [[b"a", b"b"], [], [b"a", b"b"], [b"a b"], [b"ab"], []]
    assert match_argvs([b"a b", b"", b"*"], argvs) == [
        b"\xa0", b"\x60", b"\xa0", b"\xa0", b"\x20", b"\x60"
    ]  # fmt: skip


def test_thousands_of_patterns_are_distinguished() -> None:
    patterns = [b"*/dir%04d/*file*.c" % i for i in range(3000)]
    argvs = [[b"cc", b"-c", b"/src/dir%04d/a/file%d.c" % (i, i)] for i in range(0, 3000, 7)]
    for i, bits in zip(range(0, 3000, 7), match_argvs(patterns, argvs), strict=True):
        expected = bytearray(375)
        expected[i // 8] = 0x80 >> i % 8
        assert bits == expected


def test_executions_are_keyed_by_pid_and_place() -> None:
    patterns = ["*gcc*", "*foo*bar*", "*"]
    processes: dict[int, list[dict[str, list[str]]]] = {
        7: [{"v": ["gcc", "-c"]}, {"v": ["foo", "x", "bar"]}],
        9: [{"v": []}, {}],
    }
    assert libetrace.precompute_command_patterns(patterns, processes) == {
        (7, 0): b"\xa0",
        (7, 1): b"\x60",
        (9, 0): b"\x20",
        (9, 1): b"\x20",
    }


def test_odd_bytes_in_text_come_by_surrogateescape() -> None:
    processes = {1: [{"v": ["zażółć\udcff.c"]}]}
    patterns: list[str | bytes] = ["*\udcff.c", b"za\xc5\xbc*", "zaż?ó*"]
    assert libetrace.precompute_command_patterns(patterns, processes) == {(1, 0): b"\xc0"}


def test_without_patterns_there_are_no_bits() -> None:
    assert libetrace.precompute_command_patterns([], {1: [{"v": ["a"]}]}) is None
    assert PatternSet([]).match(b"a") == b""
    assert PatternSet([]).match_rows(*columns([[b"a"]])) == b""


def test_bits_can_be_written_into_a_given_buffer() -> None:
    out = bytearray(b"\xff\xff")
    result = PatternSet([b"a"]).match_rows(*columns([[b"a"], [b"b"]]), out=out)
    assert result is out
    assert out == b"\x80\x00"


def test_a_nul_byte_in_a_pattern_is_refused() -> None:
    with pytest.raises(ValueError, match="pattern 1 holds a NUL byte"):
        PatternSet([b"a", b"b\0c"])


@pytest.mark.parametrize(
    ("pattern", "wrong"),
    [
        (b"[" * 30_000, "has 30,000 bytes"),
        (b"a" * 4097, "has 4,097 bytes"),
        (b"[" * 17, "more than 16 `\\[` that nothing closes"),
        (b"[[" * 9 + b"\\]", "more than 16 `\\[` that nothing closes"),
        (
            b"[xb-[:alpha:]]" + b"b" * 243,
            "257 bytes and an ill-formed bracket; such a pattern may have 256",
        ),
    ],
)
def test_a_pattern_that_takes_long_is_refused(pattern: bytes, wrong: str) -> None:
    with pytest.raises(libetrace.error, match=wrong):
        PatternSet([b"*", pattern])


def test_patterns_within_the_limits_mean_what_fnmatch_says() -> None:
    patterns = [b"[" * 16, b"[xb-[:alpha:]]" + b"b" * 242, b"a" * 4095 + b"*"]
    texts = [b"[" * 16, b"[" * 15, b"x" + b"b" * 242, b"a]" + b"b" * 242, b"a" * 4096, b"a"]
    compiled = PatternSet(patterns)
    for text in texts:
        assert compiled.match(text) == bits_by_fnmatch(patterns, text)


def test_a_signal_ends_a_long_match() -> None:
    """Each place of the text is compared with fifty brackets: some twenty seconds in all."""
    text = b"c" * 20_000_000
    known = PatternSet([b"*" + b"[!b]" * 50 + b"[xb-[:alpha:]]z*"])
    main = threading.main_thread().ident
    assert main is not None
    clock = time.pthread_getcpuclockid(main)
    columns_of_text = columns([[text]])
    began = time.clock_gettime(clock)

    def interrupt() -> None:
        trying.until(lambda: time.clock_gettime(clock) > began + 0.2)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012  it may come late
        known.match_rows(*columns_of_text)
        thread.join()
    assert time.clock_gettime(clock) < began + 5
    assert known.match(b"c" * 60) == b"\0"  # the next match begins again


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (0, [0, 2, 1, 3]),
        (0, [0, 1, 2, 4]),
        (0, [0, 1]),
        (2, [0, 3, 2]),
        (2, [0, 4]),
        (3, [0, 1, 3]),
    ],
    ids=["strings descend", "strings outside", "too few", "argv descends", "argv outside", "row"],
)
def test_a_damaged_column_is_an_error_and_no_crash(column: int, values: list[int]) -> None:
    good: list[array[int] | bytes] = [
        array("Q", [0, 1, 2, 3]), b"abc", array("Q", [0, 3]), array("I", [0, 1, 2])
    ]  # fmt: skip
    good[column] = array("I" if column == 3 else "Q", values)
    with pytest.raises(ValueError, match="offsets that do not ascend"):
        PatternSet([b"*"]).match_rows(*good)


def test_offsets_without_any_element_are_an_error() -> None:
    with pytest.raises(ValueError, match="one element more"):
        PatternSet([b"*"]).match_rows(array("Q"), b"", array("Q", [0]), array("I"))
    with pytest.raises(ValueError, match="out has 3 bytes; the rows need 1"):
        PatternSet([b"*"]).match_rows(*columns([[b"a"]]), out=bytearray(3))


def loaded_by(statement: str) -> Iterator[str]:
    program = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.PIPE)
    yield from done.stdout.decode().split()


def test_importing_libetrace_does_not_load_the_engine() -> None:
    assert "libetrace.select.patterns" not in loaded_by("import libetrace")
    assert "libetrace.select.patterns" in loaded_by(
        "from libetrace import precompute_command_patterns"
    )
    with pytest.raises(AttributeError, match="nothing_like_it"):
        libetrace.nothing_like_it  # type: ignore[attr-defined]  # noqa: B018


def test_the_examples_of_the_page_are_true() -> None:
    page = Path(__file__).parents[2] / "docs" / "postprocess.md"
    failed, attempted = doctest.testfile(str(page), module_relative=False)
    assert (failed, attempted) == (0, 5)


# ---- lines of `clang -###` ----


def test_words_are_quoted_with_backslashes() -> None:
    line = r' "/usr/bin/clang" "-cc1" "-D" "S=\"a b\"" "-o" "x\\y" ""'
    assert libetrace.parse_compiler_triple_hash(line) == [
        "/usr/bin/clang", "-cc1", "-D", 'S="a b"', "-o", "x\\y", "",
    ]  # fmt: skip


def test_a_line_without_quotes_has_no_words() -> None:
    assert libetrace.parse_compiler_triple_hash("Target: x86_64-pc-linux-gnu") == []
