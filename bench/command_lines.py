# SPDX-License-Identifier: Apache-2.0
"""Command lines and patterns like those of an AOSP and a kernel build, made from a fixed seed.

Lines: compilers with hundreds of flags, archivers with hundreds of objects, linkers, shells, small
tools. No two lines are alike, so nothing is gained by remembering one. Patterns: the shapes of the
configuration of Samsung CAS (wrapping scripts, shells with a word in them, generators, long paths),
some that match often, and adversarial ones of single letters between stars.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

SEED = 20260101
WORDS = (
    "core", "net", "drivers", "audio", "camera", "media", "bluetooth", "sensor", "power",
    "thermal", "display", "graphics", "video", "usb", "storage", "crypto", "kernel", "sched",
    "memory", "input", "touch", "modem", "radio", "wifi", "nfc", "secure", "trusted", "boot",
    "vendor", "system", "frameworks", "hardware", "external", "packages", "apps", "services",
    "runtime", "art", "bionic", "libcore", "tools", "build", "soong", "prebuilts", "device",
    "product", "common", "include", "arch", "block", "firmware", "security", "sound", "virt",
)  # fmt: skip
SUFFIXES = ("utils", "service", "client", "driver", "hal", "impl", "test", "jni", "core", "base")
MACROS = ("CONFIG", "ANDROID", "HAVE", "USE", "ENABLE", "KBUILD")


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of argv as the database image has them."""

    strings_start: array[int]
    strings_bytes: bytes
    argv_start: array[int]
    arguments: array[int]
    n_text_bytes: int


def _path(rng: random.Random, depth: int = 4) -> str:
    names = [rng.choice(WORDS) for _ in range(rng.randint(2, depth))]
    return "/".join([*names, f"{rng.choice(WORDS)}_{rng.choice(SUFFIXES)}"])


def _compile(rng: random.Random, number: int) -> list[str]:
    source = _path(rng)
    flags = [f"-I{_path(rng)}/include" for _ in range(rng.randint(15, 45))]
    flags += [f"-D{rng.choice(MACROS)}_{rng.choice(WORDS).upper()}_{rng.randint(0, 999)}=1"
              for _ in range(rng.randint(5, 25))]  # fmt: skip
    flags += ["-Wall", "-Werror", "-O2", "-fPIC", "-std=gnu11", "-fstack-protector-strong"]
    out = f"out/target/obj/{source}_{number}.o"
    driver = rng.choice(["prebuilts/clang/host/linux-x86/bin/clang", "/usr/bin/gcc", "clang++"])
    return [driver, *flags, "-MD", "-MF", f"{out}.d", "-c", "-o", out, f"{source}.c"]


def _archive(rng: random.Random, number: int) -> list[str]:
    objects = [f"out/target/obj/{_path(rng)}.o" for _ in range(rng.randint(20, 80))]
    return ["prebuilts/clang/host/linux-x86/bin/llvm-ar", "crsPD", f"out/lib{number}.a", *objects]


def _shell(rng: random.Random, number: int) -> list[str]:
    target = f"out/{_path(rng)}_{number}"
    word, suffix = rng.choice(WORDS), rng.choice(SUFFIXES)
    verbs = (
        f"mkdir -p {target}",
        f"rm -f {target} && cp {_path(rng)}.h {target}",
        f"echo {_path(rng)} > {target}",
        f"touch {target}",
        f"python3 build/{rng.choice(WORDS)}/gen_{word}.py -o {target}",
        f"./scripts/{word}-{suffix}.sh {target}",
    )
    return ["/bin/bash", "-c", rng.choice(verbs)]


def _script(rng: random.Random, number: int) -> list[str]:
    tool = f"{rng.choice(WORDS)}/scripts/{rng.choice(WORDS)}-{rng.choice(SUFFIXES)}.sh"
    return ["/bin/sh", tool, f"out/{_path(rng)}_{number}.h", *(_path(rng) for _ in range(3))]


def argvs(n_bytes: int) -> Iterator[list[str]]:
    """Yield command lines, `n_bytes` in sum or a little more."""
    rng = random.Random(SEED)
    n, number = 0, 0
    kinds = (_compile, _archive, _shell, _script)
    while n < n_bytes:
        argv = rng.choices(kinds, weights=(62, 8, 20, 10))[0](rng, number)
        n += sum(len(a) for a in argv) + len(argv) - 1
        number += 1
        yield argv


def _pattern(rng: random.Random) -> str:
    word, other = rng.choice(WORDS), rng.choice(WORDS)
    suffix = rng.choice(SUFFIXES)
    return rng.choice([
        f"*/scripts/{word}-{suffix}*.sh*",
        f"*/{word}/scripts/*{other}*.sh *",
        f"*{word}_{suffix}_build.sh*",
        f"/bin/bash -c *mkdir*{word}/{other}*",
        f"/bin/bash -c *gen_{word}.py*",
        f"*python*{other}/gen_{word}.py*",
        f"*out/target/obj/{word}/{other}/*_{suffix}*.o*",
        f"*-c -o out/{word}/{other}*",
        f"/bin/sh {word}/scripts/*-{suffix}.sh*",
        f"*{word}/{other}/[a-m]*_{suffix}.c",
        f"*llvm-ar *out/lib{rng.randint(0, 40000)}.a*",
        f"*/home/user/src/{word}/{other}/tools/{suffix}/merge_{word}_config.pl*",
        f"*{other}_{rng.randint(0, 40000)}?o*",
        f"*-D{word.upper()}_{other.upper()}=?*",
    ])  # fmt: skip


ADVERSARIAL = ("*a*b*c*", "*x*y*z*q", "*e*e*e*e*e*e*e*e", "?*a?*b?*", "*[a-f]*[0-9]*Z", "*-o*-c*",
               "*.c", "*q*w*e*r*t*y*", "*o*u*t*/*", "* -* -* -* -* -* =*")  # fmt: skip


def patterns(n: int, adversarial: bool = True) -> list[str]:
    """Return `n` different patterns."""
    rng = random.Random(SEED + 1)
    found = dict.fromkeys(ADVERSARIAL if adversarial else ())
    while len(found) < n:
        found.setdefault(_pattern(rng))
    return list(found)[:n]


def columns(lines: Iterator[list[str]]) -> Rows:
    """Return the command lines as columns: each different argument once."""
    rows: dict[str, int] = {}
    start, argv, arguments = array("Q", [0]), array("Q", [0]), array("I")
    text = bytearray()
    n_text = 0
    for line in lines:
        for argument in line:
            row = rows.get(argument)
            if row is None:
                row = rows[argument] = len(rows)
                text += argument.encode()
                start.append(len(text))
            arguments.append(row)
        n_text += sum(map(len, line)) + len(line) - 1
        argv.append(len(arguments))
    return Rows(start, bytes(text), argv, arguments, n_text)
