# SPDX-License-Identifier: Apache-2.0
"""The stubs say what the modules have: mypy.stubtest over every module that has one.

A name of a module that its stub does not have is the module's own; a member of a class that the
stub lacks is an error.
"""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import libetrace
import pytest

INSTALLED = Path(libetrace.__file__).parent
SOURCES = Path(__file__).resolve().parents[2] / "cython"
ALLOWED = (
    # what Cython adds to modules and classes
    r"libetrace\.(\w+\.)+(__test__|__pyx_\w+|__reduce\w*__|__setstate\w*__)",
    # a class whose arguments __cinit__ takes
    r"libetrace\.(image\.columns\.Columns|convert\.exporter\.Exporter|select\.patterns\.PatternSet)\.__init__",
    # types that only stubs have
    r"libetrace\.db\.database\.(Condition|Groups|OpenConditions|Process)",
    r"libetrace\.(db\.database\.ExecutionConditions|trace\.parser\.Counts)",
    # Python code can ask for a buffer since 3.12 only (PEP 688)
    r"libetrace\.convert\.importer\.Column\.__buffer__",
    r"libetrace\.convert\.importer\.JsonError\.__init__",
    # an alias of Literal[..], which stubtest takes for a Union
    r"libetrace\.image\.header\.Code",
)


def stub_names(stub: Path) -> set[str]:
    """Return the names that the top level of a stub binds."""
    names: set[str] = set()
    for node in ast.parse(stub.read_text()).body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                names.add(name)
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]):
                names.add(name)
            case _:
                continue
    return names


def own_names() -> Iterator[str]:
    """Yield expressions for modules without a stub, and names that are the module's own."""
    for library in INSTALLED.rglob("*.so"):
        stub = library.with_name(f"{library.name.partition('.')[0]}.pyi")
        name = ".".join(stub.relative_to(INSTALLED.parent).with_suffix("").parts)
        if not stub.exists():
            yield re.escape(name)
            continue
        for extra in vars(importlib.import_module(name)).keys() - stub_names(stub):
            yield re.escape(f"{name}.{extra}")


@pytest.mark.slow
@pytest.mark.long("mypy reads every module; `make lint` checks all uses of the stubs")
def test_stubs_are_as_the_modules(tmp_path: Path) -> None:
    allowlist = tmp_path / "allowlist"
    allowlist.write_text("\n".join([*ALLOWED, *own_names()]) + "\n")
    # a class of C is always a disjoint base (PEP 800)
    options = ["--concise", "--ignore-unused-allowlist", "--ignore-disjoint-bases"]
    command = [sys.executable, "-m", "mypy.stubtest", "libetrace", *options]
    done = subprocess.run(
        [*command, "--allowlist", str(allowlist)],
        env={**os.environ, "MYPYPATH": str(SOURCES)},
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]


def test_the_names_of_a_stub_are_read() -> None:
    names = stub_names(INSTALLED / "db/open_file.pyi")
    assert names == {"Open"}
