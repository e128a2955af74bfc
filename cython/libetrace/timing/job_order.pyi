# SPDX-License-Identifier: Apache-2.0
from array import array
from typing import NamedTuple

from libetrace.image.file import Image

class Order(NamedTuple):
    before: array[int]
    after: array[int]
    path: array[int]
    is_read: array[int]

def find_begin(image: Image) -> int: ...
def order_jobs(
    image: Image,
    is_written: bytes | bytearray,
    of_row: array[int],
    parent: array[int],
    depth: array[int],
    start_ns: array[int],
    end_ns: array[int],
    is_chosen: bytes | bytearray | None,
    job_of: array[int] | None,
) -> Order: ...
