# SPDX-License-Identifier: Apache-2.0
"""`cas export sbom` of a module that was made of 50,000 files, which are there and are hashed.

2,500 sources with 18 headers of their own and 300 that all read, and as many objects. Every file
has 6 kB of its own text.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import paired
import samples
from paired import Candidate

sys.path.insert(0, str(samples.TOP / "tests"))

from compiling import BuildTeller

N_SOURCES, N_OWN, N_COMMON = 2500, 18, 300
SIZE = 6000
MAX_SECONDS, MAX_MB = 30.0, 1000.0


def write(top: Path) -> int:
    """Write the files and the trace of a build; return how many files went into its module."""
    build = BuildTeller()
    common = [top / f"include/common{n}.h" for n in range(N_COMMON)]
    objects, n_files = [], 0
    (top / "include").mkdir()
    for path in common:
        path.write_bytes(os.urandom(SIZE // 2).hex().encode())
    for n in range(N_SOURCES):
        folder = top / f"part{n // 50}"
        folder.mkdir(exist_ok=True)
        own = [folder / f"own{n}_{i}.h" for i in range(N_OWN)]
        source, made = folder / f"source{n}.c", folder / f"source{n}.o"
        for path in (source, *own, made):
            # REUSE-IgnoreStart
            head = b"/* SPDX-License-Identifier: MIT */\n"
            # REUSE-IgnoreEnd
            path.write_bytes(head + os.urandom(SIZE // 2).hex().encode())
        command = f"gcc -c {source} -o {made}"
        reads = [str(path) for path in (source, *own, *common)]
        build.run(n + 10, "/usr/bin/gcc", command, reads=reads, writes=[str(made)])
        build.exit(n + 10)
        objects.append(str(made))
        n_files += 2 + N_OWN
    module = top / "module"
    module.write_bytes(os.urandom(SIZE))
    words = ["ld", "-o", str(module), *objects]
    build.run(5, "/usr/bin/ld", words, reads=objects, writes=[str(module)])  # type: ignore[arg-type]
    build.exit(5)
    (top / ".nfsdb").write_bytes(build.trace())
    return n_files + N_COMMON


def main() -> None:
    """Print the figures and what they are held to."""
    top = Path(tempfile.mkdtemp(prefix="etrace-sbom-"))
    try:
        with ProcessPoolExecutor(1) as pool:  # its memory would count as that of its children
            n_files = pool.submit(write, top).result()
        samples.cas(top, "parse")
        samples.cas(top, "pp")
        print(f"### sbom of {n_files:,} files\n| | CPU s | wall s | peak MB | MB |")
        print("|---|---|---|---|---|")
        lines = []
        for form in ("spdx3", "spdx2.3", "cyclonedx", "in-toto"):
            target = top / "out.json"
            words = ["export", "sbom", "--db", str(top), "--format", form, "-o", str(target)]
            run = paired.once(Candidate(form, [str(samples.PROGRAMS / "cas"), *words]))
            size, peak = target.stat().st_size / samples.MEGA, run.peak_bytes / samples.MEGA
            print(f"| {form} | {run.cpu:.1f} | {run.wall:.1f} | {peak:.0f} | {size:.0f} |")
            lines.append(samples.verdict(f"s, {form}", run.wall, MAX_SECONDS, at_most=True))
            lines.append(samples.verdict(f"MB, {form}", peak, MAX_MB, at_most=True))
        print("\n" + "\n".join(lines) + "\n")
    finally:
        shutil.rmtree(top)
