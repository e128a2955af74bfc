# SPDX-License-Identifier: Apache-2.0
"""Operations and levels of access by name and number, as BuildXL has them in 2026.

The numbers are not stable between versions: a file has its own, and a reader goes by name.
"""

from __future__ import annotations

_NAMES = b"""
Unknown CreateFile CreateProcess GetFileAttributes GetFileAttributesEx Process FindFirstFileEx
FindNextFile CreateDirectory DeleteFile MoveFileSource MoveFileDestination
SetFileInformationByHandleSource SetFileInformationByHandleDest ZwSetRenameInformationFileSource
ZwSetRenameInformationFileDest ZwSetLinkInformationFile ZwSetDispositionInformationFile
ZwSetModeInformationFile ZwSetFileNameInformationFileSource ZwSetFileNameInformationFileDest
CopyFileSource CopyFileDestination CreateHardLinkSource CreateHardLinkDestination RemoveDirectory
RemoveDirectorySource NtQueryDirectoryFile ZwQueryDirectoryFile NtCreateFile ZwCreateFile ZwOpenFile
ChangedReadWriteToReadAccess FirstAllowWriteCheckInProcess ProcessRequiresPTrace ReparsePointTarget
ReparsePointTargetCached CreateSymbolicLinkSource MoveFileWithProgressSource
MoveFileWithProgressDest MultipleOperations ProcessExit ProcessExec ProcessTreeCompletedAck Readlink
ReadFile WriteFile CreateHardlinkSource CreateHardlinkDest OpenDirectory Close Probe
ProcessBreakaway
""".split()
#: name -> number
OPERATIONS = {name: number for number, name in enumerate(_NAMES)}

NO_ACCESS, READ, WRITE, PROBE, ENUMERATE = 0, 1, 2, 4, 8
READ_WRITE = READ | WRITE
#: largest first, as .NET takes apart a value of [Flags]
_ACCESSES = (
    (31, b"All"), (16, b"EnumerationProbe"), (8, b"Enumerate"), (4, b"Probe"),
    (3, b"ReadWrite"), (2, b"Write"), (1, b"Read"),
)  # fmt: skip
_MASKS = {name: mask for mask, name in _ACCESSES} | {b"None": NO_ACCESS}


def access_name(mask: int) -> bytes:
    """Return the name of a mask of 0 to 31: `Read, Enumerate`."""
    if mask == NO_ACCESS:
        return b"None"
    words: list[bytes] = []
    for value, name in _ACCESSES:
        if mask & value == value:
            words.append(name)
            mask -= value
    return b", ".join(reversed(words))


def access_mask(name: bytes) -> int | None:
    """Return the mask of a name, None when a word is not known."""
    masks = [_MASKS.get(word.strip()) for word in name.split(b",")]
    total = 0
    for mask in masks:
        if mask is None:
            return None
        total |= mask
    return total
