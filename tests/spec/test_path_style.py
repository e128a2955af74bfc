# SPDX-License-Identifier: Apache-2.0
"""Names that mean something for the process that uses them."""

from __future__ import annotations

import pytest

from etrace.spec.path_style import POSIX_STYLE


@pytest.mark.parametrize(
    ("name", "path"),
    [
        (b"x", b"/w/x"), (b"/x", b"/x"), (b"/proc/self/cwd/x", b"/w/x"), (b"/proc/self/cwd", b"/w"),
        (b"//proc/self//cwd//x", b"/w/x"), (b"/proc/thread-self/cwd/../x", b"/w/../x"),
        (b"/proc/self/root/x", b"/x"), (b"/proc/self/cwd/proc/self/cwd/x", b"/w/proc/self/cwd/x"),
        (b"/proc/self/root/proc/self/cwd/x", b"/w/x"), (b"/proc/self/cwdx", b"/proc/self/cwdx"),
        (b"/proc/1/cwd/x", b"/proc/1/cwd/x"),
    ],
)  # fmt: skip
def test_a_name_below_the_working_directory_is_joined_to_it(name: bytes, path: bytes) -> None:
    assert POSIX_STYLE.join(b"/w", name) == path
