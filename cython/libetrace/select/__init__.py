# SPDX-License-Identifier: Apache-2.0
"""Selects rows: globs, conditions on columns, filters."""
