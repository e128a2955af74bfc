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
    "__version__": ("db.database", "__version__"),
    "error": ("core.errors", "Error"),
    "nfsdb": ("db.database", "Database"),
    "nfsdbEntry": ("db.execution", "Execution"),
    "nfsdbEntryOpenfile": ("db.open_file", "Open"),
    "nfsdbEntryCompilationInfo": ("db.compilation", "Compilation"),
    "nfsdbEntryEid": ("db.values", "Eid"),
    "nfsdbEntryCid": ("db.values", "Cid"),
    "nfsdbCputime": ("db.values", "CpuTime"),
    "nfsdbFileMap": ("db.filemap", "FileMap"),
    "nfsdbFilteredIter": ("db.database", "Rows"),
    "nfsdbOpensIter": ("db.database", "Rows"),
    "nfsdbFilteredOpensPathsIter": ("db.database", "Rows"),
    "nfsdbFilteredOpensIter": ("db.database", "Rows"),
    "nfsdbFilteredCommandsIter": ("db.database", "Rows"),
    "create_nfsdb": ("convert.create", "create_nfsdb"),
    "parse_nfsdb": ("convert.create", "parse_nfsdb"),
    "image_version": ("convert.create", "image_version"),
    "database_version": ("convert.create", "database_version"),
    "precompute_command_patterns": ("select.patterns", "precompute_command_patterns"),
    "parse_compiler_triple_hash": ("select.commands", "parse_compiler_triple_hash"),
    "is_ELF_file": ("db.magic", "is_elf_file"),
    "is_LLVM_BC_file": ("db.magic", "is_llvm_bc_file"),
    "is_ELF_or_LLVM_BC_file": ("db.magic", "is_elf_or_llvm_bc_file"),
}
__all__ = [name for name in _PLACES if not name.startswith("_")]


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
