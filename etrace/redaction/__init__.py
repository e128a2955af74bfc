# SPDX-License-Identifier: Apache-2.0
"""Command lines, environments and texts of a build -> the same without secrets."""
