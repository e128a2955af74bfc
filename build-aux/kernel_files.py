# SPDX-License-Identifier: Apache-2.0
"""What etrace is in a kernel's own tree: files of this tree -> files of that one, and its hooks.

The sources are those of kmod/, native/format and tests/; kmod/tree has what they lack there. A file
is changed only where it speaks of this tree or of other releases: conditions on the release are
resolved for the one at hand, paths are those of the kernel. Decision 28 says where and why.
"""

from __future__ import annotations

import re
import textwrap
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
KMOD = TOP / "kmod"
OURS = KMOD / "tree"
HOME = "kernel/trace/etrace"
SELFTEST = "tools/testing/selftests/etrace"
UAPI = "include/uapi/linux/etrace.h"
DOCUMENT = "Documentation/trace/etrace.rst"
KERNELS = [
    tuple(map(int, name.split(".")))
    for name in tomllib.loads((TOP / "etrace/spec/kernels.toml").read_text())
    if "-" not in name
]
OLDEST, NEWEST_TESTED = KERNELS[0], KERNELS[-1]
MAX_COLUMNS = 100
# kmod/src/record has these because kbuild compiles no file outside of the module's folder
WRAPPERS = {f"record/{name}": f"etrace_{name}" for name in ("format", "record", "secret", "split")}
PROBE_FOLDERS = {"event", "probe"}
# symbol -> the definition that says that modules get it, and where the kernel would export it
EXPORTS = {
    "task_work_add": ("ETRACE_TASK_WORK_EXPORTED", "kernel/task_work.c"),
    "synchronize_rcu_tasks": ("ETRACE_RCU_TASKS_EXPORTED", "kernel/rcu/tasks.h"),
}
FORMATTER, CORE, PROBES, DOCUMENTS, SELFTESTS = range(1, 6)  # patches of the series


class KernelTreeError(Exception):
    """It cannot be done; nothing was changed. The message says why, the hint what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel's source tree."""

    root: Path
    version: tuple[int, int]
    exported: frozenset[str] = field(default_factory=frozenset)  # keys of EXPORTS


@dataclass(frozen=True, slots=True)
class File:
    """A file that is new in the kernel's tree."""

    content: bytes
    patch: int
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class Hook:
    """Lines that a file of the kernel gets, and before which of its lines."""

    path: str
    lines: str
    patch: int
    place: Callable[[str], int | None]  # offset in the text; None: the file is not as expected

    def put(self, text: str) -> str:
        """Return `text` with the lines, unchanged when it has them."""
        if self.lines in text:
            return text
        at = self.place(text)
        if at is None:
            raise KernelTreeError(
                f"{self.path} is not as expected: no place for\n{self.lines}",
                "put them there by hand, then run this again",
            )
        return text[:at] + self.lines + text[at:]


# ---- what the kernel at hand is ----


def read_kernel(root: Path) -> Kernel:
    """Look at the tree below `root`; refuse what is not a kernel that etrace knows."""
    root = root.resolve()
    makefile = root / "Makefile"
    marks = (makefile, root / "MAINTAINERS", root / "kernel/trace/Kconfig", root / "scripts")
    if not all(mark.exists() for mark in marks):
        raise KernelTreeError(
            f"{root} is not a kernel's source tree", "give the folder that holds its MAINTAINERS"
        )
    text = makefile.read_text()
    numbers = [re.search(rf"^{name} = (\d+)$", text, re.M) for name in ("VERSION", "PATCHLEVEL")]
    if not (numbers[0] and numbers[1]):
        raise KernelTreeError(f"{makefile} does not say which version the kernel is")
    version = (int(numbers[0][1]), int(numbers[1][1]))
    if version < OLDEST:
        raise KernelTreeError(
            f"Linux {version[0]}.{version[1]} is too old",
            f"etrace needs Linux {OLDEST[0]}.{OLDEST[1]} or later",
        )
    exported = {symbol for symbol, (_, path) in EXPORTS.items() if _exports(root / path, symbol)}
    return Kernel(root, version, frozenset(exported))


def _exports(path: Path, symbol: str) -> bool:
    return path.exists() and bool(
        re.search(rf"^EXPORT_SYMBOL(_GPL)?\({symbol}\);", path.read_text(), re.M)
    )


# ---- text ----

REWRITES = (
    ('#include "etrace/control.h"', "#include <linux/etrace.h>"),
    ('#include "etrace/events.h"', '#include "events.h"'),
    ("kmod/include/etrace/control.h", UAPI),
    ("include/etrace/control.h", UAPI),
    ("Shared by the kernel module and every C program of etrace; docs/format.md", DOCUMENT),
    ("docs/format.md", DOCUMENT),
    ("docs/decisions/0025-no-lookups.md. Context", f"{DOCUMENT} says more. Context"),
    ("tests/trace_lines.py", "trace_lines.py"),
    ("tests/events", "programs"),
    (" tests/format/test_etrace_split.py shows it.", ""),
    (" * Rendered from etrace/spec/events.toml by `make generate`: do not edit.\n", ""),
    (" * Used by the kernel module and by every C program of etrace.\n", ""),
    (
        ": the only file that looks at a version. Each branch names the\n *",
        ". Named is",
    ),
    (". Named is first release that has it, and why.", ", as in this one."),
    ("; Kbuild looks", ""),
    ("#include <linux/version.h>\n", ""),
)
# What would send a reader of the kernel's tree to a file that is not there.
FOREIGN = re.compile(
    r"(?<![\w/])(docs|native|kmod|build-aux|tests)/|events\.toml|DKMS|LINUX_VERSION_CODE|"
    r"ETRACE_LINUX_SINCE"
)
SINCE = re.compile(r"^#\s*if (!?)ETRACE_LINUX_SINCE\((\d+), (\d+)\)$")
DIRECTIVE = re.compile(r"^#\s*(if|ifdef|ifndef|elif|else|endif)\b")
SPDX = "SPDX-License-" + "Identifier: "  # in two, or reuse takes it for this file's own
SPDX_BOTH = SPDX + "GPL-2.0-only OR Apache-2.0"
SPDX_UAPI = SPDX + "((GPL-2.0-only WITH Linux-syscall-note) OR Apache-2.0)"


def _known(line: str, version: tuple[int, int]) -> bool | None:
    """Return whether a condition holds in the kernel's tree, None when it is open there too."""
    if line == "#ifdef __KERNEL__":
        return True
    if match := SINCE.match(line):
        return (version >= (int(match[2]), int(match[3]))) != bool(match[1])
    return None


def resolve(text: str, version: tuple[int, int]) -> str:
    """Drop the branches that a kernel of `version` does not compile, and their conditions."""
    kept: list[str] = []
    stack: list[bool | None] = []  # of the conditions around a line: None is left unchanged
    for line in text.splitlines(keepends=True):
        match = DIRECTIVE.match(line)
        word = match[1] if match else ""
        if word in {"if", "ifdef", "ifndef"}:
            stack.append(_known(line.rstrip("\n"), version))
        if word in {"else", "elif"} and stack[-1] is not None:
            if word == "elif":
                raise KernelTreeError(f"cannot resolve {line!r} after a condition on the release")
            stack[-1] = not stack[-1]
            continue
        ours = bool(word) and stack[-1] is not None
        if False not in stack and not ours:
            kept.append(line)
        if word == "endif":
            stack.pop()
    return re.sub(r"\n{3,}", "\n\n", "".join(kept))


def _wrap(text: str, indent: str) -> str:
    lines = textwrap.wrap(text, MAX_COLUMNS - 8 * indent.count("\t") - 3)
    return "".join(f"{indent} * {line}\n" for line in lines)


def wrap_comments(text: str) -> str:
    """Break the lines of comments that are too long for the kernel."""
    lines = text.splitlines(keepends=True)
    wrapped: list[str] = []
    while lines:
        line = lines.pop(0)
        if len(line.rstrip("\n").expandtabs(8)) <= MAX_COLUMNS:
            wrapped.append(line)
        elif match := re.fullmatch(r"(\t*)(\S.*?) /\* (.*) \*/\n", line):
            indent, code, comment = match.groups()
            wrapped.append(f"{indent}/*\n{_wrap(comment, indent)}{indent} */\n{indent}{code}\n")
        elif match := re.fullmatch(r"(\t*) \* (.*)\n", line):
            paragraph = [match[2]]
            while re.match(r"\t* \* \w", lines[0]):
                paragraph.append(lines.pop(0).strip("\t\n *"))
            wrapped.append(_wrap(" ".join(paragraph), match[1]))
        else:
            wrapped.append(line)
    return "".join(wrapped)


def in_kernel(path: Path, version: tuple[int, int]) -> bytes:
    """Return a source file of this tree as it reads in the kernel's."""
    text = path.read_text()
    if SPDX + "GPL-2.0-only" not in text.partition("*/")[0]:
        raise KernelTreeError(f"{path}: its licence line does not offer GPL-2.0-only")
    if path.suffix in {".c", ".h"}:
        text = resolve(text, version)
        text = re.sub(r"^#define ETRACE_LINUX_SINCE\(.*\n\n?", "", text, flags=re.M)
    for old, new in REWRITES:
        text = text.replace(old, new)
    if path.suffix in {".c", ".h"}:
        text = wrap_comments(text)
    if found := FOREIGN.search(text):
        raise KernelTreeError(f"{path} speaks of {found[0]!r}, which the kernel's tree has not")
    return text.encode()


def _uapi(version: tuple[int, int]) -> bytes:
    text = in_kernel(KMOD / "include/etrace/control.h", version).decode()
    text = text.replace("ETRACE_CONTROL_H", "_UAPI_LINUX_ETRACE_H")
    return text.replace(SPDX_BOTH, SPDX_UAPI).encode()


# ---- the module's Makefile: its objects are those of kmod/Kbuild ----


def _object_lines() -> list[str]:
    """Return what kmod/Kbuild says after its obj-m line."""
    text = (KMOD / "Kbuild").read_text()
    _, mark, lines = text.partition("obj-m := etrace.o\n")
    assert mark, "kmod/Kbuild has no obj-m line"
    return lines.splitlines(keepends=True)


def _makefile(kernel: Kernel) -> bytes:
    lines = "".join(_object_lines()).replace("src/", "")
    for wrapper, name in WRAPPERS.items():
        lines = lines.replace(f" {wrapper}.o", f" {name}.o")
    builtin = [define for symbol, (define, _) in EXPORTS.items() if symbol not in kernel.exported]
    exported = [define for symbol, (define, _) in EXPORTS.items() if symbol in kernel.exported]
    head = (OURS / "Makefile.head").read_text()
    condition = re.search(r"# built in.*?endif\n\n", head, re.S)
    assert condition, "Makefile.head has no condition for what is built in"
    flags = "ccflags-y += " + " ".join(f"-D{define}" for define in builtin)
    head = head.replace(condition[0], condition[0].replace("@BUILTIN@", flags) if builtin else "")
    flags = "ccflags-y += " + " ".join(f"-D{define}" for define in exported) + "\n\n"
    return (head.replace("@EXPORTED@\n", flags if exported else "") + lines).encode()


# ---- all of it ----


def files(kernel: Kernel) -> dict[str, File]:
    """Return the new files by their path in the kernel's tree."""
    version = kernel.version
    found = {UAPI: File(_uapi(version), CORE), f"{HOME}/Makefile": File(_makefile(kernel), PROBES)}
    found[f"{HOME}/Kconfig"] = File((OURS / "Kconfig").read_bytes(), PROBES)
    found[DOCUMENT] = File((OURS / "etrace.rst").read_bytes(), DOCUMENTS)
    shared = sorted((TOP / "native/format").glob("*.[ch]"))
    for path in (*shared, KMOD / "include/etrace/events.h"):
        found[f"{HOME}/{path.name}"] = File(in_kernel(path, version), FORMATTER)
    for path in sorted((KMOD / "src").rglob("*.[ch]")):
        name = path.relative_to(KMOD / "src")
        if name.suffix == ".c" and str(name.with_suffix("")) in WRAPPERS:
            continue
        patch = PROBES if name.parts[0] in PROBE_FOLDERS else CORE
        found[f"{HOME}/{name}"] = File(in_kernel(path, version), patch)
    found.update(_selftest(version))
    return dict(sorted(found.items()))


def _selftest(version: tuple[int, int]) -> dict[str, File]:
    ours = OURS / "selftests"
    found = {
        f"{SELFTEST}/{name}": File((ours / name).read_bytes(), SELFTESTS)
        for name in ("Makefile", "config", "settings")
    }
    found[f"{SELFTEST}/.gitignore"] = File((ours / "gitignore").read_bytes(), SELFTESTS)
    found[f"{SELFTEST}/etrace_test.py"] = File(
        (ours / "etrace_test.py").read_bytes(), SELFTESTS, 0o755
    )
    tests = TOP / "tests"
    sources = {path: path.name for path in (tests / "vm/guest").glob("genl.[ch]")}
    sources |= {tests / "vm/guest/ectl.c": "ectl.c", tests / "trace_lines.py": "trace_lines.py"}
    sources |= {path: f"programs/{path.name}" for path in (tests / "events").glob("*.[ch]")}
    for path, name in sources.items():
        found[f"{SELFTEST}/{name}"] = File(in_kernel(path, version), SELFTESTS)
    return found


def _before(line: str) -> Callable[[str], int | None]:
    """Place lines before the last line that begins so."""

    def place(text: str) -> int | None:
        at = text.rfind("\n" + line)
        return None if at < 0 else at + 1

    return place


def _after(line: str) -> Callable[[str], int | None]:
    """Place lines after the only line with this text."""

    def place(text: str) -> int | None:
        at = text.find(f"\n{line}\n")
        return None if at < 0 else at + len(line) + 2

    return place


def _sorted_among(pattern: str, name: str) -> Callable[[str], int | None]:
    """Place lines after what `pattern` finds by the last name before ours; lists have faults."""

    def place(text: str) -> int | None:
        found = list(re.finditer(pattern, text, re.M))
        before = [match for match in found if match[1].upper() < name.upper()]
        if not before:
            return None
        neighbour = max(before, key=lambda match: match[1].upper())
        following = found.index(neighbour) + 1
        return found[following].start() if following < len(found) else None

    return place


def hooks(maintainer: str) -> list[Hook]:
    """Return what files of the kernel get."""
    entry = (OURS / "MAINTAINERS").read_text().replace("@MAINTAINER@", maintainer) + "\n"
    title = r"(?<=\n\n)([0-9A-Z].*)\n(?=[A-Z]:\t)"
    return [
        Hook("kernel/trace/Kconfig", f'source "{HOME}/Kconfig"\n\n', PROBES,
             _before("endif # FTRACE")),
        Hook("kernel/trace/Makefile", "obj-$(CONFIG_ETRACE) += etrace/\n\n", PROBES,
             _before("libftrace-y := ftrace.o")),
        Hook("Documentation/trace/index.rst", "   etrace\n", DOCUMENTS, _after("   events")),
        Hook("MAINTAINERS", entry, DOCUMENTS, _sorted_among(title, entry.partition("\n")[0])),
        Hook("tools/testing/selftests/Makefile", "TARGETS += etrace\n", SELFTESTS,
             _sorted_among(r"^TARGETS \+= (\S+)$", "etrace")),
    ]  # fmt: skip
