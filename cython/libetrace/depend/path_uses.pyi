# SPDX-License-Identifier: Apache-2.0
from typing_extensions import Buffer

READS: int
WRITES: int

def path_uses(path: Buffer, mode: Buffer, n_paths: int) -> bytes: ...
