# SPDX-License-Identifier: Apache-2.0
"""Native library of etrace: reads traces and databases; needs the standard library only.

    import libetrace
    db = libetrace.nfsdb()
    db.load(".nfsdb.img")

Names are loaded when they are first used: the import itself costs next to nothing.
Examples: docs/libetrace.md.
"""

from __future__ import annotations

#: public name -> (submodule, its name there)
_PLACES = {
    "error": ("errors", "Error"),
    "nfsdb": ("database", "Database"),
    "nfsdbEntry": ("execution", "Execution"),
    "nfsdbEntryOpenfile": ("open_file", "Open"),
    "nfsdbEntryCompilationInfo": ("compilation", "Compilation"),
    "nfsdbEntryEid": ("values", "Eid"),
    "nfsdbEntryCid": ("values", "Cid"),
    "nfsdbCputime": ("values", "CpuTime"),
    "nfsdbFileMap": ("filemap", "FileMap"),
    "nfsdbFilteredIter": ("database", "Rows"),
    "nfsdbOpensIter": ("database", "Rows"),
    "nfsdbFilteredOpensPathsIter": ("database", "Rows"),
    "nfsdbFilteredOpensIter": ("database", "Rows"),
    "nfsdbFilteredCommandsIter": ("database", "Rows"),
    "create_nfsdb": ("making", "create_nfsdb"),
    "parse_nfsdb": ("making", "parse_nfsdb"),
    "image_version": ("making", "image_version"),
    "database_version": ("making", "database_version"),
    "precompute_command_patterns": ("patterns", "precompute_command_patterns"),
    "parse_compiler_triple_hash": ("commands", "parse_compiler_triple_hash"),
    "is_ELF_file": ("magic", "is_elf_file"),
    "is_LLVM_BC_file": ("magic", "is_llvm_bc_file"),
    "is_ELF_or_LLVM_BC_file": ("magic", "is_elf_or_llvm_bc_file"),
}
__all__ = list(_PLACES)


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'libetrace' has no attribute {name!r}")
    module, attribute = _PLACES[name]
    # not importlib.import_module: that alone costs more than all the rest
    value = getattr(__import__(f"libetrace.{module}", fromlist=[attribute]), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
