# SPDX-License-Identifier: Apache-2.0
"""The features of this etrace and of the programs beside it; how to get missing ones.

The programs themselves answer; no configuration is stored.
"""

from __future__ import annotations

import os
import subprocess

import etrace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIBEXEC = os.path.join(os.path.dirname(os.path.realpath(etrace.__file__)), "libexec")  # noqa: PTH118, PTH120
REBUILD = "then build etrace again (make build, or pip install --force-reinstall)"
ANALYTICS = ("duckdb", "pyarrow")
WEB = ("starlette", "uvicorn")


class Feature:
    """A feature that this etrace has or lacks, its purpose, and how to get it."""

    __slots__ = ("hint", "is_here", "is_native", "name", "purpose")

    def __init__(self, name: str, purpose: str, hint: str, *, is_here: bool, native: bool) -> None:
        self.name = name
        self.purpose = purpose
        self.hint = hint
        self.is_here = is_here
        self.is_native = native  # settled when etrace is built

    @property
    def shown(self) -> str:
        """The feature as `--version` shows it."""
        return f"{self.name}: {'yes' if self.is_here else 'no'}"


def collector_zstd() -> Feature:
    """Whether etrace_cat compresses."""
    return Feature(
        "zstd",
        "etrace start --zstd, etrace_cat --zstd",
        f"apt-get install libzstd-dev, {REBUILD}",
        is_here="zstd: yes" in _said_by(f"{LIBEXEC}/etrace_cat"),
        native=True,
    )


def preload_narrow() -> Feature:
    """Whether the preload backend traces 32-bit programs."""
    return Feature(
        "preload of 32 bits",
        "32-bit programs under etrace run --backend preload",
        f"on x86-64 use a compiler that links with -m32 (CC=gcc), {REBUILD}",
        is_here="32 bits: yes" in _said_by(f"{LIBEXEC}/etrace-preload"),
        native=True,
    )


def gcc_plugin() -> Feature:
    """Whether the GCC plugin that names input files was built."""
    return Feature(
        "gcc plugin",
        "cas pp --confirm-inputs for gcc",
        "apt-get install libgcc-input-name"
        if LIBEXEC.startswith("/usr/lib/python3/")
        else f"apt-get install g++ gcc-N-plugin-dev (N: gcc -dumpversion), {REBUILD}",
        is_here=os.path.isfile(f"{LIBEXEC}/libgcc_input_name.so"),  # noqa: PTH113
        native=True,
    )


def zstd_command() -> Feature:
    """Whether compressed traces and logs can be read."""
    return Feature(
        "zstd command",
        "reading .nfsdb.zst and compressed XRay logs",
        "apt-get install zstd",
        is_here=_finds_program("zstd"),
        native=False,
    )


def analytics() -> Feature:
    """Whether both packages of the extra are installed; neither is imported."""
    return Feature(
        "analytics",
        "cas sql, cas export parquet (packages duckdb and pyarrow)",
        "pip install 'etrace[analytics]'",
        is_here=all(_finds_package(name) for name in ANALYTICS),
        native=False,
    )


def perfetto() -> Feature:
    """Whether the package of the extra is installed; it is not imported."""
    return Feature(
        "perfetto",
        "etrace timeline --to perfetto (package perfetto)",
        "pip install 'etrace[perfetto]'",
        is_here=_finds_package("perfetto"),
        native=False,
    )


def web() -> Feature:
    """Whether both packages of the extra are installed; neither is imported."""
    return Feature(
        "web",
        "etrace serve (packages starlette and uvicorn)",
        "pip install 'etrace[web]', or apt-get install python3-starlette python3-uvicorn",
        is_here=all(_finds_package(name) for name in WEB),
        native=False,
    )


FEATURES: tuple[Callable[[], Feature], ...] = (
    collector_zstd, gcc_plugin, preload_narrow, zstd_command, analytics, perfetto, web,
)  # fmt: skip


def examine() -> Iterator[Feature]:
    """Yield every feature."""
    return (find() for find in FEATURES)


def version(program: str, *finders: Callable[[], Feature]) -> str:
    """Return what `PROGRAM --version` prints."""
    return ", ".join([f"{program} {etrace.__version__}", *(find().shown for find in finders)])


def _said_by(program: str) -> str:
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout


def _finds_program(name: str) -> bool:
    import shutil  # noqa: PLC0415  slow to import, and seldom asked

    return shutil.which(name) is not None


def _finds_package(name: str) -> bool:
    import importlib.util  # noqa: PLC0415

    return importlib.util.find_spec(name) is not None


def main() -> None:
    """Report the features that a build lacks; the last step of `make build`."""
    for feature in examine():
        if feature.is_native and not feature.is_here:
            print(f"built without {feature.name} ({feature.purpose})\n  hint: {feature.hint}")  # noqa: T201


if __name__ == "__main__":
    main()
