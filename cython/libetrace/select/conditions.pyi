# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any

OPEN_CONDITIONS: dict[str, Callable[[Any], object]]
EXECUTION_CONDITIONS: dict[str, Callable[[Any], object]]
