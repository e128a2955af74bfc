# SPDX-License-Identifier: Apache-2.0
"""Names that are accepted and not shown: those of Samsung CAS, and those of older versions.

Scripts that use them keep working. Help, manual, completion and documents have one name each.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

#: command of `cas` -> its other names
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "linked-modules": ("linked_modules",),
    "compilation-info-for": ("compilation_info_for",),
    "revcomps-for": ("revcomps_for",),
    "ref-files": ("ref_files",),
    "deps": ("deps_for",),
    "rdeps": ("revdeps_for",),
    "moddeps": ("moddeps_for",),
    "revmoddeps": ("revmoddeps_for",),
    "pp": ("postprocess",),
}
#: command -> the part of `cas info` that it prints
FACTS: Mapping[str, str] = {
    "stat": "counts",
    "root_pid": "root-pid",
    "rpid": "root-pid",
    "source_root": "source-root",
    "sroot": "source-root",
    "version": "versions",
    "ver": "versions",
    "config": "configuration",
    "cfg": "configuration",
    "compiler_pattern": "compilers",
    "linker_pattern": "linkers",
}
#: option -> its other names, in every command that has it
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "--db": ("--dbdir", "--dir"),
    "--pipes": ("--with-pipes",),
    "--direct": ("--direct-global",),
    "--exclude-file": ("--exclude",),
    "--exclude-cmd": ("--exclude-command",),
    "--linked": ("--linking",),
    "--compilations": ("-c",),
    "--wrappers": ("--rbm",),
    "--patterns": ("--precompute-command-patterns", "--pcp"),
    "--all-sources": ("--all",),
    "--with-usage": ("--usage",),
    "--with-targets": ("--targets",),
    "--with-json": ("--json",),
    "--debug": ("-d",),
    "--compilers": ("-c",),
    "--all-steps": ("--all",),
    "--what-if-jobs": ("--jobs",),
    "--kernel-module": ("--module",),
    "--by-thread": ("--per-thread",),
    "--function": ("-f",),
    "--node-label": ("-n",),
    "--colour": ("-c",),
    "--sort": ("-s",),
    "--deduce": ("-d",),
    "--edge-label": ("-e",),
}
#: program -> option -> its other names, where another command means something else by them
OWN: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "cas diff": {"--quiet": ("--brief",)},
    "etrace timeline": {"--format": ("--to",)},
    "etrace xray convert": {"--format": ("--to",)},
    "etrace xray join": {"--db": ("--nfsdb",)},
}


def accept(parser: argparse.ArgumentParser) -> None:
    """Let a parser take the other names of its options as well."""
    import argparse

    known = parser._option_string_actions  # argparse has no way to hide one name of an option
    pairs = (pair for t in (OPTIONS, OWN.get(parser.prog, {})) for pair in t.items())
    for name, other in ((name, other) for name, others in pairs for other in others):
        action = known.get(name)
        if isinstance(action, argparse.BooleanOptionalAction):  # it looks at its own names
            for each, value in ((other, True), (f"--no-{other[2:]}", False)):
                known.setdefault(each, argparse._StoreConstAction([each], action.dest, value))
        elif action is not None:
            known.setdefault(other, action)
