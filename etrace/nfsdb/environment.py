# SPDX-License-Identifier: Apache-2.0
"""An image -> the variables of its processes, where they were traced (`etrace run --env`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from libetrace.image.file import Image


def all_variables(image: Image) -> Iterator[bytes]:
    """Yield every `NAME=value` that some process had, each once."""
    for string in set(image["environment"]["string"]):
        yield image.string(string)


def of_processes(image: Image) -> Mapping[int, list[bytes]]:
    """Return upid -> its `NAME=value`, in their order; nothing of a process that had none."""
    found: defaultdict[int, list[bytes]] = defaultdict(list)
    table = image["environment"]
    known = {string: image.string(string) for string in set(table["string"])}
    for upid, string in zip(table["upid"], table["string"], strict=True):
        found[upid].append(known[string])
    return dict(found)


def is_traced(image: Image) -> bool:
    """Whether the trace has the environment of any process."""
    return image["environment"].n_rows > 0
