# SPDX-License-Identifier: Apache-2.0
"""A database -> a timeline of its executions, in the formats of trace viewers."""
