# SPDX-License-Identifier: Apache-2.0
"""One module a command, each with `declare(parser)` and `run(args) -> int`."""
