# SPDX-License-Identifier: Apache-2.0
"""The database in the forms of other tools: one writer a file."""
