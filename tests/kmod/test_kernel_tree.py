# SPDX-License-Identifier: Apache-2.0
"""etrace in a kernel's own tree: what the script does to a small tree with the files it touches.

tests/vm/test_kernel_tree.py builds and boots real ones.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
SCRIPT = TOP / "build-aux" / "kernel_tree.py"
MAINTAINER = "A Maintainer <a@example.org>"
ENTRY = "ETRACE (EVENT LINES OF A PROCESS TREE)"
HOOKED = (
    "MAINTAINERS",
    "kernel/trace/Kconfig",
    "kernel/trace/Makefile",
    "Documentation/trace/index.rst",
    "tools/testing/selftests/Makefile",
)
FILES = {
    "Makefile": "VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 0\n",
    "MAINTAINERS": "List of maintainers\n\nMaintainers List\n\n"
    "ARM ZONE\nM:\tX <x@y>\nF:\tarch/arm/\n\nMicro SORTED WRONGLY\nM:\tX <x@y>\nF:\tm/\n\n"
    "ERRSEQ ERROR TRACKING\nM:\tX <x@y>\nF:\tlib/errseq.c\n\n"
    "EXT4 FILE SYSTEM\nM:\tX <x@y>\nF:\tfs/ext4/\n\nTHE REST\nM:\tL <l@y>\nF:\t*\n",
    "kernel/trace/Kconfig": 'menuconfig FTRACE\n\tbool "Tracers"\n\nif FTRACE\n\n'
    'source "kernel/trace/rv/Kconfig"\n\nendif # FTRACE\n',
    "kernel/trace/Makefile": "obj-$(CONFIG_RV) += rv/\n\nlibftrace-y := ftrace.o\n",
    "kernel/task_work.c": "int task_work_add(void);\n",
    "kernel/rcu/tasks.h": "EXPORT_SYMBOL_GPL(synchronize_rcu_tasks);\n",
    "Documentation/trace/index.rst": "=====\nTrace\n=====\n\n.. toctree::\n   :maxdepth: 2\n\n"
    "   ftrace\n   events\n   events-kmem\n",
    "tools/testing/selftests/Makefile": "TARGETS += dmabuf-heaps\nTARGETS += efivarfs\n"
    "TARGETS += exec\nTARGETS += zram\n\nall:\n",
    "scripts/checkpatch.pl": "",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Lay out what a kernel's tree has and the script looks at."""
    root = tmp_path / "linux"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def script(*words: str | Path, fails: bool = False) -> str:
    """Run the script; return what it said."""
    done = subprocess.run(
        [sys.executable, SCRIPT, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == int(fails), done.stdout + done.stderr
    return done.stderr if fails else done.stdout


def put(root: Path, **options: bool) -> str:
    return script("put", root, "--maintainer", MAINTAINER, **options)


def content(root: Path) -> dict[str, bytes]:
    """Return all files of a tree but the script's own record and git's."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
        and ".git/" not in f"{path.relative_to(root)}"
        and path.name != ".etrace-kernel-tree"
    }


def objects(root: Path) -> set[str]:
    """Return what the module's Makefile compiles."""
    makefile = (root / "kernel/trace/etrace/Makefile").read_text()
    return set(re.findall(r"([\w/]+)\.o\b", makefile)) - {"etrace"}


def set_version(root: Path, version: int, patchlevel: int) -> None:
    text = f"VERSION = {version}\nPATCHLEVEL = {patchlevel}\n"
    (root / "Makefile").write_text(text)


def test_hooks_are_where_a_maintainer_looks_for_them(tree: Path) -> None:
    said = put(tree)
    assert "in kernel/trace/etrace/" in said
    assert "menuconfig" in said
    assert (
        'source "kernel/trace/etrace/Kconfig"\n\nendif # FTRACE\n'
        in (tree / "kernel/trace/Kconfig").read_text()
    )
    assert "obj-$(CONFIG_ETRACE) += etrace/" in (tree / "kernel/trace/Makefile").read_text()
    assert "   events\n   etrace\n" in (tree / "Documentation/trace/index.rst").read_text()
    selftests = (tree / "tools/testing/selftests/Makefile").read_text()
    assert "efivarfs\nTARGETS += etrace\nTARGETS += exec\n" in selftests
    maintainers = (tree / "MAINTAINERS").read_text()
    assert f"lib/errseq.c\n\n{ENTRY}\nM:\t{MAINTAINER}\n" in maintainers
    assert "F:\ttools/testing/selftests/etrace/\n\nEXT4" in maintainers


def test_every_source_is_compiled_and_every_include_is_there(tree: Path) -> None:
    put(tree)
    home = tree / "kernel/trace/etrace"
    sources = {str(path.relative_to(home).with_suffix("")) for path in home.rglob("*.c")}
    assert sources == objects(tree)
    for path in home.rglob("*.[ch]"):
        for name in re.findall(r'^#include "(.*)"', path.read_text(), re.M):
            assert (home / name).exists(), f"{path.name} includes {name}"


def test_nothing_speaks_of_other_kernels_or_of_our_tree(tree: Path) -> None:
    put(tree)
    text = b"".join(content(tree).values()).decode()
    for word in ("LINUX_VERSION_CODE", "ETRACE_LINUX_SINCE", "__KERNEL__", "Module.symvers"):
        assert word not in text
    assert not re.search(r"(?<![\w/])(docs|native|kmod|tests)/", text)


def test_every_file_has_a_licence_that_a_kernel_takes(tree: Path) -> None:
    put(tree)
    for name, data in content(tree).items():
        if name not in FILES and not name.endswith("settings"):
            first = data.decode().split("\n")[:2]
            assert "SPDX-License-" + "Identifier: " in "".join(first) or name.endswith("config"), (
                name
            )
            assert not re.search(r"Identifier: Apache", "".join(first)), name
    uapi = (tree / "include/uapi/linux/etrace.h").read_text()
    assert "((GPL-2.0-only WITH Linux-syscall-note) OR Apache-2.0)" in uapi


def test_conditions_on_the_release_are_resolved_for_this_one(tree: Path) -> None:
    put(tree)
    compat = tree / "kernel/trace/etrace/compat.h"
    assert "ring_buffer_unlock_commit(buffer, event)" in compat.read_text()
    set_version(tree, 6, 12)
    put(tree)
    assert "ring_buffer_unlock_commit(buffer);" in compat.read_text()
    assert 'trace_array_get_by_name(name, "etrace")' in compat.read_text()


def test_what_is_not_exported_is_called_when_built_in_alone(tree: Path) -> None:
    put(tree)
    makefile = tree / "kernel/trace/etrace/Makefile"
    lines = makefile.read_text()
    condition = "ifeq ($(CONFIG_ETRACE),y)\nccflags-y += -DETRACE_TASK_WORK_EXPORTED\nendif\n"
    assert condition in lines
    assert "ccflags-y += -DETRACE_RCU_TASKS_EXPORTED\n" in lines
    (tree / "kernel/task_work.c").write_text("EXPORT_SYMBOL_GPL(task_work_add);\n")
    put(tree)
    assert "ifeq" not in makefile.read_text()
    assert "-DETRACE_TASK_WORK_EXPORTED -DETRACE_RCU_TASKS_EXPORTED\n" in makefile.read_text()


def test_a_second_run_changes_nothing_and_says_so(tree: Path) -> None:
    put(tree)
    before = content(tree)
    assert put(tree).startswith("nothing to do: ")
    assert content(tree) == before


def test_taken_back_nothing_is_left(tree: Path) -> None:
    before = content(tree)
    put(tree)
    assert "removed" in script("remove", tree)
    assert content(tree) == before
    assert not (tree / "kernel/trace/etrace").exists()
    assert not (tree / ".etrace-kernel-tree").exists()
    assert "has nothing of etrace" in script("remove", tree, fails=True)


def test_another_maintainer_replaces_the_first(tree: Path) -> None:
    put(tree)
    script("put", tree, "--maintainer", "B <b@example.org>")
    assert (tree / "MAINTAINERS").read_text().count(ENTRY) == 1
    script("remove", tree)
    assert (tree / "MAINTAINERS").read_text() == FILES["MAINTAINERS"]


def test_what_is_no_longer_part_of_it_goes(tree: Path) -> None:
    put(tree)
    record = tree / ".etrace-kernel-tree"
    old = tree / "kernel/trace/etrace/old.c"
    old.write_text("")
    digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    name = "kernel/trace/etrace/old.c"
    record.write_text(record.read_text().replace('"files": {', f'"files": {{"{name}": "{digest}",'))
    assert "removed 1 file in kernel/trace/etrace/" in put(tree)
    assert not old.exists()


def refused(tree: Path, words: str) -> None:
    """Check that nothing is changed when it says `words`."""
    before = content(tree)
    assert words in put(tree, fails=True)
    assert content(tree) == before


def test_what_is_not_a_kernel_is_refused(tree: Path) -> None:
    (tree / "MAINTAINERS").unlink()
    refused(tree, "not a kernel's source tree")


def test_an_old_kernel_is_refused(tree: Path) -> None:
    set_version(tree, 4, 19)
    refused(tree, "4.19 is too old")


def test_a_newer_kernel_than_any_tested_is_reported(tree: Path) -> None:
    set_version(tree, 9, 0)
    assert "was not tried in Linux 9.0" in put(tree)


def test_a_file_of_somebody_else_is_refused(tree: Path) -> None:
    (tree / "kernel/trace/etrace").mkdir()
    (tree / "kernel/trace/etrace/state.c").write_text("int mine;\n")
    refused(tree, "is not of etrace")


def test_a_file_changed_by_hand_is_refused(tree: Path) -> None:
    put(tree)
    with (tree / "kernel/trace/etrace/state.c").open("a") as file:
        file.write("/* mine */\n")
    refused(tree, "was changed since")
    assert "was changed since" in script("remove", tree, fails=True)


def test_a_link_out_of_the_tree_is_refused(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tree / "kernel/trace/etrace").symlink_to(tmp_path / "elsewhere")
    refused(tree, "is a symbolic link")
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("name", HOOKED)
def test_a_kernel_with_no_place_for_a_hook_is_refused(tree: Path, name: str) -> None:
    (tree / name).write_text("all: of it was moved\n")
    refused(tree, "is not as expected")


def series(tree: Path, out: Path) -> list[Path]:
    said = script("patches", tree, out, "--maintainer", MAINTAINER)
    return [Path(line) for line in said.splitlines()]


def git(root: Path, *words: str | Path) -> None:
    identity = ["-c", "user.name=T", "-c", "user.email=t@example.org"]
    done = subprocess.run(
        ["git", *identity, *words], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def committed_series(tree: Path, out: Path) -> list[Path]:
    """Make the series of a tree, and commit the tree."""
    patches = series(tree, out)
    git(tree, "init", "-q")
    git(tree, "add", "-f", ".")
    git(tree, "commit", "-q", "-m", "pristine")
    return patches


def test_the_series_gives_what_the_script_puts_there(tree: Path, tmp_path: Path) -> None:
    patches = committed_series(tree, tmp_path / "out")
    git(tree, "am", "-q", *patches[1:])
    applied = content(tree)
    git(tree, "reset", "-q", "--hard", "HEAD~5")
    put(tree)
    assert content(tree) == applied


def test_every_patch_of_the_series_can_be_built(tree: Path, tmp_path: Path) -> None:
    """What kbuild builds is there, whichever patch is the last."""
    patches = committed_series(tree, tmp_path / "out")
    home = tree / "kernel/trace/etrace"
    for patch in patches[1:]:
        git(tree, "am", "-q", patch)
        hooked = "etrace/" in (tree / "kernel/trace/Makefile").read_text()
        assert hooked == (home / "Makefile").exists() == (home / "Kconfig").exists()
        if hooked:
            assert all((home / f"{name}.c").exists() for name in objects(tree))


def test_the_cover_letter_says_what_a_maintainer_asks(tree: Path, tmp_path: Path) -> None:
    letter = series(tree, tmp_path / "out")[0].read_text()
    assert "[PATCH 0/5] tracing: record the process tree of a build" in letter
    assert "***" not in letter
    for heading in ("How it works", "What it costs", "An objection answered"):
        assert heading in letter
    for patch in sorted((tmp_path / "out").glob("*.patch"))[1:]:
        assert f"Signed-off-by: {MAINTAINER}\n" in patch.read_text()


@pytest.mark.parametrize("has", ["patches", "etrace"])
def test_no_series_is_made_twice(tree: Path, tmp_path: Path, has: str) -> None:
    if has == "etrace":
        put(tree)
    else:
        series(tree, tmp_path / "out")
    again = ("patches", tree, tmp_path / "out", "--maintainer", MAINTAINER)
    assert f"has {has} already" in script(*again, fails=True)


def test_nobody_is_named_where_git_knows_nobody(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    assert "MAINTAINER='Name <address>'" in script("put", tree, fails=True)
