# SPDX-License-Identifier: Apache-2.0
"""A session of the kernel module on a fake machine: how it begins, and what can fail."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_kernel import NOBODY, Machine, begin, begun, ignore, kill

from etrace.capture.kmod import collector, teardown
from etrace.capture.kmod.stage import NoSessionError, Stage, look, stage_of
from etrace.capture.kmod.system import process
from etrace.capture.kmod.system.control import Option, Phase
from etrace.errors import CaptureError

pytestmark = pytest.mark.root


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
    view = look(machine.host)
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


@pytest.mark.parametrize(
    ("phase", "words"),
    [
        (Phase.RUNNING, "process 4242"),
        (Phase.STARTING, "starting"),
        (Phase.STOPPING, "being stopped"),
    ],
)
def test_a_session_of_somebody_else_is_refused(
    machine: Machine, tmp_path: Path, phase: Phase, words: str
) -> None:
    machine.modules.loaded = True
    machine.kernel.phase = phase
    with pytest.raises(CaptureError, match=words):
        begin(machine, tmp_path)
    machine.kernel.phase = Phase.IDLE
    assert machine.changes() == ["the module is loaded"]


@pytest.mark.parametrize(
    ("number", "stopping", "alive", "stage"),
    [
        (0, False, True, Stage.STARTING),
        (7, False, True, Stage.RUNNING),
        (7, False, False, Stage.BROKEN),
        (7, True, True, Stage.ENDING),
        (7, True, False, Stage.ENDED),
    ],
)
def test_the_stage_is_read_from_the_state_and_the_collector(
    machine: Machine, tmp_path: Path, number: int, stopping: bool, alive: bool, stage: Stage
) -> None:
    own, _ = begun(machine, tmp_path)
    reader = own.state.collector if alive else process.Process(os.getpid(), 1)
    state = dataclasses.replace(own.state, session=number, stopping=stopping, collector=reader)
    assert stage_of(state) is stage
    assert stage_of(None) is Stage.NONE
    teardown.end(machine.host, ignore)


def test_nothing_to_stop_is_said(machine: Machine) -> None:
    with pytest.raises(NoSessionError):
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


def test_a_signal_after_the_last_step_is_not_lost(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    got: list[int] = []

    def interrupted(_fd: int) -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        return -1

    monkeypatch.setattr(os, "dup", interrupted)
    before = signal.signal(signal.SIGTERM, lambda number, _: got.append(number))
    try:
        begun(machine, tmp_path, driver=process.identify(os.getpid()))[0].end({})
    finally:
        signal.signal(signal.SIGTERM, before)
    assert got == [signal.SIGTERM]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGQUIT])
def test_a_start_that_is_killed_leaves_nothing_that_cannot_be_stopped(
    machine: Machine, tmp_path: Path, number: signal.Signals
) -> None:
    if (child := os.fork()) == 0:
        release = collector.Held.release

        def killed(held: collector.Held, log: Path, check: Callable[[], None]) -> None:
            os.kill(os.getpid(), number)
            release(held, log, check)

        with contextlib.suppress(BaseException):
            pytest.MonkeyPatch().setattr(collector.Held, "release", killed)
            begin(machine, tmp_path / "first")
        os._exit(0)
    os.waitpid(child, 0)
    state = machine.states.read()
    while state and state.collector.is_alive():  # it was held: until it sees that it never begins
        time.sleep(0.01)
    begin(machine, tmp_path / "second")
    teardown.end(machine.host, ignore)
    assert machine.collectors() == []
    assert not machine.instance.exists()
    assert machine.states.read() is None


def test_a_root_that_ends_before_it_is_traced_is_not_taken_for_another(
    machine: Machine, tmp_path: Path
) -> None:
    reused = process.Process(os.getpid(), 1)
    with pytest.raises(CaptureError, match="has ended"):
        begin(machine, tmp_path, root_process=reused)
    assert machine.changes() == []


def test_a_module_file_is_not_ignored_without_a_word(machine: Machine, tmp_path: Path) -> None:
    machine.modules.loaded = True
    (said,) = begin(machine, tmp_path, module=Path("/lib/etrace.ko"))
    assert "/lib/etrace.ko is not used" in said
    teardown.end(machine.host, ignore)


def test_an_instance_of_somebody_is_not_removed_without_a_word(
    machine: Machine, tmp_path: Path
) -> None:
    machine.host.tracefs.instance("etrace").make()
    (said,) = begin(machine, tmp_path)
    assert "is created again" in said
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


def test_nothing_is_written_of_a_root_that_changed(machine: Machine, tmp_path: Path) -> None:
    """The collector stands still until the check is over, and is killed when it fails."""
    states: list[str] = []

    def check() -> None:
        (pid,) = machine.collectors()
        for _ in range(100):
            states.append(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0])
            if states[-1] == "T":
                break
            time.sleep(0.02)
        raise CaptureError("it has changed")

    with pytest.raises(CaptureError, match="it has changed"):
        begin(machine, tmp_path, check_root=check)
    assert states[-1] == "T"
    assert machine.changes() == []
    assert list(tmp_path.glob(".nfsdb*")) == []
