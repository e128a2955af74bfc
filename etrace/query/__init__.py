# SPDX-License-Identifier: Apache-2.0
"""Questions to a parsed build, one a file."""
