# SPDX-License-Identifier: Apache-2.0
"""Where the instructions are that `instructions.py` counts: by function, natively and traced.

A plugin of QEMU (kernel/plugin/instructions.c) counts how often each instruction of the guest's
kernel is executed while a program there makes system calls; the guest's own symbols name them.

    PYTHONPATH=tests:bench python3 -m kernel.by_function [--reuse] [--function NAME] [KIND...]

KIND is open_close, fork_exec_exit, getpid, untraced_getpid or untraced_open_close. `--function`
lists that function's instructions instead. `--reuse` looks again at what the last guest left.
"""

from __future__ import annotations

import argparse
import bisect
import sys
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

from kernel import instructions as bench
from vm import kernels, machine
from vm.archive import ArchiveError, run
from vm.rig import BUILD

PLUGIN = bench.PROGRAMS / "plugin" / "instructions.c"
KINDS = ("open_close", "fork_exec_exit", "getpid", "untraced_getpid", "untraced_open_close")
USER = "(user)"
LEAST = 0.5  # instructions a call: what is less is noise of timer ticks


@dataclass(frozen=True, slots=True)
class Symbols:
    """The functions of a guest's kernel and its modules, by address."""

    addresses: list[int]
    names: list[str]

    @classmethod
    def read(cls, path: Path) -> Symbols:
        """Read a copy of /proc/kallsyms."""
        found: dict[int, str] = {}
        for line in path.read_text().splitlines():
            address, kind, name, *module = line.split()
            if kind in "tTwW":
                found.setdefault(int(address, 16), " ".join([name, *module]))
        addresses = sorted(found)
        return cls(addresses, [found[address] for address in addresses])

    def name(self, address: int) -> str:
        """Return the function that `address` is in."""
        i = bisect.bisect_right(self.addresses, address) - 1
        return self.names[i] if address and i >= 0 else USER


@dataclass(frozen=True, slots=True)
class Profile:
    """What one pair of marks saw, a call."""

    counts: dict[int, float]  # by address
    texts: dict[int, str]

    @classmethod
    def read(cls, path: Path, n_calls: int) -> Profile:
        """Read a file of the plugin."""
        counts, texts = {}, {}
        for line in path.read_text().splitlines():
            address, count, text = line.split(" ", 2)
            counts[int(address, 16)] = int(count) / n_calls
            texts[int(address, 16)] = text
        return cls(counts, texts)

    def by_function(self, symbols: Symbols) -> dict[str, float]:
        """Return instructions a call of each function."""
        sums: dict[str, float] = defaultdict(float)
        for address, count in self.counts.items():
            sums[symbols.name(address)] += count
        return sums


def boot(name: str, work: Path) -> None:
    """Boot the kernel called `name` with the plugin and run profile.sh."""
    found = kernels.find(name)
    bench.prepare(found, work)
    (work / "profiles").mkdir()
    library = work / "instructions.so"
    flags = ("-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden")
    run("gcc", *flags, "-shared", "-fPIC", "-o", library, PLUGIN)
    plugin = f"-plugin {library},to={work}/profiles"
    ran = machine.run(
        found, work, "profile.sh", boot=replace(bench.BOOT, qemu=(*bench.BOOT.qemu, plugin))
    )
    if ran.status:
        raise machine.MachineError(f"profile.sh ended with {ran.status}:\n{ran.console[-2000:]}")


def read(work: Path) -> dict[str, Profile]:
    """Return the profiles that a guest left, by name."""
    lines = (work / "out" / "profiles").read_text().splitlines()
    return {
        name: Profile.read(work / "profiles" / str(i), int(n_calls))
        for i, (name, n_calls) in enumerate(line.split() for line in lines)
    }


def pair(profiles: dict[str, Profile], kind: str) -> tuple[Profile, Profile]:
    """Return the native and the traced profile of a kind."""
    native = f"native_{kind.removeprefix('untraced_')}"
    return profiles[native], profiles[kind if kind in profiles else f"traced_{kind}"]


def table(kind: str, native: dict[str, float], traced: dict[str, float]) -> str:
    """Lay out what tracing adds, function by function, the dearest first."""
    added = {name: traced.get(name, 0) - native.get(name, 0) for name in {*native, *traced}}
    lines = [f"| {kind} | native | traced | added |", "|---|---:|---:|---:|"]
    for name in sorted(added, key=lambda name: -added[name]):
        if abs(added[name]) >= LEAST:
            figures = (native.get(name, 0), traced.get(name, 0), added[name])
            lines.append(f"| `{name}` | {' | '.join(f'{figure:,.1f}' for figure in figures)} |")
    sums = (sum(native.values()), sum(traced.values()), sum(added.values()))
    return "\n".join([*lines, f"| sum | {' | '.join(f'{figure:,.1f}' for figure in sums)} |"])


def listing(function: str, native: Profile, traced: Profile, symbols: Symbols) -> str:
    """List the instructions of one function: native and traced counts, address, text."""
    lines = []
    for address in sorted({*native.counts, *traced.counts}):
        if symbols.name(address).split()[0] == function:
            figures = (native.counts.get(address, 0), traced.counts.get(address, 0))
            text = traced.texts.get(address) or native.texts[address]
            lines.append(f"{figures[0]:10.2f} {figures[1]:10.2f}  {address:x}  {text}")
    return "\n".join(lines)


def main(argv: list[str]) -> int:
    """Run as a program; see the head of this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernel", default=kernels.MACHINE)
    parser.add_argument("--reuse", action="store_true")
    parser.add_argument("--function")
    parser.add_argument("kind", nargs="*", choices=[*KINDS, []])
    args = parser.parse_args(argv)
    work = BUILD / f"profile-{args.kernel}"
    try:
        if not args.reuse:
            boot(args.kernel, work)
        profiles, symbols = read(work), Symbols.read(work / "out" / "kallsyms")
    except (ArchiveError, machine.MachineError, OSError) as error:
        print(f"bench/kernel/by_function.py: {error}", file=sys.stderr)
        return 1
    for kind in args.kind or KINDS:
        native, traced = pair(profiles, kind)
        if args.function:
            print(listing(args.function, native, traced, symbols))
        else:
            print(table(kind, native.by_function(symbols), traced.by_function(symbols)), end="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
