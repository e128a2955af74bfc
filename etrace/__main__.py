# SPDX-License-Identifier: Apache-2.0
"""`python -m etrace`: the command `etrace`.

Unless it is isolated (-I), Python looks first in the working directory and in PYTHONPATH. This
package was found, there or elsewhere; all other modules must be those that are installed.
"""

import os
import sys

sys.argv[0] = "etrace"


def _leave_out_foreign_packages() -> None:
    """Remove what the working directory and the environment put before the installed packages."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    given = {os.path.abspath(path) for path in (".", *named)}  # noqa: PTH100
    places = [os.path.abspath(path) for path in sys.path]  # noqa: PTH100
    n = next((n for n, place in enumerate(places) if place not in given), len(places))
    sys.path[:n] = [place for place in places[:n] if place == home]


if not sys.flags.isolated:
    _leave_out_foreign_packages()

from etrace.cli.main import etrace  # noqa: E402

sys.exit(etrace())
