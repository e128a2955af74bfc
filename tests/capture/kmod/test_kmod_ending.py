# SPDX-License-Identifier: Apache-2.0
"""The end of a session on a fake machine: what was lost, what has died, what is restored."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from backends import need_tool
from fake_kernel import NOBODY, Machine, begin, begun, ignore, kill, wait_for_collector

from etrace.capture.kmod import collector, ending, stage, teardown
from etrace.capture.kmod.system import process
from etrace.capture.kmod.system.control import Counter, Option, Phase
from etrace.capture.kmod.system.owner import Owner, myself
from etrace.errors import CaptureError

pytestmark = pytest.mark.root


def test_a_stop_that_is_interrupted_can_be_repeated(machine: Machine, tmp_path: Path) -> None:
    begin(machine, tmp_path)
    machine.hang(signal.SIGTERM)
    with pytest.raises(SystemExit):
        teardown.end(machine.host, ignore)
    assert machine.instance.exists()
    assert machine.states.read() is not None
    machine.behave()
    kill(machine)
    assert teardown.end(machine.host, ignore).stats["ended"] == "collector-died"
    assert machine.changes() == []


def test_a_stop_that_was_interrupted_finds_the_collector_ended_well(
    machine: Machine, tmp_path: Path
) -> None:
    begin(machine, tmp_path)
    until = machine.hang(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        teardown.end(machine.host, ignore)
    until.write_bytes(b"")
    wait_for_collector(machine)
    result = teardown.end(machine.host, ignore)
    assert (result.losses, result.warnings) == ((), ())
    assert (result.stats["ended"], result.stats["events"]) == ("stopped", 10)
    assert machine.changes() == []


def test_a_collector_that_somebody_else_ended_has_died(machine: Machine, tmp_path: Path) -> None:
    begin(machine, tmp_path)
    (pid,) = machine.collectors()
    os.kill(pid, signal.SIGTERM)
    wait_for_collector(machine)
    result = teardown.end(machine.host, ignore)
    assert result.stats["ended"] == "collector-died"
    assert [(loss.n, loss.at_least) for loss in result.losses] == [(1, True)]


# ---- loss


@pytest.mark.parametrize(
    ("counters", "stats", "lost"),
    [
        ({Counter.RECORDS: 10, Counter.LOST_EVENTS: 7}, {}, (7, "buffers were full")),
        ({Counter.RECORDS: 14}, {}, (4, "not read")),
        ({Counter.RECORDS: 10, Counter.UNTRACKED: 2}, {}, (2, "no memory to trace")),
        ({Counter.RECORDS: 10, Counter.NO_MEMORY: 3}, {}, (3, "no memory for an event")),
        (
            {Counter.RECORDS: 10},
            {"lost": 5, "ended": "write-error", "error": "No space left on device"},
            (5, "No space left"),
        ),
    ],
)
def test_every_loss_is_counted_and_said(
    machine: Machine,
    tmp_path: Path,
    counters: dict[Counter, int],
    stats: dict[str, object],
    lost: tuple[int, str],
) -> None:
    n, text = lost
    begin(machine, tmp_path)
    machine.kernel.counters = counters
    machine.behave(stats=stats)
    result = teardown.end(machine.host, ignore)
    (loss,) = result.losses
    assert (loss.n, result.lost, result.stats["lost"]) == (n, n, n)
    assert text in loss.reason
    assert result.hint
    assert (tmp_path / ".nfsdb").read_text().endswith(f"\nCPU:0 [LOST {n} EVENTS]\n")
    assert json.loads((tmp_path / ".nfsdb.stats").read_text())["losses"][0]["n"] == n


def test_larger_buffers_are_the_hint_when_they_were_full(machine: Machine, tmp_path: Path) -> None:
    begin(machine, tmp_path, buffer_kib=1000)
    machine.kernel.counters = {Counter.RECORDS: 10, Counter.LOST_EVENTS: 1}
    assert "--buffer-size 4000" in teardown.end(machine.host, ignore).hint


def test_a_foreign_overwrite_is_noticed(machine: Machine, tmp_path: Path) -> None:
    begin(machine, tmp_path)
    machine.kernel.counters = {Counter.RECORDS: 100}
    machine.set_file("options/overwrite", "1")
    machine.set_file("per_cpu/cpu1/stats", "entries: 0\noverrun: 90\ncommit overrun: 0\n")
    result = teardown.end(machine.host, ignore)
    assert result.lost == 90
    assert any("overwrite=1" in warning for warning in result.warnings)


def test_what_the_kernel_cannot_see_is_reported(machine: Machine, tmp_path: Path) -> None:
    begin(machine, tmp_path)
    machine.kernel.counters = {Counter.RECORDS: 10, Counter.IO_URING: 2}
    machine.kernel.missing = ("security_path_link",)
    result = teardown.end(machine.host, ignore)
    assert result.lost == 0
    assert [w for w in result.warnings if "io_uring" in w and w.startswith("2 ")]
    lacks = (
        "this kernel lacks security_path_link: names of links are looked up again after the call"
    )
    assert lacks in result.warnings


ALL_PROBES = tuple(ending.PROBES)


@pytest.mark.parametrize("when", ["start", "middle"])
def test_a_trace_without_kprobes_is_incomplete(machine: Machine, tmp_path: Path, when: str) -> None:
    if when == "start":
        machine.kernel.missing = ALL_PROBES
    shown = begin(machine, tmp_path)
    assert bool(shown) == (when == "start")
    machine.kernel.missing = ALL_PROBES
    result = teardown.end(machine.host, ignore)
    (loss,) = result.losses
    assert (loss.n, loss.at_least) == (1, True)
    assert loss.reason.startswith("kprobes of the kernel are switched off: ")
    assert "descriptors that an execution closes have no Close" in loss.reason
    assert result.hint.startswith("sysctl kernel.ftrace_enabled=1 && echo 1 > ")
    assert all(loss.reason in text for text in shown)
    assert result.stats["missing_probes"] == list(ALL_PROBES)


def test_a_session_that_ends_by_itself_meanwhile_is_waited_for(
    machine: Machine, tmp_path: Path
) -> None:
    begin(machine, tmp_path)
    machine.kernel.phase = Phase.STOPPING
    machine.kernel.counters = {Counter.RECORDS: 10, Counter.LOST_EVENTS: 1}
    assert teardown.end(machine.host, ignore).lost == 1
    assert machine.kernel.phase is Phase.STOPPED


def unload(machine: Machine) -> None:
    machine.modules.loaded = False


def forget(machine: Machine) -> None:
    machine.kernel.session += 1
    machine.kernel.phase = Phase.STOPPED


def refuse(machine: Machine) -> None:
    object.__setattr__(machine.host, "connect", machine.kernel.refuse)


@pytest.mark.parametrize("hide", [unload, forget, refuse])
def test_unknown_counts_are_not_zeros(
    machine: Machine, tmp_path: Path, hide: Callable[[Machine], None]
) -> None:
    begin(machine, tmp_path)
    hide(machine)
    result = teardown.end(machine.host, ignore)
    assert [(loss.n, loss.at_least) for loss in result.losses] == [(1, True)]
    assert result.stats["kernel"] is None
    assert "unknown" in result.warnings[0]


def test_a_session_whose_number_was_not_noted_is_stopped(machine: Machine, tmp_path: Path) -> None:
    begin(machine, tmp_path)  # and `etrace start` is killed between START and the second write
    state = machine.states.read()
    assert state is not None
    machine.states.write(dataclasses.replace(state, session=0))
    assert teardown.end(machine.host, ignore).losses == ()
    assert machine.changes() == []


# ---- what dies


def test_a_killed_collector_loses_nothing_that_was_written(
    machine: Machine, tmp_path: Path
) -> None:
    begin(machine, tmp_path)
    machine.kernel.counters = {Counter.RECORDS: 25}
    kill(machine)
    assert not stage.look(machine.host).running
    with (tmp_path / ".nfsdb.capturing").open("a") as trace:
        trace.write("4194305,0,1,0!Close|fd=3\n")
    machine.behave(records=12)
    result = teardown.end(machine.host, ignore)
    assert result.stats["ended"] == "collector-died"
    assert result.lost == 3  # of 25 written 10 are in the last counts, 12 were read afterwards
    assert "recovered 12 records" in result.warnings[0]
    lines = (tmp_path / ".nfsdb").read_text().splitlines()
    assert lines[1:] == [
        *("4194305,0,1,0!Close|fd=3", "4194305,0,1,0!Exit|status=0", "CPU:0 [LOST 3 EVENTS]")
    ]
    assert machine.changes() == []


def test_what_a_killed_collector_held_back_is_lost(machine: Machine, tmp_path: Path) -> None:
    begin(machine, tmp_path)
    kill(machine)
    machine.states.progress.write_text('{"records":10,"written_records":4,"bytes":1}')
    machine.behave(records=0)
    assert [(loss.n, loss.at_least) for loss in teardown.end(machine.host, ignore).losses] == [
        (6, False)
    ]


def test_a_trace_is_for_its_owner_only(machine: Machine, tmp_path: Path) -> None:
    begin(machine, tmp_path, options=Option.ENVIRONMENT)
    assert (tmp_path / ".nfsdb.capturing").stat().st_mode & 0o777 == 0o600
    teardown.end(machine.host, ignore)
    assert {p.stat().st_mode & 0o777 for p in tmp_path.glob(".nfsdb*")} == {0o600}


def test_a_loss_is_noted_in_a_frame_of_its_own() -> None:
    zstd = need_tool("zstd", "zstd")
    line = ending.mark(10026)
    done = subprocess.run(
        [zstd, "-dc"], input=ending.zstd_frame(line), capture_output=True, check=True
    )
    assert done.stdout == line == b"CPU:0 [LOST 10026 EVENTS]\n"


def link(path: Path, target: Path) -> None:
    path.hardlink_to(target)


@pytest.mark.parametrize("put", [Path.symlink_to, link])
@pytest.mark.parametrize("owner", [NOBODY, None])
def test_what_a_dead_collector_left_is_written_into_no_other_file(
    machine: Machine, public: Path, put: Callable[[Path, Path], None], owner: Owner | None
) -> None:
    target = public / "secret"
    target.write_text("of root")
    begin(machine, public, owner=owner or myself())
    machine.kernel.counters = {Counter.RECORDS: 25}
    kill(machine)
    (public / ".nfsdb.capturing").unlink()
    put(public / ".nfsdb.capturing", target)
    with pytest.raises(CaptureError, match="the trace could not be renamed") as error:
        teardown.end(machine.host, ignore)
    assert "15 events are lost" in error.value.message
    assert target.read_text() == "of root"
    assert not (public / ".nfsdb").exists()
    assert machine.changes() == []


def test_a_stale_session_is_cleaned_by_the_next_start(machine: Machine, tmp_path: Path) -> None:
    begin(machine, tmp_path / "first")
    kill(machine)
    said = begin(machine, tmp_path / "second")
    assert "died" in said[0]
    assert str(tmp_path / "first" / ".nfsdb") in said[1]
    assert (tmp_path / "first" / ".nfsdb").exists()
    teardown.end(machine.host, ignore)
    assert machine.changes() == []


def test_a_stalled_collector_is_killed_and_its_trace_kept(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "STALLED_S", 1.0)
    monkeypatch.setattr(collector, "TELL_AFTER_S", 0.1)
    begin(machine, tmp_path)
    machine.hang()
    said: list[str] = []
    result = teardown.end(machine.host, said.append)
    assert result.stats["ended"] == "collector-died"
    assert "still writing" in said[0]
    assert (tmp_path / ".nfsdb").exists()
    assert machine.changes() == []


def test_after_a_crash_of_the_machine_the_unfinished_trace_is_kept(
    machine: Machine, tmp_path: Path
) -> None:
    for name in (".nfsdb.partial", ".nfsdb.partial.1"):
        (tmp_path / ".nfsdb.capturing").write_text(name)
        said = begin(machine, tmp_path)
        assert ".nfsdb.partial" in said[0]
        assert (tmp_path / name).read_text() == name
        teardown.end(machine.host, ignore)


def test_another_process_with_the_collectors_number_is_not_taken_for_it(
    machine: Machine, tmp_path: Path
) -> None:
    begin(machine, tmp_path)
    kill(machine)
    state = machine.states.read()
    assert state is not None
    reused = process.Process(os.getpid(), state.collector.start_ticks)
    object.__setattr__(state, "collector", reused)
    machine.states.write(state)
    result = teardown.end(machine.host, ignore)  # and this process still lives
    assert result.stats["ended"] == "collector-died"


def test_a_module_in_use_stays_and_is_named(machine: Machine, tmp_path: Path) -> None:
    begin(machine, tmp_path)
    machine.modules.busy = True
    said: list[str] = []
    teardown.end(machine.host, said.append)
    assert any("module stays loaded" in text for text in said)
    assert machine.changes() == ["the module is loaded"]


def test_stop_leaves_a_session_of_etrace_run_alone(machine: Machine, tmp_path: Path) -> None:
    own, _ = begun(machine, tmp_path, driver=process.identify(os.getpid()))
    with pytest.raises(CaptureError, match="etrace run"):
        teardown.end(machine.host, ignore)
    own.end({})


def test_a_session_whose_etrace_run_died_can_be_stopped(machine: Machine, tmp_path: Path) -> None:
    begin(machine, tmp_path, driver=process.Process(os.getpid(), 1))
    assert teardown.end(machine.host, ignore).stats["ended"] == "stopped"


def test_a_session_is_left_to_its_etrace_run_though_its_collector_died(
    machine: Machine, tmp_path: Path
) -> None:
    own, _ = begun(machine, tmp_path, driver=process.identify(os.getpid()))
    kill(machine)
    with pytest.raises(CaptureError, match="belongs to `etrace run`"):
        begin(machine, tmp_path / "other")
    result = own.end({})
    assert result.stats["ended"] == "collector-died"
    assert machine.changes() == []


def test_etrace_run_does_not_take_another_session_apart(machine: Machine, tmp_path: Path) -> None:
    own, _ = begun(machine, tmp_path / "own")
    teardown.end(machine.host, ignore)
    begin(machine, tmp_path / "other")
    with pytest.raises(CaptureError, match="another process has ended the session"):
        own.end({})
    assert stage.look(machine.host).running
    teardown.end(machine.host, ignore)


# ---- missing probes

HOOKS = Path(__file__).parents[3] / "kmod/src/probe/hooks.c"


def test_the_table_names_what_the_module_probes_or_looks_up() -> None:
    source = HOOKS.read_text()
    (table,) = re.findall(r"kprobe_definitions\[\] = {\n(.*?)\n};", source, re.DOTALL)
    rows = dict(re.findall(r'\{ "(\w+)", \w+([^}]*) \}', table))
    looked_up = set(re.findall(r'missing\[n_missing\+\+\] = "(\w+)";', source))
    assert looked_up
    assert rows.keys() | looked_up == set(ending.PROBES)
    always = {name for name, more in rows.items() if not more and "close_range" not in name}
    assert always == ending.ALWAYS


@pytest.mark.parametrize("name", ALL_PROBES)
def test_one_missing_probe_says_what_is_lost(name: str) -> None:
    assert ending.describe_missing((name,)) == f"this kernel lacks {name}: {ending.PROBES[name]}"
    assert not ending.probes_are_off((name,))


def test_a_missing_close_is_not_a_rename() -> None:
    text = ending.describe_missing(("do_close_on_exec",))
    assert "Close" in text
    assert "rename" not in text


def test_all_missing_probes_are_switched_off() -> None:
    assert ending.probes_are_off(ALL_PROBES)
    assert ending.probes_are_off(tuple(ending.ALWAYS))
    assert ending.describe_missing(ALL_PROBES).startswith(
        "kprobes of the kernel are switched off: names of renames"
    )


def test_the_same_loss_is_said_once() -> None:
    names = ("__x64_sys_close_range", "__arm64_sys_close_range", "unheard_of")
    assert ending.without_probes(names) == (ending.CLOSED, "what unheard_of shows is lost")


def test_nothing_is_said_when_nothing_is_missing() -> None:
    assert ending.describe_missing(()) == ""
