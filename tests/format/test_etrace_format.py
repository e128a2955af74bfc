# SPDX-License-Identifier: Apache-2.0
"""native/format against an independent formatter written from seed 004 (tests/event_lines.py).

The C code is built with AddressSanitizer and UndefinedBehaviorSanitizer into a program that answers
many requests in one run.
"""

from __future__ import annotations

import itertools
import os
import struct
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path

import event_lines as oracle
import pytest

from etrace.spec import model

TOP = Path(__file__).parents[2]
SPEC = model.load()
EVENTS = [event.tag for event in SPEC.events]
STRINGS = [data.tag for data in SPEC.data]
PLAIN_STRINGS = [data.tag for data in SPEC.data if data.numbering is model.Numbering.STRING]
UPID, CPU, TIME_NS = 8388995, 3, 72_748_643_007
HEAD = oracle.prefix(UPID, CPU, TIME_NS)
REQUEST = struct.Struct("<qQQ8I")
ANSWER = struct.Struct("<QQQ")


class Operation(IntEnum):
    PREFIX = 0
    LINE = 1
    EVENT = 2
    STRING = 3
    PART = 4
    ITEM = 5
    ENV = 6
    END_OF_ARGS = 7


@dataclass(frozen=True, slots=True)
class Request:
    operation: Operation
    texts: Sequence[bytes | None] = ()
    values: Sequence[int] = ()
    tag: int = 0
    index: int = 0
    last: bool = False
    size: int = 1 << 18
    head: tuple[int, int, int] = field(default=(UPID, CPU, TIME_NS))

    def packed(self) -> bytes:
        upid, cpu, time_ns = self.head
        first = (self.texts[0] or b"") if self.texts else b""
        out = REQUEST.pack(
            upid, time_ns, self.size, self.operation, cpu, self.tag, self.index, self.last,
            first.count(b"\n"), len(self.values), len(self.texts),
        )  # fmt: skip
        for value in self.values:
            out += (value & (1 << 64) - 1).to_bytes(8, "little")
        for text in self.texts:
            out += struct.pack("<q", -1 if text is None else len(text)) + (text or b"")
        return out


@dataclass(frozen=True, slots=True)
class Answer:
    length: int
    bound: int
    stored: bytes


Formatter = Callable[[Iterable[Request]], list[Answer]]


def _answers(raw: bytes) -> list[Answer]:
    out, at = [], 0
    while at < len(raw):
        length, stored, bound = ANSWER.unpack_from(raw, at)
        at += ANSWER.size
        out.append(Answer(length, bound, raw[at : at + stored]))
        at += stored
    return out


@pytest.fixture(scope="module")
def c_format(tmp_path_factory: pytest.TempPathFactory) -> Formatter:
    program = tmp_path_factory.mktemp("format") / "format_driver"
    sources = [Path(__file__).with_name("format_driver.c"), TOP / "native/format/etrace_format.c"]
    subprocess.run(
        ["gcc", "-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror",
         "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
         f"-I{TOP}/native/format", f"-I{TOP}/kmod/include", "-o", program, *sources],
        check=True,
    )  # fmt: skip

    def run(requests: Iterable[Request]) -> list[Answer]:
        asked = b"".join(request.packed() for request in requests)
        environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
        done = subprocess.run(
            [program], input=asked, capture_output=True, check=False, env=environment
        )
        assert done.returncode == 0, done.stderr.decode()
        return _answers(done.stdout)

    return run


def string_request(tag: str, text: bytes) -> Request:
    match tag:
        case "A":
            return Request(Operation.ITEM, [text], tag=STRINGS.index(tag), index=7)
        case "Env":
            return Request(Operation.ENV, [text])
        case _:
            return Request(Operation.STRING, [text], tag=STRINGS.index(tag))


def expected_string(tag: str, text: bytes) -> bytes:
    match tag:
        case "A":
            return oracle.item_lines(HEAD, "A", 7, text)
        case "Env":
            return oracle.env_lines(HEAD, text)
        case _:
            return oracle.string_lines(HEAD, tag, text)


def check_strings(c_format: Formatter, tag: str, texts: Sequence[bytes]) -> None:
    answers = c_format(string_request(tag, text) for text in texts)
    assert len(answers) == len(texts)
    for text, answer in zip(texts, answers, strict=True):
        assert answer.stored == expected_string(tag, text), (tag, len(text), text[:40])
        assert answer.length == len(answer.stored)
        assert answer.length <= answer.bound, (tag, len(text))


LENGTHS = [*range(911), *range(1790, 1811), 2699, 2700, 2701, 10_000]
PATTERN = bytes(33 + at % 90 for at in range(10_000))


@pytest.mark.parametrize("tag", STRINGS)
def test_every_length_of_every_string_is_printed_as_the_seed_says(
    c_format: Formatter, tag: str
) -> None:
    check_strings(c_format, tag, [PATTERN[:length] for length in LENGTHS])


@pytest.mark.parametrize("tag", ["FN", "A", "Env"])
@pytest.mark.parametrize("length", [1, 2, 3, 898, 899, 900, 901, 902, 1799, 1800, 1801])
def test_a_newline_at_every_position_becomes_one_cont_group(
    c_format: Formatter, tag: str, length: int
) -> None:
    whole = PATTERN[:length]
    texts = [whole[:at] + b"\n" + whole[at + 1 :] for at in range(length)]
    check_strings(c_format, tag, texts)


@pytest.mark.parametrize("tag", ["FN", "A", "Env"])
def test_two_newlines_around_the_part_boundaries_are_kept_apart(
    c_format: Formatter, tag: str
) -> None:
    near = [0, 1, 897, 898, 899, 900, 901, 902, 1798, 1799, 1800, 1801]
    texts = []
    for one, other in itertools.combinations(near, 2):
        text = bytearray(PATTERN[:1803])
        text[one] = text[other] = ord("\n")
        texts.append(bytes(text))
    check_strings(c_format, tag, texts)


@pytest.mark.parametrize("tag", ["FN", "A", "Env"])
def test_runs_of_newlines_cross_part_boundaries(c_format: Formatter, tag: str) -> None:
    texts = [
        PATTERN[:start] + b"\n" * run + PATTERN[start + run : length]
        for run in (2, 3, 7)
        for start in [*range(892, 903), *range(1792, 1803)]
        for length in (start + run, start + run + 1, 1900)
    ]
    check_strings(c_format, tag, texts)


@pytest.mark.parametrize("tag", ["FN", "A", "Env"])
def test_strings_of_newlines_only_stay_within_the_bound(c_format: Formatter, tag: str) -> None:
    check_strings(c_format, tag, [b"\n" * n for n in [*range(20), *range(890, 910), 1799, 1800]])


def test_every_byte_is_printed_as_it_is(c_format: Formatter) -> None:
    singles = [bytes([value]) for value in range(256)]
    everything = bytes(range(256)) * 8
    check_strings(c_format, "FN", [*singles, everything, everything[:899], everything[::-1]])


def test_a_part_says_its_number_and_whether_it_is_the_last(c_format: Formatter) -> None:
    texts = [b"", b"x", b"a\nb", b"\n", PATTERN[:900], b"\n" * 900]
    cases = list(itertools.product(PLAIN_STRINGS, texts, [0, 1, 2**32 - 1], [False, True]))
    answers = c_format(
        Request(Operation.PART, [text], tag=STRINGS.index(tag), index=index, last=last)
        for tag, text, index, last in cases
    )
    for (tag, text, index, last), answer in zip(cases, answers, strict=True):
        name = tag.encode()
        expected = oracle.text_lines(HEAD, b"%s[%d]" % (name, index), text, bar=not last)
        assert answer.stored == expected + (HEAD + name + b"_end\n" if last else b"")
        assert answer.length <= answer.bound


def test_a_string_given_in_parts_equals_the_string_given_whole(c_format: Formatter) -> None:
    text = PATTERN[:895] + b"\n\n" + PATTERN[:1000] + b"\n"
    pieces = oracle.parts(text)
    answers = c_format(
        Request(Operation.PART, [piece], tag=STRINGS.index("FN"), index=number,
                last=number == len(pieces) - 1)
        for number, piece in enumerate(pieces)
    )  # fmt: skip
    whole = c_format([string_request("FN", text)])[0]
    assert b"".join(answer.stored for answer in answers) == whole.stored


PREFIX_EXTREMES = [
    (upid, cpu, time_ns)
    for upid in (0, 1, 4194559, 2**63 - 1, -1, -(2**63))
    for cpu in (0, 9, 2**32 - 1)
    for time_ns in (0, 1, 10**9 - 1, 10**9, 72_748_643_000, 2**63 - 1, 2**64 - 1)
]


def test_the_prefix_holds_the_extremes_of_its_types_unpadded(c_format: Formatter) -> None:
    answers = c_format(Request(Operation.PREFIX, head=head) for head in PREFIX_EXTREMES)
    assert [a.stored for a in answers] == [oracle.prefix(*head) for head in PREFIX_EXTREMES]


def test_numbers_of_every_length_have_all_their_digits(c_format: Formatter) -> None:
    heads = [(10**n + more, 0, 0) for n in range(19) for more in (-1, 0, 1)]
    answers = c_format(Request(Operation.PREFIX, head=head) for head in heads)
    assert [a.stored for a in answers] == [oracle.prefix(*head) for head in heads]


def test_the_bound_holds_for_the_longest_prefix(c_format: Formatter) -> None:
    head = (-(2**63), 2**32 - 1, 2**64 - 1)
    texts = [b"", b"\n", b"\n" * 899, b"\n" * 900, b"\n" * 1800, PATTERN[:1800]]
    index = STRINGS.index("FN")
    for answer in c_format(Request(Operation.STRING, [t], tag=index, head=head) for t in texts):
        assert answer.length == len(answer.stored) <= answer.bound


NUMBERS = {
    "u32": (0, 1, 2**32 - 1),
    "s32": (-(2**31), -1, 0, 2**31 - 1),
    "u64": (0, 18874385, 2**64 - 1),
    "s64": (0, 8388995, 2**63 - 1),
}


def event_request(tag: str, values: dict[str, oracle.Value], operation: Operation) -> Request:
    spec = SPEC.event(tag)
    numbers = [values[arg.name] for arg in spec.args if arg.size_of < 0]
    texts = [values.get(name) for name in spec.data]
    return Request(
        operation,
        texts=[text if isinstance(text, bytes) else None for text in texts],
        values=[number for number in numbers if isinstance(number, int)],
        tag=EVENTS.index(tag),
    )


def event_cases(tag: str) -> list[dict[str, oracle.Value]]:
    """Return values for an event: every extreme of every number, every choice of absent strings."""
    arguments = oracle.arguments(tag)
    choices: list[list[oracle.Value]] = []
    for _, kind, _ in arguments:
        strings: list[oracle.Value] = [None, b"", b"/a b", b"x\ny", PATTERN[:900]]
        choices.append(list(NUMBERS[kind]) if kind in oracle.KINDS else strings)
    names = [name if kind in oracle.KINDS else kind for name, kind, _ in arguments]
    return [dict(zip(names, chosen, strict=True)) for chosen in itertools.product(*choices)]


@pytest.mark.parametrize("tag", list(oracle.SYNTAX))
def test_every_event_is_printed_with_its_strings_present_and_absent(
    c_format: Formatter, tag: str
) -> None:
    cases = event_cases(tag)
    answers = c_format(event_request(tag, values, Operation.EVENT) for values in cases)
    for values, answer in zip(cases, answers, strict=True):
        assert answer.stored == oracle.event_lines(HEAD, tag, values)


@pytest.mark.parametrize("tag", list(oracle.SYNTAX))
def test_the_line_of_an_event_alone_is_the_first_line_of_the_event(
    c_format: Formatter, tag: str
) -> None:
    cases = event_cases(tag)
    answers = c_format(event_request(tag, values, Operation.LINE) for values in cases)
    for values, answer in zip(cases, answers, strict=True):
        first = oracle.event_lines(HEAD, tag, values).splitlines(keepends=True)[0]
        assert answer.stored == first


def test_the_oracle_knows_every_event_that_seed_004_defines() -> None:
    assert [tag for tag in EVENTS if tag != "UPID"] == list(oracle.SYNTAX)


def test_the_upid_line_of_an_environment_group_is_bare(c_format: Formatter) -> None:
    upids = (0, 8388995, 2**63 - 1)
    answers = c_format(
        Request(Operation.EVENT, values=[upid], tag=EVENTS.index("UPID"), head=(0, 1, 5))
        for upid in upids
    )
    assert [a.stored for a in answers] == [b"0,1,0,5!UPID|%d\n" % upid for upid in upids]


def test_output_that_does_not_fit_is_cut_and_its_whole_length_returned(c_format: Formatter) -> None:
    values: dict[str, oracle.Value] = {
        "ST": b"../x", "SR": b"/a\nb", "SL": PATTERN[:905]
    }  # fmt: skip
    whole = oracle.event_lines(HEAD, "Symlink", values)
    plain = event_request("Symlink", values, Operation.EVENT)
    sizes = range(len(whole) + 3)
    answers = c_format(
        Request(plain.operation, plain.texts, plain.values, plain.tag, size=size) for size in sizes
    )
    for size, answer in zip(sizes, answers, strict=True):
        assert (answer.length, answer.stored) == (len(whole), whole[:size])


@pytest.mark.parametrize("text", [b"", b"\n", b"ab\ncd", PATTERN[:899] + b"\n" + PATTERN[:5]])
def test_every_string_is_cut_cleanly_at_every_size(c_format: Formatter, text: bytes) -> None:
    for tag in ("FN", "A", "Env"):
        whole = expected_string(tag, text)
        asked = string_request(tag, text)
        answers = c_format(
            Request(asked.operation, asked.texts, tag=asked.tag, index=asked.index, size=size)
            for size in range(len(whole) + 2)
        )
        assert [a.stored for a in answers] == [whole[:size] for size in range(len(whole) + 2)]
        assert {a.length for a in answers} == {len(whole)}


def data_of(lines: bytes) -> list[bytes]:
    return [line.removeprefix(HEAD) for line in lines.splitlines()]


def test_the_seeds_example_of_execve(c_format: Formatter) -> None:
    argv = [b"sh", b"/usr/bin/setup_etrace.sh", b"-r"]
    values: dict[str, oracle.Value] = {
        "argsize": 31, "PI": b"/bin/sh", "PP": b"/bin/sh",
        "CW": b"/drive/tracing/tools/execve_tracing",
    }  # fmt: skip
    requests = [event_request("New_proc", values, Operation.EVENT)]
    requests += [
        Request(Operation.ITEM, [argument], tag=STRINGS.index("A"), index=number)
        for number, argument in enumerate(argv)
    ]
    requests.append(Request(Operation.END_OF_ARGS))
    printed = b"".join(answer.stored for answer in c_format(requests))
    assert data_of(printed) == [
        b"New_proc|argsize=31,prognameisize=7,prognamepsize=7,cwdsize=35",
        b"PI|/bin/sh",
        b"PP|/bin/sh",
        b"CW|/drive/tracing/tools/execve_tracing",
        b"A[0]sh",
        b"A[1]/usr/bin/setup_etrace.sh",
        b"A[2]-r",
        b"End_of_args|",
    ]
    # The seed writes 31: 3 + 25 + 3, each with its null byte.
    assert printed == oracle.exec_lines(HEAD, {k: values[k] for k in ("PI", "PP", "CW")}, argv)


SEED_EXAMPLES: list[tuple[str, dict[str, oracle.Value], list[bytes]]] = [
    ("SchedFork", {"pid": 9183}, [b"SchedFork|pid=9183"]),
    ("SysClone", {"flags": 18874385}, [b"SysClone|flags=18874385"]),
    ("SysCloneFailed", {}, [b"SysCloneFailed|"]),
    ("Exit", {"status": 0}, [b"Exit|status=0"]),
    (
        "Open",
        {
            "FN": b"/lib/x86_64-linux-gnu/libc-2.27.so",
            "FO": b"/lib/x86_64-linux-gnu/libc.so.6",
            "flags": 524288,
            "mode": 0,
            "fd": 3,
        },
        [
            b"Open|fnamesize=34,forigsize=31,flags=524288,mode=0,fd=3",
            b"FN|/lib/x86_64-linux-gnu/libc-2.27.so",
            b"FO|/lib/x86_64-linux-gnu/libc.so.6",
        ],
    ),
    ("Pipe", {"fd1": 3, "fd2": 4, "flags": 0}, [b"Pipe|fd1=3,fd2=4,flags=0"]),
    (
        "RenameFrom",
        {"RF": b"/tmp/soong.4.log"},
        [b"RenameFrom|fnamesize=16", b"RF|/tmp/soong.4.log"],
    ),
    (
        "Rename2From",
        {"RF": b"/tmp/soong.4.log", "flags": 0},
        [b"Rename2From|fnamesize=16,flags=0", b"RF|/tmp/soong.4.log"],
    ),
    ("RenameTo", {"RT": b"/tmp/soong.5.log"}, [b"RenameTo|fnamesize=16", b"RT|/tmp/soong.5.log"]),
    ("RenameFailed", {}, [b"RenameFailed|"]),
    ("LinkFrom", {"LF": b"/dev/shm/FRk1Ce"}, [b"LinkFrom|fnamesize=15", b"LF|/dev/shm/FRk1Ce"]),
    (
        "LinkTo",
        {"LT": b"/dev/shm/sem.mp3192055-12140030561392220055"},
        [b"LinkTo|fnamesize=43", b"LT|/dev/shm/sem.mp3192055-12140030561392220055"],
    ),
    (
        "Symlink",
        {"ST": b"../.path_interposer", "SR": None, "SL": b"/drive/android/out/.path/jinfo"},
        [
            b"Symlink|targetnamesize=19,linknamesize=30",
            b"ST|../.path_interposer",
            b"SL|/drive/android/out/.path/jinfo",
        ],
    ),
    (
        "Symlink",
        {"ST": b"../../../../../../../", "SR": b"/", "SL": b"/bin/linktoroot"},
        [
            b"Symlink|targetnamesize=21,resolvednamesize=1,linknamesize=15",
            b"ST|../../../../../../../",
            b"SR|/",
            b"SL|/bin/linktoroot",
        ],
    ),
    ("Close", {"fd": 3}, [b"Close|fd=3"]),
    ("Dup", {"oldfd": 2, "newfd": 5, "flags": 0}, [b"Dup|oldfd=2,newfd=5,flags=0"]),
    (
        "Mount",
        {"MS": None, "MT": b"/home/example_dir/target_dir", "MX": None, "flags": 32},
        [b"Mount|targetnamesize=28,flags=32", b"MT|/home/example_dir/target_dir"],
    ),
    (
        "Mount",
        {"MS": b"/home/example_dir/source_dir", "MT": b"/t", "MX": b"example_fstype", "flags": 0},
        [
            b"Mount|sourcenamesize=28,targetnamesize=2,typenamesize=14,flags=0",
            b"MS|/home/example_dir/source_dir",
            b"MT|/t",
            b"MX|example_fstype",
        ],
    ),
    ("MountFailed", {}, [b"MountFailed|"]),
    (
        "Umount",
        {"MT": b"/mnt/", "flags": 0},
        [b"Umount|targetnamesize=5,flags=0", b"MT|/mnt/"],
    ),
    ("UmountFailed", {}, [b"UmountFailed|"]),
    ("Comm", {"CN": b"new_name"}, [b"Comm|size=8", b"CN|new_name"]),
]


@pytest.mark.parametrize(("tag", "values", "lines"), SEED_EXAMPLES)
def test_the_seeds_examples_come_out_byte_for_byte(
    c_format: Formatter, tag: str, values: dict[str, oracle.Value], lines: list[bytes]
) -> None:
    answer = c_format([event_request(tag, values, Operation.EVENT)])[0]
    assert answer.stored == b"".join(HEAD + line + b"\n" for line in lines)


def test_the_seeds_example_of_a_string_with_newlines(c_format: Formatter) -> None:
    answer = c_format([string_request("FN", b"this is\na string with\nnew lines")])[0]
    assert data_of(answer.stored) == [
        b"FN|this is", b"Cont|a string with", b"Cont|new lines", b"Cont_end|",
    ]  # fmt: skip


def test_the_seeds_example_of_a_long_string_with_newlines(c_format: Formatter) -> None:
    first = b"this is " + b"a" * 1200 + b" very"
    second = b"long string with new lines " + b"a" * 1200 + b"and"
    text = first + b"\n" + second + b"\n" + b"many characters"
    lines = data_of(c_format([string_request("FN", text)])[0].stored)
    assert [line.split(b"]")[0].split(b"|")[0] for line in lines] == [
        b"FN[0", b"FN[1", b"Cont", b"Cont_end", b"FN[2", b"Cont", b"Cont_end", b"FN_end",
    ]  # fmt: skip
    assert lines[3] == b"Cont_end|"
    assert lines[6:] == [b"Cont_end", b"FN_end"]


def test_the_seeds_example_of_long_arguments_repeats_their_number(c_format: Formatter) -> None:
    argv = [b"./test", b"A" * 904, b"B" * 903]
    answers = c_format(
        Request(Operation.ITEM, [argument], tag=STRINGS.index("A"), index=number)
        for number, argument in enumerate(argv)
    )
    assert data_of(b"".join(a.stored for a in answers)) == [
        b"A[0]./test",
        b"A[1]" + b"A" * 900,
        b"A[1]AAAA",
        b"A[2]" + b"B" * 900,
        b"A[2]BBB",
    ]
