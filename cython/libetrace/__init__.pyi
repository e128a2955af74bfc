# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N812, N813  the names are those of the seed
from libetrace.commands import parse_compiler_triple_hash as parse_compiler_triple_hash
from libetrace.compilation import Compilation as nfsdbEntryCompilationInfo
from libetrace.database import Database as nfsdb
from libetrace.database import Rows as nfsdbFilteredCommandsIter
from libetrace.database import Rows as nfsdbFilteredIter
from libetrace.database import Rows as nfsdbFilteredOpensIter
from libetrace.database import Rows as nfsdbFilteredOpensPathsIter
from libetrace.database import Rows as nfsdbOpensIter
from libetrace.errors import Error as error
from libetrace.execution import Execution as nfsdbEntry
from libetrace.filemap import FileMap as nfsdbFileMap
from libetrace.magic import is_elf_file as is_ELF_file
from libetrace.magic import is_elf_or_llvm_bc_file as is_ELF_or_LLVM_BC_file
from libetrace.magic import is_llvm_bc_file as is_LLVM_BC_file
from libetrace.making import create_nfsdb as create_nfsdb
from libetrace.making import database_version as database_version
from libetrace.making import image_version as image_version
from libetrace.making import parse_nfsdb as parse_nfsdb
from libetrace.open_file import Open as nfsdbEntryOpenfile
from libetrace.patterns import precompute_command_patterns as precompute_command_patterns
from libetrace.values import Cid as nfsdbEntryCid
from libetrace.values import CpuTime as nfsdbCputime
from libetrace.values import Eid as nfsdbEntryEid

__all__ = [
    "create_nfsdb",
    "database_version",
    "error",
    "image_version",
    "is_ELF_file",
    "is_ELF_or_LLVM_BC_file",
    "is_LLVM_BC_file",
    "nfsdb",
    "nfsdbCputime",
    "nfsdbEntry",
    "nfsdbEntryCid",
    "nfsdbEntryCompilationInfo",
    "nfsdbEntryEid",
    "nfsdbEntryOpenfile",
    "nfsdbFileMap",
    "nfsdbFilteredCommandsIter",
    "nfsdbFilteredIter",
    "nfsdbFilteredOpensIter",
    "nfsdbFilteredOpensPathsIter",
    "nfsdbOpensIter",
    "parse_compiler_triple_hash",
    "parse_nfsdb",
    "precompute_command_patterns",
]
