# SPDX-License-Identifier: Apache-2.0
"""Every program of tests/events under BPF, on this very kernel: the lines are the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from backends import BPF, need_root
from capture.test_events import check
from event_programs import programs


@pytest.mark.root
@pytest.mark.parametrize("program", programs())
def test_the_programs_in_the_kernel_see_what_the_program_says(
    program: str, built: Path, reachable_folder: Path
) -> None:
    need_root()
    check(built / program, reachable_folder, backend=BPF)
