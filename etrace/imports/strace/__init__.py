# SPDX-License-Identifier: Apache-2.0
"""Logs of strace -> event lines (docs/capture-strace.md)."""
