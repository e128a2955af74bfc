# SPDX-License-Identifier: Apache-2.0
"""The licence line of a file."""

from __future__ import annotations

import pytest

from etrace.origin.licence import is_expression, tag_in


# REUSE-IgnoreStart
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("// SPDX-License-Identifier: GPL-2.0-only", "GPL-2.0-only"),
        ("/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */",
         "GPL-2.0 WITH Linux-syscall-note"),
        ("# SPDX-License-Identifier: (MIT OR Apache-2.0) AND BSD-3-Clause\r",
         "(MIT OR Apache-2.0) AND BSD-3-Clause"),
        ("<!-- SPDX-License-Identifier: CC0-1.0 -->", "CC0-1.0"),
        ('X = "SPDX-License-Identifier: MIT"', "MIT"),
        ("SPDX-License-Identifier: LicenseRef-Own", "LicenseRef-Own"),
        ("SPDX-License-Identifier:", ""),
        ("SPDX-License-Identifier: MIT OR", ""),
        ("SPDX-License-Identifier: MIT \xff", ""),
        ("SPDX-License-Identifier: (MIT", ""),
        ("no tag", ""),
    ],
)  # fmt: skip
def test_a_tag_is_read(line: str, expected: str) -> None:
    assert tag_in(b"first line\n" + line.encode("latin-1") + b"\nnext MIT\n") == expected


# REUSE-IgnoreEnd


def test_an_exception_belongs_to_one_licence() -> None:
    assert is_expression("(A WITH x) AND B+ OR C WITH y")
    for wrong in ("(A) WITH x", "A WITH x WITH y", "A WITH (x)", "A WITH AND", "(A OR B) WITH x"):
        assert not is_expression(wrong)


def test_an_endless_expression_is_refused() -> None:
    assert not is_expression("(" * 100_000 + "MIT")
    assert not is_expression(" AND ".join(["MIT"] * 10_000))
