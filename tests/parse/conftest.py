# SPDX-License-Identifier: Apache-2.0
"""Both parsers, one after the other."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import TraceBuilder
from parse.parsing import Parse, Products, parse, parse_by_reference


@pytest.fixture(params=["etrace_parser", "reference"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Parse:
    def parse_trace(trace: TraceBuilder | bytes) -> Products:
        content = trace if isinstance(trace, bytes) else trace.trace()
        if request.param == "reference":
            return parse_by_reference([content])
        return parse([content], tmp_path)

    return parse_trace
