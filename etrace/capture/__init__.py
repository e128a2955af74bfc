# SPDX-License-Identifier: Apache-2.0
"""Capture backends with one protocol: a command goes in, event lines come out."""
