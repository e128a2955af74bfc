# SPDX-License-Identifier: Apache-2.0
"""From event lines to a database: drives the native parser.

What the output means is in docs/nfsdb-json.md, how the parser works in docs/parser.md.
"""

from etrace.parse.database import parse_trace
from etrace.parse.report import ParseReport, Problem, ProblemKind

__all__ = ["ParseReport", "Problem", "ProblemKind", "parse_trace"]
