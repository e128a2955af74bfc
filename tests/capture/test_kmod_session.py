# SPDX-License-Identifier: Apache-2.0
"""A session of the kernel module on a fake machine: begun, looked at, ended, and what can fail."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from backends import need_root
from fake_kernel import Machine, make_machine

from etrace.capture.kmod import collector, process, session, teardown
from etrace.capture.kmod.control import Counter, Option, Phase
from etrace.capture.kmod.owner import Owner, myself
from etrace.errors import CaptureError

pytestmark = pytest.mark.root
NOBODY = Owner(65534, 65534, (65534,))


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    need_root()
    made = make_machine(tmp_path / "machine")
    yield made
    for pid in made.collectors():
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that belongs to an ordinary user."""
    path = Path(tempfile.mkdtemp(prefix="etrace-test-"))
    os.chown(path, NOBODY.uid, NOBODY.gid)
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def plan(directory: Path, **more: object) -> session.Plan:
    values: dict[str, object] = {"owner": myself(), "root_pid": os.getpid()} | more
    return session.Plan(directory, **values)  # type: ignore[arg-type]


def begin(machine: Machine, directory: Path, **more: object) -> list[str]:
    said: list[str] = []
    session.begin(machine.host, plan(directory, **more), said.append)
    return said


def kill(machine: Machine) -> None:
    """Kill the collector and wait until it is gone."""
    (pid,) = machine.collectors()
    os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def wait_for_collector(machine: Machine) -> None:
    """Wait until the collector has ended by itself."""
    state = machine.states.read()
    assert state is not None
    while state.collector.is_alive():
        time.sleep(0.02)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(state.collector.pid, 0)


def ignore(_text: str) -> None:
    pass


def test_a_session_is_begun_seen_and_ended(machine: Machine, tmp_path: Path) -> None:
    out = tmp_path / "out"
    begin(machine, out, options=Option.ENVIRONMENT | Option.MOUNTS, buffer_kib=512)
    assert machine.kernel.request is not None
    assert machine.kernel.request.root_pid == os.getpid()
    assert machine.kernel.request.options == Option.ENVIRONMENT | Option.MOUNTS
    assert (machine.instance / "options/overwrite").read_text() == "0"
    assert (machine.instance / "options/context-info").read_text() == "0"
    assert (machine.instance / "buffer_size_kb").read_text() == "512"
    assert not (out / ".nfsdb").exists()
    view = session.look(machine.host)
    assert view.running
    assert view.collected["opens"] == 40
    ending = teardown.end(machine.host, ignore)
    assert (ending.losses, ending.aside) == ((), False)
    lines = (out / ".nfsdb").read_text().splitlines()
    assert lines == [f"INITCWD={Path.cwd()}", "4194305,0,1,0!Exit|status=0"]
    stats = json.loads((out / ".nfsdb.stats").read_text())
    assert (stats["backend"], stats["lost"], stats["ended"]) == ("kmod", 0, "stopped")
    assert stats["kernel"]["records"] == 10
    assert sorted(p.name for p in out.iterdir()) == [".nfsdb", ".nfsdb.stats"]
    assert machine.changes() == []


def test_the_session_belongs_to_the_collector_not_to_the_command(
    machine: Machine, tmp_path: Path
) -> None:
    begin(machine, tmp_path)
    assert machine.kernel.status().phase is Phase.RUNNING  # begin() has closed its own connection
    kill(machine)
    assert machine.kernel.status().phase is Phase.STOPPED
    teardown.end(machine.host, ignore)


def test_a_module_that_was_loaded_before_stays(machine: Machine, tmp_path: Path) -> None:
    machine.modules.loaded = True
    begin(machine, tmp_path)
    teardown.end(machine.host, ignore)
    assert machine.changes() == ["the module is loaded"]
    assert machine.modules.loads == 0


def test_an_older_trace_is_put_aside_at_the_end(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / ".nfsdb").write_text("older")
    (tmp_path / ".nfsdb.stats").write_text("{}")
    begin(machine, tmp_path)
    assert (tmp_path / ".nfsdb").read_text() == "older"
    assert teardown.end(machine.host, ignore).aside
    assert (tmp_path / ".nfsdb.old").read_text() == "older"
    assert (tmp_path / ".nfsdb.stats.old").read_text() == "{}"


def test_compressed_traces_have_another_name(machine: Machine, tmp_path: Path) -> None:
    begin(machine, tmp_path, zstd=True)
    assert teardown.end(machine.host, ignore).trace == tmp_path / ".nfsdb.zst"


def test_a_second_session_is_refused_and_the_first_named(machine: Machine, tmp_path: Path) -> None:
    begin(machine, tmp_path)
    with pytest.raises(CaptureError) as error:
        begin(machine, tmp_path / "other")
    message = error.value.message
    assert f"process {os.getpid()} " in message
    assert str(tmp_path) in message
    assert time.strftime("%Y-") in message
    assert "etrace stop" in error.value.hint
    assert not (tmp_path / "other").exists()
    teardown.end(machine.host, ignore)


def test_a_session_of_somebody_else_is_refused(machine: Machine, tmp_path: Path) -> None:
    machine.modules.loaded = True
    machine.kernel.phase = Phase.RUNNING
    with pytest.raises(CaptureError, match="process 4242"):
        begin(machine, tmp_path)
    machine.kernel.phase = Phase.IDLE
    assert machine.changes() == ["the module is loaded"]


def test_nothing_to_stop_is_said(machine: Machine) -> None:
    with pytest.raises(teardown.NoSessionError):
        teardown.end(machine.host, ignore)


# ---- failures of begin(): each restores everything


def fail_load(machine: Machine) -> None:
    machine.modules.refusal = "no such module"


def fail_start(machine: Machine) -> None:
    machine.kernel.refusal = "refused"


def fail_collector(machine: Machine) -> None:
    machine.behave(refuses="cannot open trace_pipe_raw")


def fail_program(machine: Machine) -> None:
    (machine.root / "etrace_cat").chmod(0o644)


def fail_option(machine: Machine) -> None:
    make = machine.host.tracefs.mkdir

    def mkdir(path: Path) -> None:
        make(path)
        (path / "options/overwrite").unlink()
        (path / "options/overwrite").symlink_to("/dev/null")  # takes what is written, reads back ""

    object.__setattr__(machine.host.tracefs, "mkdir", mkdir)


def fail_instance(machine: Machine) -> None:
    shutil.rmtree(machine.root / "tracing")
    (machine.root / "tracing").write_text("")


@pytest.mark.parametrize(
    ("break_it", "text"),
    [
        (fail_load, "no such module"),
        (fail_start, "refused"),
        (fail_collector, "cannot open trace_pipe_raw"),
        (fail_program, "Permission denied"),
        (fail_option, "overwrite="),
        (fail_instance, "Not a directory"),
    ],
)
def test_a_failed_step_undoes_all_before_it(
    machine: Machine, tmp_path: Path, break_it: object, text: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / ".nfsdb").write_text("older")
    break_it(machine)  # type: ignore[operator]
    with pytest.raises(CaptureError, match=text):
        begin(machine, out)
    assert machine.changes() == []
    assert [p.name for p in out.iterdir()] == [".nfsdb"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_undoes_what_was_begun(
    machine: Machine, tmp_path: Path, number: signal.Signals
) -> None:
    connect = machine.host.connect

    def interrupted() -> object:
        os.kill(os.getpid(), number)
        return connect()

    object.__setattr__(machine.host, "connect", interrupted)
    with pytest.raises((KeyboardInterrupt, SystemExit)) as end:
        begin(machine, tmp_path)
    if number is not signal.SIGINT:
        assert end.value.code == 128 + number  # type: ignore[attr-defined]
    assert machine.changes() == []
    assert not list(tmp_path.glob(".nfsdb*"))


def test_a_stop_that_is_interrupted_can_be_repeated(machine: Machine, tmp_path: Path) -> None:
    begin(machine, tmp_path)
    machine.behave(hangs=100)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    with pytest.raises(SystemExit):
        teardown.end(machine.host, ignore)
    timer.join()
    assert machine.instance.exists()
    assert machine.states.read() is not None
    kill(machine)
    assert teardown.end(machine.host, ignore).stats["ended"] == "collector-died"
    assert machine.changes() == []


def test_a_stop_that_was_interrupted_finds_the_collector_ended_well(
    machine: Machine, tmp_path: Path
) -> None:
    begin(machine, tmp_path)
    machine.behave(hangs=0.8)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        teardown.end(machine.host, ignore)
    timer.join()
    wait_for_collector(machine)
    ending = teardown.end(machine.host, ignore)
    assert (ending.losses, ending.warnings) == ((), ())
    assert (ending.stats["ended"], ending.stats["events"]) == ("stopped", 10)
    assert machine.changes() == []


def test_a_collector_that_somebody_else_ended_has_died(machine: Machine, tmp_path: Path) -> None:
    begin(machine, tmp_path)
    (pid,) = machine.collectors()
    os.kill(pid, signal.SIGTERM)
    wait_for_collector(machine)
    ending = teardown.end(machine.host, ignore)
    assert ending.stats["ended"] == "collector-died"
    assert [(loss.n, loss.at_least) for loss in ending.losses] == [(1, True)]


# ---- loss


@pytest.mark.parametrize(
    ("counters", "stats", "lost"),
    [
        ({Counter.RECORDS: 10, Counter.LOST_EVENTS: 7}, {}, (7, "buffers were full")),
        ({Counter.RECORDS: 14}, {}, (4, "not read")),
        ({Counter.RECORDS: 10, Counter.UNTRACKED: 2}, {}, (2, "no memory to follow")),
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
    ending = teardown.end(machine.host, ignore)
    (loss,) = ending.losses
    assert (loss.n, ending.lost, ending.stats["lost"]) == (n, n, n)
    assert text in loss.reason
    assert ending.hint
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
    ending = teardown.end(machine.host, ignore)
    assert ending.lost == 90
    assert any("overwrite=1" in warning for warning in ending.warnings)


def test_what_the_kernel_cannot_see_is_told(machine: Machine, tmp_path: Path) -> None:
    begin(machine, tmp_path)
    machine.kernel.counters = {Counter.RECORDS: 10, Counter.IO_URING: 2}
    machine.kernel.missing = ("security_path_link",)
    ending = teardown.end(machine.host, ignore)
    assert ending.lost == 0
    assert [w for w in ending.warnings if "io_uring" in w and w.startswith("2 ")]
    assert [w for w in ending.warnings if "security_path_link" in w]


def unload(machine: Machine) -> None:
    machine.modules.loaded = False


def forget(machine: Machine) -> None:
    machine.kernel.session += 1
    machine.kernel.phase = Phase.STOPPED


def refuse(machine: Machine) -> None:
    object.__setattr__(machine.host, "connect", machine.kernel.refuse)


@pytest.mark.parametrize("hide", [unload, forget, refuse])
def test_counts_that_nobody_knows_are_no_zeros(
    machine: Machine, tmp_path: Path, hide: Callable[[Machine], None]
) -> None:
    begin(machine, tmp_path)
    hide(machine)
    ending = teardown.end(machine.host, ignore)
    assert [(loss.n, loss.at_least) for loss in ending.losses] == [(1, True)]
    assert ending.stats["kernel"] is None
    assert "unknown" in ending.warnings[0]


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
    assert not session.look(machine.host).running
    with (tmp_path / ".nfsdb.capturing").open("a") as trace:
        trace.write("4194305,0,1,0!Close|fd=3\n4194305,0,1,0!Clo")
    machine.behave(records=12)
    ending = teardown.end(machine.host, ignore)
    assert ending.stats["ended"] == "collector-died"
    assert ending.stats["ended"] == "collector-died"
    assert ending.lost == 3  # of 25 written 10 are in the last counts, 12 were read afterwards
    assert "12 records that it left were read now" in ending.warnings[0]
    lines = (tmp_path / ".nfsdb").read_text().splitlines()
    assert lines[1:] == ["4194305,0,1,0!Close|fd=3", "4194305,0,1,0!Exit|status=0"]
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


def test_a_compressed_trace_is_kept_as_the_dead_collector_left_it(
    machine: Machine, tmp_path: Path
) -> None:
    begin(machine, tmp_path, zstd=True)
    machine.kernel.counters = {Counter.RECORDS: 25}
    kill(machine)
    assert teardown.end(machine.host, ignore).lost == 15
    assert (tmp_path / ".nfsdb.zst").read_text().startswith("INITCWD=")


def test_what_a_dead_collector_left_cannot_be_written_over_a_link(
    machine: Machine, public: Path, tmp_path: Path
) -> None:
    target = tmp_path / "secret"
    target.write_text("of root")
    begin(machine, public, owner=NOBODY)
    kill(machine)
    (public / ".nfsdb.capturing").unlink()
    (public / ".nfsdb.capturing").symlink_to(target)
    ending = teardown.end(machine.host, ignore)
    assert "what it left was not read" in ending.warnings[0]
    assert target.read_text() == "of root"
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
    machine.behave(hangs=100)
    said: list[str] = []
    ending = teardown.end(machine.host, said.append)
    assert ending.stats["ended"] == "collector-died"
    assert "still writing" in said[0]
    assert (tmp_path / ".nfsdb").exists()
    assert machine.changes() == []


def test_after_a_crash_of_the_machine_the_unfinished_trace_is_kept(
    machine: Machine, tmp_path: Path
) -> None:
    (tmp_path / ".nfsdb.capturing").write_text("half")
    said = begin(machine, tmp_path)
    assert ".nfsdb.partial" in said[0]
    assert (tmp_path / ".nfsdb.partial").read_text() == "half"
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
    ending = teardown.end(machine.host, ignore)  # and this process still lives
    assert ending.stats["ended"] == "collector-died"


def test_a_module_in_use_stays_and_is_named(machine: Machine, tmp_path: Path) -> None:
    begin(machine, tmp_path)
    machine.modules.busy = True
    said: list[str] = []
    teardown.end(machine.host, said.append)
    assert any("module stays loaded" in text for text in said)
    assert machine.changes() == ["the module is loaded"]


def test_stop_leaves_a_session_of_etrace_run_alone(machine: Machine, tmp_path: Path) -> None:
    begin(machine, tmp_path, driver=process.identify(os.getpid()))
    with pytest.raises(CaptureError, match="etrace run"):
        teardown.end(machine.host, ignore)
    state = machine.states.read()
    assert state is not None
    teardown.end_own(machine.host, state, ignore, {})


def test_a_session_whose_etrace_run_died_can_be_stopped(machine: Machine, tmp_path: Path) -> None:
    begin(machine, tmp_path, driver=process.Process(os.getpid(), 1))
    assert teardown.end(machine.host, ignore).stats["ended"] == "stopped"


def test_a_session_is_left_to_its_etrace_run_though_its_collector_died(
    machine: Machine, tmp_path: Path
) -> None:
    begin(machine, tmp_path, driver=process.identify(os.getpid()))
    own = machine.states.read()
    assert own is not None
    kill(machine)
    with pytest.raises(CaptureError, match="belongs to `etrace run`"):
        begin(machine, tmp_path / "other")
    ending = teardown.end_own(machine.host, own, ignore, {})
    assert ending.stats["ended"] == "collector-died"
    assert machine.changes() == []


def test_etrace_run_does_not_take_another_session_apart(machine: Machine, tmp_path: Path) -> None:
    begin(machine, tmp_path / "own")
    own = machine.states.read()
    assert own is not None
    teardown.end(machine.host, ignore)
    begin(machine, tmp_path / "other")
    with pytest.raises(CaptureError, match="taken apart by somebody else"):
        teardown.end_own(machine.host, own, ignore, {})
    assert session.look(machine.host).running
    teardown.end(machine.host, ignore)


# ---- a user's directory


def test_files_belong_to_the_user_who_called_sudo(machine: Machine, public: Path) -> None:
    begin(machine, public / "made", owner=NOBODY)
    teardown.end(machine.host, ignore)
    for path in (public / "made", *(public / "made").iterdir()):
        assert path.stat().st_uid == NOBODY.uid, path


def test_a_link_in_a_users_directory_gains_nothing(
    machine: Machine, public: Path, tmp_path: Path
) -> None:
    target = tmp_path / "secret"
    target.write_text("of root")
    for name in (".nfsdb.capturing", ".nfsdb", ".nfsdb.stats"):
        (public / name).symlink_to(target)
        with pytest.raises(CaptureError):
            begin(machine, public, owner=NOBODY)
        (public / name).unlink()
    assert machine.changes() == []
    assert target.read_text() == "of root"


def test_a_link_put_there_during_the_session_gains_nothing(
    machine: Machine, public: Path, tmp_path: Path
) -> None:
    target = tmp_path / "secret"
    target.write_text("of root")
    begin(machine, public, owner=NOBODY)
    for name in (".nfsdb", ".nfsdb.stats", ".nfsdb.old"):
        (public / name).symlink_to(target)
    teardown.end(machine.host, ignore)
    assert target.read_text() == "of root"
    assert (public / ".nfsdb").read_text().startswith("INITCWD=")
    assert not (public / ".nfsdb").is_symlink()
    assert (public / ".nfsdb.old").is_symlink()  # what was there before, itself
    assert machine.changes() == []


def test_a_directory_that_root_alone_may_write_is_refused(machine: Machine, public: Path) -> None:
    public.chmod(0o755)
    os.chown(public, 0, 0)
    with pytest.raises(CaptureError, match="Permission denied"):
        begin(machine, public, owner=NOBODY)
    assert machine.changes() == []


def test_another_directory_in_its_place_is_not_written(machine: Machine, public: Path) -> None:
    out = public / "out"
    begin(machine, out, owner=NOBODY)
    out.rename(public / "moved")
    out.mkdir()
    os.chown(out, NOBODY.uid, NOBODY.gid)
    with pytest.raises(CaptureError, match="another directory") as error:
        teardown.end(machine.host, ignore)
    assert ".nfsdb.capturing" in error.value.hint
    assert (public / "moved" / ".nfsdb.capturing").exists()
    assert list(out.iterdir()) == []
    assert machine.changes() == []
