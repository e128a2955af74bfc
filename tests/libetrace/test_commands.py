# SPDX-License-Identifier: Apache-2.0
"""Lines of `clang -###`."""

from __future__ import annotations

import libetrace


def test_words_are_quoted_with_backslashes() -> None:
    line = r' "/usr/bin/clang" "-cc1" "-D" "S=\"a b\"" "-o" "x\\y" ""'
    assert libetrace.parse_compiler_triple_hash(line) == [
        "/usr/bin/clang", "-cc1", "-D", 'S="a b"', "-o", "x\\y", "",
    ]  # fmt: skip


def test_a_line_without_quotes_has_no_words() -> None:
    assert libetrace.parse_compiler_triple_hash("Target: x86_64-pc-linux-gnu") == []
