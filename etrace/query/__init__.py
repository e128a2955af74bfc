# SPDX-License-Identifier: Apache-2.0
"""Queries of the database, one module for each."""
