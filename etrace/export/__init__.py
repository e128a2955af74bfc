# SPDX-License-Identifier: Apache-2.0
"""The database in the formats of other tools, one module for each."""
