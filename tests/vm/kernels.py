# SPDX-License-Identifier: Apache-2.0
"""The kernels that the module is tested on, each with headers and toolchain of its own.

One is this machine's (6.1 in Debian 12): its packages linux-image-amd64 and linux-headers-amd64.
The others come from their Debian suites: a build root with the suite's own compiler and headers
(headers of 6.12 want gcc 14, objtool of 7.2 a newer glibc than Debian 12's) and the unpacked image
package. Made once, below archive.cache(); remove a folder there to have it made again.

    PYTHONPATH=tests python3 -m vm.kernels prepare 5.10 6.1-rt 6.12 7.2
    PYTHONPATH=tests python3 -m vm.kernels build 6.12 OUT

The last builds the tree's module for a kernel and puts it into OUT.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import sources
from vm import arm64, debug_kernel, tree_kernel
from vm.archive import ArchiveError, Suite, cache, locked, run, tool

TOP = Path(__file__).resolve().parents[2]
KERNELS = tomllib.loads((TOP / "etrace/spec/kernels.toml").read_text())
SUITES = {name: kernel["suite"] for name, kernel in KERNELS.items()}
SUITE_OF_MACHINE = sources.machine_codename()
MACHINE = next((name for name, suite in SUITES.items() if suite == SUITE_OF_MACHINE), "6.1")
ARM64 = "arm64"  # the machine's release for that architecture
HEADERS = "linux-headers-"
IMAGE = "vmlinuz-"
FLAVOUR = "amd64"
REALTIME = "rt-amd64"
# Of a kernel's name: the module is built as for one without what Debian exports and Linux does not.
UNEXPORTED = "-unexported"
#: of ETRACE_KERNELS -> the kernels that it stands for
GROUPS = {
    "all": [
        *KERNELS,
        *(f"{name}{UNEXPORTED}" for name in KERNELS if "unexported" in KERNELS[name]),
    ],
    "tree": [name for name in tree_kernel.NAMES if not name.endswith(tree_kernel.MODULE)],
    "tree-module": [name for name in tree_kernel.NAMES if name.endswith(tree_kernel.MODULE)],
}
PRETEND_UNEXPORTED = "ETRACE_UNEXPORTED=task_work_add"


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel that can be booted and that modules can be built for."""

    name: str
    release: str  # as uname -r says
    image: Path
    headers: Path  # as seen in `root`
    root: Path = Path("/")  # where its compiler lives
    machine: str = "x86_64"  # as uname -m says
    module_variables: tuple[str, ...] = ()  # make's, for modules
    program_variables: tuple[str, ...] = ()  # make's, for programs of that machine
    busybox: Path = Path("/bin/busybox")  # static, of that machine
    tree: Path | None = (
        None  # etrace is in its own: the folder of its module, if it is not built in
    )
    initrd: Path | None = None  # the guest's root where it is not this machine's

    def build(self, tree: Path, folder: str, *variables: str) -> str:
        """Build the modules of `folder` of `tree`, which lies below `root`; return what it said."""
        inside = Path("/") / tree.relative_to(self.root)
        make = ["make", "-C", str(self.headers), f"M={inside / folder}", "ETRACE_STRICT=y",
                *self.module_variables, *variables, "modules"]  # fmt: skip
        if self.root == Path("/"):
            return run(*make, has_warnings=True)
        # objtool of 7.2 reads /proc; a mount namespace of its own leaves no mount
        script = 'mount -t proc none "$1/proc" && exec chroot "$@"'
        in_root = ("unshare", "-m", "sh", "-c", script, "sh", str(self.root))
        return run(*in_root, *make, has_warnings=True)


def chosen(names: str) -> list[str]:
    """Return the kernels that ETRACE_KERNELS names, groups in full; this machine's without."""
    words = names.split(",") if names else [MACHINE]
    return [kernel for word in words for kernel in GROUPS.get(word, [word])]


def find(name: str) -> Kernel:
    """Return the kernel called `name`, fetched if it is not there yet."""
    if name == MACHINE:
        return _of_machine()
    if name in debug_kernel.CONFIGS:
        return _debug(name)
    if name == ARM64:
        return _arm64()
    if name in tree_kernel.NAMES:
        return _tree(name)
    if name.endswith(UNEXPORTED):
        kernel = find(name.removesuffix(UNEXPORTED))
        variables = (*kernel.module_variables, PRETEND_UNEXPORTED)
        return replace(kernel, name=name, module_variables=variables)
    if name not in SUITES:
        known = ", ".join([*SUITES, *debug_kernel.CONFIGS, *tree_kernel.NAMES, ARM64])
        raise ArchiveError(f"no kernel is called {name!r}: known are {known}")
    return _of_suite(name, SUITES[name], REALTIME if name.endswith("-rt") else FLAVOUR)


def _debug(name: str) -> Kernel:
    folder = debug_kernel.build(name)
    release = (folder / "include/config/kernel.release").read_text().strip()
    return Kernel(name, release, folder / "arch/x86/boot/bzImage", folder)


def _tree(name: str) -> Kernel:
    built = tree_kernel.build(name)
    return Kernel(name, built.release, built.image, built.folder, tree=built.image.parent)


def _of_machine() -> Kernel:
    """Return the newest that can be booted, or else the newest that modules can be built for."""
    pattern = f"{HEADERS}{MACHINE}.*[0-9]-{FLAVOUR}"
    found = sorted(Path("/usr/src").glob(pattern), key=_numbers, reverse=True)
    if not found:
        raise ArchiveError(f"no headers of Linux {MACHINE}: apt-get install linux-headers-amd64")
    images = {path: Path("/boot") / (IMAGE + path.name.removeprefix(HEADERS)) for path in found}
    headers = next((path for path in found if images[path].exists()), found[0])
    return Kernel(MACHINE, headers.name.removeprefix(HEADERS), images[headers], headers)


def _arm64() -> Kernel:
    """Return the machine's release for arm64, with the root of a guest that boots it."""
    built = _arm64_headers()
    suite = Suite(SUITE_OF_MACHINE, ARM64)
    with locked(ARM64):
        image = _made(cache() / "images" / built.release, lambda path: _unpack_image(suite, path))
        userland = _made(
            cache() / "userland" / f"{suite.name}-{ARM64}",
            lambda path: arm64.unpack_userland(suite, path),
        )
        initrd = cache() / "images" / f"{built.release}.initrd"
        init = TOP / "tests/vm/guest/init.sh"
        arm64.make_initrd(userland, image / "lib/modules" / built.release, init, initrd)
    return replace(
        built, image=image / "boot" / (IMAGE + built.release), initrd=initrd,
        busybox=arm64.unpacked(userland, "bin/busybox"), program_variables=arm64.PROGRAM_VARIABLES,
    )  # fmt: skip


def _arm64_headers() -> Kernel:
    """Return the machine's release for arm64 as far as modules can be built for it."""
    machine = _of_machine()
    release = machine.release.replace("amd64", ARM64)
    headers = cache() / "headers" / release
    with locked("headers"):
        _made(headers, lambda path: _unpack_headers(machine.release, release, path))
    return Kernel(
        ARM64, release, Path(), headers / "usr/src" / (HEADERS + release),
        machine=arm64.MACHINE, module_variables=arm64.MODULE_VARIABLES,
    )  # fmt: skip


def _numbers(headers: Path) -> list[int]:
    return [int(word) for word in re.findall(r"\d+", headers.name)]


def _of_suite(name: str, suite_name: str, flavour: str) -> Kernel:
    suite = Suite(suite_name)
    place = suite_name if flavour == FLAVOUR else f"{suite_name}-{flavour}"
    with locked(suite_name):
        root = _made(cache() / "roots" / place, lambda path: _make_root(suite, flavour, path))
        (headers,) = (root / "usr/src").glob(f"{HEADERS}*-{flavour}")
        release = headers.name.removeprefix(HEADERS)
        images = _made(cache() / "images" / release, lambda path: _unpack_image(suite, path))
    return Kernel(name, release, images / "boot" / (IMAGE + release),
                  Path("/usr/src") / headers.name, root)  # fmt: skip


def _made(path: Path, make: Callable[[Path], None]) -> Path:
    """Return `path`, made whole or not at all."""
    if not path.is_dir():
        part = path.with_name(path.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        part.parent.mkdir(parents=True, exist_ok=True)
        make(part)
        part.rename(path)
    return path


def _make_root(suite: Suite, flavour: str, path: Path) -> None:
    suite.bootstrap(["make", "gcc", f"{HEADERS}{flavour}"], path)


def _unpack_image(suite: Suite, path: Path) -> None:
    """Lay out boot/ and lib/modules/ as virtme-ng looks for them."""
    release = path.name.removesuffix(".part")
    suite.update()
    image = f"linux-image-{release}"
    # since 7.x the image package is empty and depends on linux-binary-, linux-modules-, linux-base-
    parts = [p for p in suite.depends(image) if p.startswith("linux-") and p.endswith(release)]
    suite.unpack([image, *parts], path)
    if not (path / "lib").exists():
        (path / "lib").symlink_to("usr/lib")
    run("depmod", "-b", path, release)
    (path / "boot").mkdir(exist_ok=True)
    target = path / "boot" / (IMAGE + release)
    if not target.exists():
        target.hardlink_to(path / "lib/modules" / release / "vmlinuz")


def build_module(kernel: Kernel, into: Path, *variables: str) -> Path:
    """Build the tree's module for `kernel`; return it, copied into the folder `into`."""
    if kernel.tree:
        module = kernel.tree / "etrace.ko"
        return Path(shutil.copy(module, into)) if module.exists() else kernel.image
    return _build(kernel, ("kmod", "native/format"), "etrace", into, *variables)


def build_for_arm64(into: Path) -> Path:
    """Cross-build the tree's module for arm64's kernel of the machine's release."""
    return build_module(_arm64_headers(), into)


def _unpack_headers(ours: str, release: str, path: Path) -> None:
    """Unpack another architecture's headers; the tools in them are this machine's."""
    tool("aarch64-linux-gnu-gcc")
    suite = Suite(SUITE_OF_MACHINE, release.rpartition("-")[2])
    suite.update()
    suite.unpack([HEADERS + release], path)
    for name in ("scripts", "tools"):
        link = path / "usr/src" / (HEADERS + release) / name
        link.unlink()
        link.symlink_to((Path("/usr/src") / (HEADERS + ours) / name).resolve())


def build_helpers(kernel: Kernel, into: Path) -> None:
    """Build the modules that help to test the tree's, put into `into`."""
    _build(kernel, ("tests/vm/modules",), "family hold", into)


def build_control(kernel: Kernel, into: Path) -> Path:
    """Build the module that complains on request."""
    return _build(kernel, ("tests/vm/guest",), "complain", into)


def _build(kernel: Kernel, parts: tuple[str, ...], names: str, into: Path, *variables: str) -> Path:
    """Build the modules `names` of the first of `parts` in a copy of all; return the last one."""
    with _module_tree(kernel) as path:
        tree = Path(path)
        for part in parts:
            shutil.copytree(TOP / part, tree / part, ignore=shutil.ignore_patterns("*.o", "*.ko"))
        said = kernel.build(tree, parts[0], *variables)
        # modpost only warns of a symbol that the kernel does not have
        for word in ("warning:", "WARNING:", "undefined!"):
            if word in said:
                raise ArchiveError(f"{names}: do not build cleanly for {kernel.release}:\n{said}")
        for name in names.split():
            last = Path(shutil.copy(tree / parts[0] / f"{name}.ko", into))
        return last


def _module_tree(kernel: Kernel) -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(
        prefix="etrace-module-", dir=None if kernel.root == Path("/") else kernel.root / "tmp"
    )


def main(argv: list[str]) -> int:
    """Run as a program; see the head of this file."""
    try:
        if argv[:1] == ["prepare"] and len(argv) > 1:
            for name in argv[1:]:
                print(name, find(name).release, flush=True)
        elif argv[:1] == ["build"] and len(argv) == 3:
            Path(argv[2]).mkdir(parents=True, exist_ok=True)
            print(build_module(find(argv[1]), Path(argv[2])))
        else:
            print("usage: kernels.py prepare KERNEL... | build KERNEL OUT", file=sys.stderr)
            return os.EX_USAGE
    except (ArchiveError, OSError) as error:
        print(f"kernels.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
