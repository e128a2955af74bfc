# SPDX-License-Identifier: Apache-2.0
"""`etrace start`, `status` and `stop` as a user sees them, on a fake machine."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from backends import need_root
from fake_kernel import Machine, make_machine

from etrace.capture.kmod import ending
from etrace.capture.kmod.system import process
from etrace.capture.kmod.system.control import Counter, Option, Phase
from etrace.cli.main import etrace

pytestmark = pytest.mark.root


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    need_root()
    made = make_machine(tmp_path / "machine")
    monkeypatch.setattr("etrace.cli.etrace.session.Host", lambda: made.host)
    monkeypatch.chdir(tmp_path)
    yield made
    made.end_collectors()


Captured = pytest.CaptureFixture[str]


def test_start_status_stop(machine: Machine, tmp_path: Path, capsys: Captured) -> None:
    assert etrace(["status"]) == 1
    assert capsys.readouterr().out == "etrace: no session is running\n"
    assert etrace(["start", "--pid", str(os.getpid()), "-o", "out", "--buffer-size", "512"]) == 0
    assert f"etrace: recording process {os.getpid()} (" in capsys.readouterr().err
    assert etrace(["status"]) == 0
    out = capsys.readouterr().out
    assert "etrace: a session is running\n" in out
    assert f"{tmp_path}/out/.nfsdb.capturing" in out
    assert out.index("lost events") < out.index("  events")
    assert etrace(["stop"]) == 0
    err = capsys.readouterr().err
    assert "4 processes, 2 commands and 40 opens in 1.0 s -> out/.nfsdb (5.0 kB)" in err
    assert "next: etrace report out\n" in err
    assert machine.changes() == []
    assert etrace(["stop"]) == 1
    assert "no session is running" in capsys.readouterr().err


def test_status_is_machine_readable(machine: Machine, tmp_path: Path, capsys: Captured) -> None:
    assert etrace(["status", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {"running": False, "module_loaded": False}
    etrace(["start", "-q", "--pid", str(os.getpid())])
    assert etrace(["status", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["running"], found["kernel_state"], found["session"]) == (True, "running", 1)
    assert found["directory"] == str(tmp_path)
    assert set(found["counters"]) == {counter.name.lower() for counter in Counter}
    assert found["collected"]["opens"] == 40
    etrace(["stop", "-q"])


def test_a_directory_that_is_no_text_is_shown(
    machine: Machine, tmp_path: Path, capsys: Captured
) -> None:
    directory = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    etrace(["start", "-q", "--pid", str(os.getpid()), "-o", str(directory)])
    assert etrace(["status"]) == 0
    assert "\N{REPLACEMENT CHARACTER}/.nfsdb.capturing" in capsys.readouterr().out
    assert etrace(["stop"]) == 0
    assert (directory / ".nfsdb").exists()


def test_a_loss_is_exit_status_2_with_figures_and_a_hint(
    machine: Machine, capsys: Captured
) -> None:
    etrace(["start", "-q", "--pid", str(os.getpid()), "--buffer-size", "512"])
    machine.kernel.counters[Counter.LOST_EVENTS] = 10026
    assert etrace(["stop"]) == 2
    err = capsys.readouterr().err
    assert "etrace: 10,026 events lost: the buffers were full (512 KiB a CPU)\n" in err
    assert ".nfsdb is incomplete: 10,026 events lost in all\n" in err
    assert "hint: give larger buffers: etrace start --buffer-size 2048" in err


def test_a_dead_session_is_reported_and_cleaned(machine: Machine, capsys: Captured) -> None:
    etrace(["start", "-q", "--pid", str(os.getpid())])
    (pid,) = machine.collectors()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert etrace(["status"]) == 1
    assert "the session died" in capsys.readouterr().out
    assert etrace(["stop"]) == 2
    assert "the collector died" in capsys.readouterr().err
    assert machine.changes() == []


def test_a_session_of_somebody_else_is_seen(machine: Machine, capsys: Captured) -> None:
    machine.modules.loaded, machine.kernel.phase = True, Phase.RUNNING
    assert etrace(["status"]) == 1
    assert "process 4242 runs a session" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("phase", "said"), [(Phase.STARTING, "being started"), (Phase.STOPPING, "being stopped")]
)
def test_a_session_that_comes_or_goes_is_seen(
    machine: Machine, capsys: Captured, phase: Phase, said: str
) -> None:
    machine.modules.loaded, machine.kernel.phase = True, phase
    machine.kernel.missing = ("do_close_on_exec",)
    assert etrace(["status"]) == 1
    out = capsys.readouterr().out
    assert f"a session is {said}" in out
    assert "do_close_on_exec: descriptors that an execution closes have no Close" in out


def test_stop_ends_with_2_where_kprobes_are_off(machine: Machine, capsys: Captured) -> None:
    machine.kernel.missing = tuple(ending.PROBES)
    assert etrace(["start", "-q", "--pid", str(os.getpid())]) == 0
    assert "etrace: kprobes of the kernel are switched off: " in capsys.readouterr().err
    assert etrace(["stop", "-q"]) == 2
    err = capsys.readouterr().err
    assert "at least 1 event lost: kprobes of the kernel are switched off: " in err
    assert "hint: sysctl kernel.ftrace_enabled=1" in err


def test_a_loss_and_a_full_disk_are_seen_at_once(machine: Machine, capsys: Captured) -> None:
    etrace(["start", "-q", "--pid", str(os.getpid())])
    machine.states.progress.write_text(
        '{"bytes":1,"executions":1,"lost":7,"dropped_records":9,"error":"No space"}'
    )
    machine.states.collector_log.write_text("etrace_cat: the disk is full\n")
    assert etrace(["status"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert (
        "not collected 7 no room for records 9 not written No space collector says the disk is full"
        in out
    )
    etrace(["stop", "-q"])


def test_options_reach_the_kernel(machine: Machine) -> None:
    flags = ["--env", "--mounts", "--thread-names", "--open-once", "--isolate", "--descendants"]
    assert etrace(["start", "-q", "--pid", str(os.getpid()), *flags]) == 0
    assert machine.kernel.request is not None
    of_etraced = Option.UNPRIVILEGED
    assert machine.kernel.request.options == sum(Option, Option.NONE) & ~of_etraced
    etrace(["stop", "-q"])


@pytest.mark.parametrize(("flags", "wanted"), [([], Option.USAGE), (["--no-usage"], Option.NONE)])
def test_usage_is_recorded_unless_it_is_not_wanted(
    machine: Machine, flags: list[str], wanted: Option
) -> None:
    assert etrace(["start", "-q", "--pid", str(os.getpid()), *flags]) == 0
    assert machine.kernel.request is not None
    assert machine.kernel.request.options == wanted
    etrace(["stop", "-q"])


def test_without_a_root_the_calling_shell_is_traced(machine: Machine) -> None:
    assert etrace(["start", "-q"]) == 0
    assert machine.kernel.request is not None
    assert machine.kernel.request.root_pid == os.getppid()
    etrace(["stop", "-q"])


def test_a_cgroup_is_named_below_its_mount(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    mounts, root = tmp_path / "mountinfo", tmp_path / "c g"
    mounts.write_text(
        f"1 1 0:1 /below {tmp_path}/bound rw - cgroup2 cgroup2 rw\n"
        f"1 1 0:1 / {tmp_path}/c\\040g rw - cgroup2 cgroup2 rw\n"
    )
    group = root / "a" / "b"
    for directory in (group, root / ".hidden"):
        directory.mkdir(parents=True)
        (directory / "cgroup.procs").write_text("")
    monkeypatch.setattr(process, "MOUNTS", mounts)
    for given in ("/a/b", "a/b", str(group)):
        assert etrace(["start", "-q", "--cgroup", given]) == 0
        assert machine.kernel.request is not None
        assert machine.kernel.request.cgroup == "/a/b"
        etrace(["stop", "-q"])
    assert process.cgroup_below_mount("/.hidden") == "/.hidden"
    for wrong in ("/c", "../..", "/a/../../.."):
        assert etrace(["start", "--cgroup", wrong]) == 2
        assert "no such control group" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["--pid", "4194303"], 2, "there is no process 4194303"),
        (["--pid", "1", "--cgroup", "/a"], 2, "not allowed with"),
        (["--buffer-size", "0"], 2, "not 1 or more"),
    ],
)
def test_wrong_usage_is_2(
    machine: Machine, capsys: Captured, arguments: list[str], status: int, text: str
) -> None:
    try:
        code = etrace(["start", *arguments])
    except SystemExit as end:
        code = end.code  # type: ignore[assignment]
    assert code == status
    assert text in capsys.readouterr().err
    assert machine.changes() == []


@pytest.mark.parametrize("command", ["start", "stop"])
def test_without_root_it_is_said_what_to_do(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: Captured, command: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    assert etrace([command]) == 125
    err = capsys.readouterr().err
    assert "the kernel module needs root" in err
    assert "hint: sudo etrace" in err
