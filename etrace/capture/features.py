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
    from collections.abc import Callable, Iterable

LIBEXEC = os.path.join(os.path.dirname(os.path.realpath(etrace.__file__)), "libexec")  # noqa: PTH118, PTH120
REBUILD = (
    "then build etrace from its source again (make build, or, with the source archive, pip install "
    "--force-reinstall; a wheel is built already)"
)
#: Debian's packages with what etrace-bpf is built with
BPF_PACKAGES = (
    "clang", "llvm", "bpftool", "libbpf-dev", "libelf-dev", "zlib1g-dev", "pkgconf",
)  # fmt: skip
PYARROW = ("pyarrow",)
ANALYTICS = ("duckdb", *PYARROW)
PERFETTO = ("perfetto",)
WEB = ("starlette", "uvicorn")
#: package manager -> library -> its package; Debian 12 and 13, Fedora 40
DISTRIBUTIONS = {
    "apt-get": {"starlette": "python3-starlette", "uvicorn": "python3-uvicorn"},
    "dnf": {
        "starlette": "python3-starlette", "uvicorn": "python3-uvicorn",
        "pyarrow": "python3-pyarrow",
    },
}  # fmt: skip
#: where packages of a distribution put etrace
PACKAGED = ("/usr/lib/python3", "/usr/lib64/python3")
#: where the hints put libraries for an etrace that a distribution packaged
EXTRAS = "~/etrace-extras"


class Feature:
    """A feature that this etrace has or lacks, its purpose, how to get it, and how it is found."""

    __slots__ = ("find", "hint", "is_native", "name", "purpose")

    def __init__(
        self, name: str, purpose: str, hint: str, find: Callable[[], bool], *, native: bool = False
    ) -> None:
        self.name = name
        self.purpose = purpose
        self.hint = hint
        self.find = find
        self.is_native = native  # settled when etrace is built

    @property
    def is_here(self) -> bool:
        """Whether this etrace has it."""
        return self.find()


def install_hint(libraries: Iterable[str]) -> str:
    """Return how to install libraries for the Python that runs this: a line to copy.

    It is in the words of the way in which etrace came here: pipx, uv, a virtual environment, the
    distribution, or a Python of its own. Where the distribution owns the Python, pip refuses (PEP
    668), and libraries without a package go into a virtual environment whose Python runs etrace.
    """
    names = " ".join(libraries)
    if sys.prefix != sys.base_prefix:
        return _into_environment(names)
    if LIBEXEC.startswith(PACKAGED):
        if packaged := _by_distribution(names.split()):
            return packaged
    elif not os.path.exists(f"{_standard_library()}/EXTERNALLY-MANAGED"):  # noqa: PTH110
        return f"{sys.executable} -m pip install {names}"
    venv = f"python3 -m venv --system-site-packages {EXTRAS}"
    command = os.path.realpath(sys.argv[0])
    return f"{venv} && {EXTRAS}/bin/pip install {names}; then: {EXTRAS}/bin/python {command} ..."


def _into_environment(names: str) -> str:
    """Return how to install libraries into this virtual environment; uv makes some without pip."""
    if os.path.exists(f"{sys.prefix}/pipx_metadata.json"):  # noqa: PTH110
        return f"pipx inject {os.path.basename(sys.prefix)} {names}"  # noqa: PTH119
    if not _have_packages("pip"):
        return f"uv pip install --python {sys.prefix} {names}"
    return f"{sys.prefix}/bin/python -m pip install {names}"


def _by_distribution(libraries: list[str]) -> str:
    """Return the line of the package manager when it has all the libraries, else nothing."""
    sudo = "" if os.geteuid() == 0 else "sudo "
    for manager, names in DISTRIBUTIONS.items():
        if os.path.exists(f"/usr/bin/{manager}") and names.keys() >= set(libraries):  # noqa: PTH110
            return f"{sudo}{manager} install {' '.join(names[each] for each in libraries)}"
    return ""


def _standard_library() -> str:
    return os.path.dirname(os.__file__)  # noqa: PTH120


def _said_by(name: str) -> str:
    """Return what `NAME --version` prints, empty when there is no such program."""
    command = [f"{LIBEXEC}/{name}", "--version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout


def _finds_program(name: str) -> bool:
    import shutil  # noqa: PLC0415  slow to import, and seldom asked

    return shutil.which(name) is not None


def _have_packages(*names: str) -> bool:
    """Whether packages are installed; none is imported."""
    import importlib.util  # noqa: PLC0415

    return all(importlib.util.find_spec(name) is not None for name in names)


BPF = Feature(
    "bpf",
    "etrace run --backend bpf",
    f"apt-get install {' '.join(BPF_PACKAGES)}, {REBUILD}",
    lambda: os.path.isfile(f"{LIBEXEC}/etrace-bpf"),  # noqa: PTH113
    native=True,
)
FEATURES = (
    Feature(
        "zstd",
        "etrace start --zstd, etrace_cat --zstd",
        f"apt-get install libzstd-dev, {REBUILD}",
        lambda: "zstd: yes" in _said_by("etrace_cat"),
        native=True,
    ),
    Feature(
        "gcc plugin",
        "cas pp --confirm-inputs for gcc",
        "apt-get install libgcc-input-name"
        if LIBEXEC.startswith("/usr/lib/python3/")
        else f"apt-get install g++ gcc-N-plugin-dev (N: gcc -dumpversion), {REBUILD}",
        lambda: os.path.isfile(f"{LIBEXEC}/libgcc_input_name.so"),  # noqa: PTH113
        native=True,
    ),
    Feature(
        "preload of 32 bits",
        "32-bit programs under etrace run --backend preload",
        f"on x86-64 use a compiler that links with -m32 (CC=gcc), {REBUILD}",
        lambda: "32 bits: yes" in _said_by("etrace-preload"),
        native=True,
    ),
    BPF,
    Feature(
        "zstd command",
        "reading .nfsdb.zst and compressed XRay logs",
        "apt-get install zstd",
        lambda: _finds_program("zstd"),
    ),
    Feature(
        "analytics",
        "cas sql, cas export parquet (packages duckdb and pyarrow)",
        install_hint(ANALYTICS),
        lambda: _have_packages(*ANALYTICS),
    ),
    Feature(
        "perfetto",
        "etrace timeline --format perfetto (package perfetto)",
        install_hint(PERFETTO),
        lambda: _have_packages(*PERFETTO),
    ),
    Feature(
        "web",
        "etrace serve (packages starlette and uvicorn)",
        install_hint(WEB),
        lambda: _have_packages(*WEB),
    ),
)


def version(program: str, *names: str) -> str:
    """Return what `PROGRAM --version` prints."""
    found = {feature.name: feature for feature in FEATURES}
    shown = (f"{name}: {'yes' if found[name].is_here else 'no'}" for name in names)
    return ", ".join([f"{program} {etrace.__version__}", *shown])


def main() -> None:
    """Report the features that a build lacks; the last step of `make build`."""
    for feature in FEATURES:
        if feature.is_native and not feature.is_here:
            print(f"built without {feature.name} ({feature.purpose})\n  hint: {feature.hint}")  # noqa: T201


if __name__ == "__main__":
    main()
