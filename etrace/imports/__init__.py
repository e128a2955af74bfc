# SPDX-License-Identifier: Apache-2.0
"""Logs of other tools -> event lines (docs/format.md) for `cas parse`."""
