# SPDX-License-Identifier: Apache-2.0
"""Executions of compilers -> what they compiled."""
