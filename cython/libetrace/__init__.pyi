# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N812, N813  the names are those of Samsung CAS
from libetrace.convert.create import create_nfsdb as create_nfsdb
from libetrace.convert.create import database_version as database_version
from libetrace.convert.create import image_version as image_version
from libetrace.convert.create import parse_nfsdb as parse_nfsdb
from libetrace.core.errors import Error as error
from libetrace.db.compilation import Compilation as nfsdbEntryCompilationInfo
from libetrace.db.database import Database as nfsdb
from libetrace.db.database import Rows as nfsdbFilteredCommandsIter
from libetrace.db.database import Rows as nfsdbFilteredIter
from libetrace.db.database import Rows as nfsdbFilteredOpensIter
from libetrace.db.database import Rows as nfsdbFilteredOpensPathsIter
from libetrace.db.database import Rows as nfsdbOpensIter
from libetrace.db.database import __version__ as __version__
from libetrace.db.execution import Execution as nfsdbEntry
from libetrace.db.filemap import FileMap as nfsdbFileMap
from libetrace.db.magic import is_elf_file as is_ELF_file
from libetrace.db.magic import is_elf_or_llvm_bc_file as is_ELF_or_LLVM_BC_file
from libetrace.db.magic import is_llvm_bc_file as is_LLVM_BC_file
from libetrace.db.open_file import Open as nfsdbEntryOpenfile
from libetrace.db.values import Cid as nfsdbEntryCid
from libetrace.db.values import CpuTime as nfsdbCputime
from libetrace.db.values import Eid as nfsdbEntryEid
from libetrace.select.commands import parse_compiler_triple_hash as parse_compiler_triple_hash
from libetrace.select.patterns import precompute_command_patterns as precompute_command_patterns

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
