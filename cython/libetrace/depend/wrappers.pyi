# SPDX-License-Identifier: Apache-2.0
from array import array

def wrapping_shells(
    upid: memoryview | array[int],
    parent: memoryview | array[int],
    binary: memoryview | array[int],
    is_shell: memoryview | array[int] | bytes | bytearray,
    out: memoryview | array[int],
) -> None: ...
