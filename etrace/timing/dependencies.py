# SPDX-License-Identifier: Apache-2.0
"""A database -> which job had to end before another could begin, because both used one file.

A job is a child of a scheduler such as make; a leaf job has no scheduler below it. Of two uses of
one file, and at least one is a write, the earlier comes first: a read after a write, a write
after a write, a write after a read. Jobs that overlapped in the traced build did not wait for each
other. Devices and directories make no dependency (docs/dependencies.md).
"""

from __future__ import annotations

from array import array
from itertools import compress

from libetrace.depend.path_opens import WRITES, PathOpens
from libetrace.image.devices import device_mask
from libetrace.image.file import Image
from libetrace.timing.job_order import Order, find_begin, order_jobs

from etrace.timing.processes import Processes

#: PathOpens.uses() -> whether a path was written
IS_WRITTEN = bytes(bool(each & WRITES) for each in range(256))


def find_dependencies(
    image: Image,
    processes: Processes,
    *,
    children_of: bytes | bytearray | None = None,
    job_of: array[int] | None = None,
) -> Order:
    """Return the dependencies between jobs, each pair once, by the time of the later use.

    Jobs are the children of processes that `children_of` has a 1 for, where such a process is the
    nearest common ancestor; or those that `job_of` has for each process, NONE for none.
    """
    return order_jobs(
        image, _written_paths(image), processes.of_row, processes.parent, processes.depth,
        processes.start_ns, processes.end_ns, children_of, job_of,
    )  # fmt: skip


def began_ns(image: Image) -> int:
    """Return the time stamp of the begin of the trace, from which executions count."""
    return find_begin(image)


def _written_paths(image: Image) -> bytes:
    """Return for each path whether the build wrote it; devices count as never written."""
    written = bytearray(PathOpens(image).uses().translate(IS_WRITTEN))
    for path in compress(range(len(written)), device_mask(image)):
        written[path] = 0
    return bytes(written)
