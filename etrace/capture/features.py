# SPDX-License-Identifier: Apache-2.0
"""The features of this etrace and of the programs beside it; how to get missing ones.

The programs themselves answer; no configuration is stored.
"""

from __future__ import annotations

import os
import subprocess
import sys

import etrace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

LIBEXEC = os.path.join(os.path.dirname(os.path.realpath(etrace.__file__)), "libexec")  # noqa: PTH118, PTH120
REBUILD = (
    "then build etrace from its source again (make build, or, with the source archive, pip install "
    "--force-reinstall; a wheel is built already)"
)
PYARROW = ("pyarrow",)
ANALYTICS = ("duckdb", *PYARROW)
PERFETTO = ("perfetto",)
WEB = ("starlette", "uvicorn")
WEB_OF_DEBIAN = ("python3-starlette", "python3-uvicorn")
#: where the hints put libraries for an etrace that a distribution packaged
EXTRAS = "~/etrace-extras"


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


def install_hint(packages: Iterable[str], of_debian: Iterable[str] = ()) -> str:
    """Return how to install libraries for the Python that runs this: a line to copy.

    An etrace that a distribution packaged finds them in a virtual environment whose Python runs it.
    """
    names = " ".join(packages)
    if sys.prefix != sys.base_prefix:
        return f"{sys.prefix}/bin/python -m pip install {names}"
    if of_debian and os.path.exists("/usr/bin/apt-get"):  # noqa: PTH110
        sudo = "" if os.geteuid() == 0 else "sudo "
        return f"{sudo}apt-get install {' '.join(of_debian)}"
    venv = f"python3 -m venv --system-site-packages {EXTRAS}"
    command = os.path.realpath(sys.argv[0])
    return f"{venv} && {EXTRAS}/bin/pip install {names}; then: {EXTRAS}/bin/python {command} ..."


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
    """Whether both packages are installed; neither is imported."""
    return Feature(
        "analytics",
        "cas sql, cas export parquet (packages duckdb and pyarrow)",
        install_hint(ANALYTICS),
        is_here=all(_finds_package(name) for name in ANALYTICS),
        native=False,
    )


def perfetto() -> Feature:
    """Whether the package is installed; it is not imported."""
    return Feature(
        "perfetto",
        "etrace timeline --to perfetto (package perfetto)",
        install_hint(PERFETTO),
        is_here=all(_finds_package(name) for name in PERFETTO),
        native=False,
    )


def web() -> Feature:
    """Whether both packages are installed; neither is imported."""
    return Feature(
        "web",
        "etrace serve (packages starlette and uvicorn)",
        install_hint(WEB, WEB_OF_DEBIAN),
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
