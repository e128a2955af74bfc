# SPDX-License-Identifier: Apache-2.0
from collections.abc import Sequence

def mark_short_calls(
    tsc: Sequence[int], function: Sequence[int], kind: Sequence[int], shortest: int
) -> bytearray: ...
