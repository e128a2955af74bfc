# SPDX-License-Identifier: Apache-2.0
"""Sessions from START to the undoing of every change."""
