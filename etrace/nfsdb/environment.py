# SPDX-License-Identifier: Apache-2.0
"""An image -> the variables of its processes: of all with `etrace run --env`.

Without, a capture keeps those of make and ninja, and hides secrets in them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from libetrace.image.file import Image

from etrace.spec.builders import is_builder
from etrace.spec.database import NONE


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
    """Return whether the trace has environments of other programs than make and ninja."""
    executions, strangers = image["executions"], set(image["environment"]["upid"])
    if strangers:
        binaries = set(executions["binary"]) - {NONE}
        builders = {path for path in binaries if is_builder(image.path_string(path))}
        strangers -= {
            upid
            for upid, path in zip(executions["upid"], executions["binary"], strict=True)
            if path in builders
        }
    return bool(strangers)
