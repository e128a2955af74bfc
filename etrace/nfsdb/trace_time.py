# SPDX-License-Identifier: Apache-2.0
"""When a build ended: its trace was last written then."""

from __future__ import annotations

from collections.abc import Mapping

from libetrace.image.file import Image


def trace_end_ns(image: Image) -> int | None:
    """Return when the traces of an image were last written, ns since 1970; None when unknown."""
    traces = image.attributes.get("traces")
    known = traces.values() if isinstance(traces, Mapping) else ()
    times = [stamp.get("mtime_ns") for stamp in known if isinstance(stamp, Mapping)]
    return max((time for time in times if isinstance(time, int)), default=None)


def build_end_ns(image: Image) -> int:
    """Return the same, or else when the image was written. OSError."""
    end_ns = trace_end_ns(image)
    return image.path.stat().st_mtime_ns if end_ns is None else end_ns
