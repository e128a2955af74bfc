# SPDX-License-Identifier: Apache-2.0
"""`python -m etrace`: the command `etrace`."""

import sys

sys.argv[0] = "etrace"

from etrace.cli.main import etrace  # noqa: E402

sys.exit(etrace())
