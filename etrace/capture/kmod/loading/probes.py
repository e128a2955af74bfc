# SPDX-License-Identifier: Apache-2.0
"""The losses when a function that the module probes (probe/hooks.c) is missing.

A kernel may lack one. All are missing where somebody has switched the kernel's kprobes off: the
module tries one of its own when a session begins and when it ends.
"""

from __future__ import annotations

LOOKED_UP = "are looked up again after the call"
CLOSED = "descriptors that close_range() closes have no Close"

#: function -> the loss without it
LOST = {
    "security_path_rename": f"names of renames {LOOKED_UP}",
    "security_path_link": f"names of links {LOOKED_UP}",
    "security_path_symlink": f"names of symbolic links {LOOKED_UP}",
    "do_close_on_exec": "descriptors that an execution closes have no Close",
    "__x64_sys_close_range": CLOSED,
    "__ia32_sys_close_range": f"in 32-bit programs {CLOSED}",
    "__arm64_sys_close_range": CLOSED,
    "scm_detach_fds": "descriptors that come in messages are not counted",
    "exit_signals": "the largest memory of processes is not known",
    "task_sched_runtime": "the CPU time of processes is not known",
    "security_sb_mount": f"names of mounts {LOOKED_UP}",
    "security_sb_umount": f"names of unmounts {LOOKED_UP}",
}

#: probed in each session of each machine, PREEMPT_RT or not
ALWAYS = frozenset({"do_close_on_exec", "scm_detach_fds"})
OFF = "kprobes of the kernel are switched off"
OFF_HINT = (
    "sysctl kernel.ftrace_enabled=1 && echo 1 > /sys/kernel/debug/kprobes/enabled, "
    "then trace the build again"
)


def are_off(missing: tuple[str, ...]) -> bool:
    """Whether no kprobe fires, although this kernel has the functions."""
    return set(missing) >= ALWAYS


def lost(missing: tuple[str, ...]) -> tuple[str, ...]:
    """Return the losses as text, each once."""
    texts = (LOST.get(name, f"what {name} shows is lost") for name in missing)
    return tuple(dict.fromkeys(texts))


def told(missing: tuple[str, ...]) -> str:
    """Return the message for the user, empty when nothing is missing."""
    if not missing:
        return ""
    what = "; ".join(lost(missing))
    return (
        f"{OFF}: {what}" if are_off(missing) else f"this kernel lacks {', '.join(missing)}: {what}"
    )
