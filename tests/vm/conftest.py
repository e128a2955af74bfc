# SPDX-License-Identifier: Apache-2.0
"""The guests of a test run: each kernel is booted once and runs all phases that its tests ask for.

A test marked `phase("events", "pipe", ...)` has the guest run guest/events.sh with those arguments
before it looks at the files that the phase left. ETRACE_KERNELS chooses the kernels (kernels.py),
ETRACE_VM_SECONDS how long each phase may take; with ETRACE_VM_REUSE=1 the files of the last run are
looked at again.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterator

import pytest
from sandbox import ways
from vm import kernels, machine, python_tree, tree_kernel
from vm.rig import BUILD, Guest, prepare, prepare_builds, wanted

SECONDS = float(os.environ.get("ETRACE_VM_SECONDS", "1200"))
HELPED = {"stuck", "stopping"}  # phases that use modules of tests/vm/modules
KERNELS = kernels.chosen(os.environ.get("ETRACE_KERNELS", ""))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what needs a guest once for each kernel that was asked for."""
    if "guest" in metafunc.fixturenames:
        names = [f"guest-{kernel}" for kernel in KERNELS]  # tests/conftest.py goes by them
        metafunc.parametrize("guest", KERNELS, indirect=True, scope="session", ids=names)


@pytest.fixture(scope="session")
def guest(request: pytest.FixtureRequest) -> Iterator[Guest]:
    """Boot the kernel and run the phases of all selected tests."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / f"{request.param}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pytest.fail(f"another run tests kernel {request.param} in {BUILD}: wait for its end")
        yield boot(request)


def boot(request: pytest.FixtureRequest) -> Guest:
    """Prepare a work folder, boot, and return what was left."""
    kernel = kernels.find(request.param)
    work = BUILD / kernel.name
    if os.environ.get("ETRACE_VM_REUSE"):
        print(f"\n{kernel.release}: the last run's files in {work} are looked at again")
        return Guest(kernel, work, machine.left(work))
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    started = time.monotonic()
    phases = wanted(request.session.items, request.param)
    prepare(kernel, work)
    if HELPED & set(phases):
        kernels.build_helpers(kernel, work)
    builds = [
        phase.partition(":")[2] for phase in phases if phase.startswith(("build:", "backends:"))
    ]
    if builds:
        prepare_builds(work, builds)
    if "kselftest" in phases:
        tree_kernel.install_selftest(kernel.name, work / "kselftest")
    if any(
        phase.startswith(("backends", "cli_session", "rights", "sandbox", "service"))
        for phase in phases
    ):
        python_tree.pack(work / "python.tar")
    if "sandbox" in phases:
        (work / "ways").mkdir()
        shutil.copy(ways.__file__, work / "ways")
        ways.build(work / "ways")
    prepared = time.monotonic()
    ran = machine.run(
        kernel, work, "phases.sh", *phases, boot=machine.Boot(memory="2G", seconds=SECONDS)
    )
    ended = time.monotonic()
    print(
        f"\n{kernel.release}: prepared in {prepared - started:.0f} s, ran {ended - prepared:.0f} s"
    )
    print(ran.stdout)
    return Guest(kernel, work, ran)
