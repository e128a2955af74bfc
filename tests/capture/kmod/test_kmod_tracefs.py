# SPDX-License-Identifier: Apache-2.0
"""The ftrace instance: options written and read back, counts summed, busy instances."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from backends import need_root
from fake_kernel import make_machine

from etrace.capture.kmod.system import tracefs
from etrace.capture.kmod.system.owner import Owner, acting_as
from etrace.capture.kmod.system.tracefs import BufferCounts, Instance, Tracefs
from etrace.errors import CaptureError


@pytest.fixture
def instance(tmp_path: Path) -> Instance:
    made = make_machine(tmp_path / "machine").host.tracefs.instance("etrace")
    made.make()
    return made


def test_options_are_written_and_read_back(instance: Instance) -> None:
    assert instance.changed_options() == ["context-info=1", "overwrite=1"]
    instance.configure(512)
    assert instance.changed_options() == []
    assert (instance.path / "buffer_percent").read_text() == "25"


def test_a_kernel_may_round_the_size_up_but_not_down(instance: Instance) -> None:
    size = instance.path / "buffer_size_kb"
    size.unlink()
    size.symlink_to("/proc/self/nothing")
    with pytest.raises(CaptureError, match="buffer_size_kb: cannot write 512"):
        instance.configure(512)


def test_a_kernel_without_buffer_percent_will_do(instance: Instance) -> None:
    (instance.path / "buffer_percent").unlink()
    instance.configure(512)
    assert instance.changed_options() == []
    assert (instance.path / "buffer_size_kb").read_text() == "512"
    assert not (instance.path / "buffer_percent").exists()


def test_counts_of_all_cpus_are_summed(instance: Instance) -> None:
    for cpu, text in enumerate(
        (
            "entries: 3\noverrun: 4\ncommit overrun: 1\nbytes: 77\ndropped events: 6\n",
            "entries: 5\noverrun: 0\ncommit overrun: 0\noldest event ts: 1.5\ndropped events: 2\n",
        )
    ):
        (instance.path / f"per_cpu/cpu{cpu}/stats").write_text(text)
    assert instance.counts() == BufferCounts(unread=8, overrun=5, dropped=8)


def test_what_a_dead_session_left_is_made_again(instance: Instance) -> None:
    (instance.path / "old").write_text("")
    instance.make()
    assert not (instance.path / "old").exists()


def test_an_instance_in_use_is_waited_for_then_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0

    def busy(path: Path) -> None:
        nonlocal tries
        tries += 1
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    monkeypatch.setattr(tracefs, "REMOVAL_S", 0.2)
    with pytest.raises(CaptureError, match="resource busy") as error:
        Tracefs(lambda: tmp_path, rmdir=busy).instance("etrace").make()
    assert tries > 1
    assert "readers" in error.value.hint


def test_a_tracefs_that_only_root_may_see_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_root()
    (tmp_path / "tracing" / "instances").mkdir(parents=True)
    (tmp_path / "tracing").chmod(0o700)
    monkeypatch.setattr(tracefs, "MOUNT_POINTS", (tmp_path / "tracing",))
    with acting_as(Owner(65534, 65534, ())), pytest.raises(CaptureError, match="only root"):
        tracefs.mount_point()


def test_a_tracefs_that_is_not_mounted_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracefs, "MOUNT_POINTS", (tmp_path / "none",))
    with pytest.raises(CaptureError, match="not mounted") as error:
        tracefs.mount_point()
    assert "mount -t tracefs" in error.value.hint
