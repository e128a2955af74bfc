# SPDX-License-Identifier: Apache-2.0
"""GNU make of other Debian suites, with the C library that it needs; the machine keeps its own."""

from __future__ import annotations

import shutil

from vm.archive import Suite, cache, locked

LIBRARY = "lib/x86_64-linux-gnu"


def words_of(suite_name: str) -> list[str]:
    """Return the words that start the make of a suite."""
    root = cache() / "makes" / suite_name
    with locked("makes"):
        if not root.is_dir():
            suite = Suite(suite_name)
            suite.update()
            part = root.with_name(f"{suite_name}.part")
            shutil.rmtree(part, ignore_errors=True)
            suite.unpack(["make", "libc6"], part)
            part.rename(root)
    (loader,) = root.glob(f"usr/{LIBRARY}/ld-linux-*.so.2")
    return [str(loader), "--library-path", str(root / "usr" / LIBRARY), str(root / "usr/bin/make")]
