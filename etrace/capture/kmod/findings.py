# SPDX-License-Identifier: Apache-2.0
"""The conditions of the kernel module on this machine, and how to get it, for `etrace doctor`.

Facts come from kernel_lockdown(7), proc(5), capabilities(7) and the kernel's module signing page.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import etrace
from etrace.capture.kmod.host import Host
from etrace.capture.kmod.system import presence
from etrace.errors import CaptureError

SIGN_HINT = (
    "sign it with a key that the machine trusts (mokutil --import), or switch secure boot off"
)
CONFIG_HINT = (
    "use a kernel that has these options (Debian's do), or trace without the module: etrace run"
)
CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_MODULE": 16, "CAP_SYS_ADMIN": 21}
NEEDED_CONFIG = (
    "MODULES", "KPROBES", "FUNCTION_TRACER", "FTRACE_SYSCALLS", "SECURITY_PATH", "NET",
)  # fmt: skip
#: x86 traps at a probed function without it, which the module's probes do not survive
NEEDED_BY_X86 = ("KPROBES_ON_FTRACE",)
X86 = "x86_64"
SWITCH_ON = "switch it on: "
UNSEEN = "then descriptors that an execution or close_range() closes are not recorded"
EFI_HEADER_BYTES = 4


@dataclass(frozen=True, slots=True)
class Check:
    """One condition, its state here, and what to do when it does not hold."""

    name: str
    value: str
    holds: bool
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Kernel:
    """The kernel's own files; tests replace them."""

    lockdown: Path = Path("/sys/kernel/security/lockdown")
    sig_enforce: Path = Path("/sys/module/module/parameters/sig_enforce")
    efi_variables: Path = Path("/sys/firmware/efi/efivars")
    config: Path = Path("/boot") / f"config-{presence.release()}"
    packed_config: Path = Path("/proc/config.gz")
    machine: str = os.uname().machine
    ftrace: Path = Path("/proc/sys/kernel/ftrace_enabled")
    kprobes: Path = Path("/sys/kernel/debug/kprobes/enabled")
    status: Path = Path("/proc/self/status")
    uid_map: Path = Path("/proc/self/uid_map")


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def lockdown(kernel: Kernel) -> Check:
    """Return whether the kernel is locked down against its administrator."""
    text = _text(kernel.lockdown)
    mode = text.partition("[")[2].partition("]")[0] or "none"
    holds = mode == "none"
    hint = (
        "tracefs and kprobes are blocked: switch secure boot off, or boot without lockdown="
        if mode == "confidentiality"
        else SIGN_HINT
    )
    return Check("lockdown", mode, holds, "" if holds else hint)


def secure_boot(kernel: Kernel) -> Check:
    """Return whether the firmware checks signatures; lockdown decides the consequences."""
    variables = list(kernel.efi_variables.glob("SecureBoot-*"))
    if not variables:
        return Check("secure boot", "no", True)
    on = variables[0].read_bytes()[EFI_HEADER_BYTES:] == b"\x01"
    return Check("secure boot", "on" if on else "off", not on, SIGN_HINT if on else "")


def signatures(kernel: Kernel) -> Check:
    """Return whether unsigned modules are refused."""
    enforced = _text(kernel.sig_enforce) == "Y"
    value = "only signed modules are accepted" if enforced else "unsigned modules are accepted"
    return Check("module signatures", value, not enforced, SIGN_HINT if enforced else "")


def capabilities(kernel: Kernel) -> Check:
    """Return whether this process has the rights, and has them outside of a user namespace."""
    fields = dict(
        line.split(":\t", 1) for line in _text(kernel.status).splitlines() if ":\t" in line
    )
    held = int(fields.get("CapEff", "0"), 16)
    missing = [name for name, bit in CAPABILITIES.items() if not held >> bit & 1]
    if missing:
        return Check("rights", f"missing: {', '.join(missing)}", False, "sudo etrace ...")
    if _text(kernel.uid_map).split() != ["0", "0", "4294967295"]:
        return Check(
            "rights", "root of a user namespace only", False, "run it outside of the container"
        )
    return Check("rights", "sufficient", True)


def _missing_options(kernel: Kernel) -> list[str] | None:
    """Return the missing kernel options; None when they are unknown."""
    text = _text(kernel.config)
    if not text and kernel.packed_config.exists():
        import gzip  # noqa: PLC0415  seldom needed

        text = gzip.decompress(kernel.packed_config.read_bytes()).decode(errors="replace")
    if not text:
        return None
    lines = set(text.splitlines())
    needed = NEEDED_CONFIG + (NEEDED_BY_X86 if kernel.machine == X86 else ())
    return [f"CONFIG_{o}" for o in needed if f"CONFIG_{o}=y" not in lines]


def takes_modules(kernel: Kernel) -> bool:
    """Return whether the kernel can load modules at all; True if unknown."""
    return "CONFIG_MODULES" not in (_missing_options(kernel) or ())


def configuration(kernel: Kernel) -> Check:
    """Return whether the kernel was built with the options that the module needs."""
    missing = _missing_options(kernel)
    if missing is None:
        return Check("kernel options", "unknown: no /boot/config, no /proc/config.gz", True)
    if missing:
        return Check("kernel options", f"missing: {', '.join(missing)}", False, CONFIG_HINT)
    return Check("kernel options", "sufficient", True)


def kprobes(kernel: Kernel) -> Check:
    """Return whether probes fire that are set in functions: two switches can be off.

    That of ftrace is for x86: elsewhere a probed function traps.
    """
    switches = [(kernel.kprobes, f"echo 1 > {kernel.kprobes}")]
    if kernel.machine == X86:
        switches.append((kernel.ftrace, "sysctl kernel.ftrace_enabled=1"))
    for place, command in switches:
        if _text(place) == "0":
            return Check("kprobes", f"off: {place} is 0; {UNSEEN}", False, SWITCH_ON + command)
    if not _text(kernel.kprobes):
        return Check("kprobes", f"unknown: {kernel.kprobes} cannot be read", True)
    return Check("kprobes", "on", True)


def module_file(host: Host, kernel: Kernel) -> Check:
    """Return the place of the module, or the kernel for which the found one was built.

    A kernel that takes no modules gets no advice to build one: `configuration` says what to do.
    """
    if source := host.modules.source():
        return Check("module", source, True)
    hint = module_hint(Installation()) if takes_modules(kernel) else ""
    for path in presence.candidates():
        if built := presence.built_for(path):
            return Check("module", f"{path} is for kernel {built}", False, hint)
    return Check("module", f"none for kernel {presence.release()}", False, hint)


def place(name: str, find: Callable[[], Path]) -> Check:
    """Return where something is, which `find` returns or misses with CaptureError."""
    try:
        return Check(name, str(find()), True)
    except CaptureError as error:
        return Check(name, error.message, False, error.hint)


def examine(host: Host, kernel: Kernel) -> Iterator[Check]:
    """Yield every condition of capture by the module.

    Rights and tracefs are of no use where the kernel takes no modules and has none.
    """
    is_of_use = takes_modules(kernel) or bool(host.modules.source())
    for needed in (capabilities(kernel), module_file(host, kernel)):
        yield needed if is_of_use else replace(needed, hint="")
    for check in (lockdown, secure_boot, signatures, configuration, kprobes):
        yield check(kernel)
    mounted = place("tracefs", host.tracefs.mount)
    yield mounted if is_of_use else replace(mounted, hint="")
    yield place("collector", host.collector)


# ---- how to get the module: it depends on how etrace was installed

#: the source distribution; pyproject.toml has the name
ARCHIVE = "linux_build_tracer"
WHAT = "build and install it for this kernel: "


@dataclass(frozen=True, slots=True)
class Installation:
    """The files that show how etrace was installed; tests replace them."""

    root: str = "/"
    package: str = os.path.dirname(os.path.realpath(etrace.__file__))  # noqa: PTH120
    prefix: str = sys.prefix
    release: str = presence.release()

    def has(self, path: str) -> bool:
        """Whether a path below the root is there."""
        return os.path.exists(os.path.join(self.root, path))  # noqa: PTH110, PTH118

    @property
    def is_packaged(self) -> bool:
        """Whether the distribution installed etrace, and not pip or `make build`."""
        return self.package.startswith("/usr/lib")

    def source_trees(self) -> tuple[str, str]:
        """Return where the source tree of etrace may be: around it, or around its `.venv`."""
        return os.path.dirname(self.package), os.path.dirname(self.prefix)  # noqa: PTH120


def install_command(here: Installation, package: str) -> str:
    """Return how to install a package, by its name on Debian, on this distribution."""
    if here.has("usr/bin/dnf"):
        return f"sudo dnf install {package.replace('linux-headers-', 'kernel-devel-')}"
    if here.has("usr/bin/pacman"):
        headers = package.startswith("linux-headers-")
        return f"sudo pacman -S {'linux-headers' if headers else package}"
    return f"sudo apt-get install {package}"


def tree_hint(trees: Iterable[str]) -> str:
    """Return how to build the module in the first of these source trees that has it."""
    for tree in trees:
        if os.path.isfile(f"{tree}/kmod/Kbuild"):  # noqa: PTH113
            return f"{WHAT}cd {tree} && make module && sudo make install-module"
    return ""


def module_hint(here: Installation) -> str:
    """Return what to do to have the module for this kernel: commands to copy."""
    if build := tree_hint(here.source_trees()):
        return build
    headers = install_command(here, f"linux-headers-{here.release}")
    has_headers = here.has(f"lib/modules/{here.release}/build/Makefile")
    if here.has("usr/sbin/etrace-module"):
        if has_headers:
            return f"{WHAT}sudo etrace-module build {here.release}"
        return f"install the kernel's headers, and etrace-dkms builds it: {headers}"
    if here.is_packaged:
        return f"install its package: {install_command(here, 'etrace-dkms')}"
    name = f"{ARCHIVE}-{etrace.__version__}"
    make = f"make -C {name}/kmod modules && sudo make -C {name}/kmod modules_install"
    first = "" if has_headers else f"{headers} && "
    return (
        f"{WHAT}what pip installed has no source of it; get the source archive {name}.tar.gz, then "
        f"{first}tar xf {name}.tar.gz && {make}"
    )
