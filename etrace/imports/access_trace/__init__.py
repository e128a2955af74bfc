# SPDX-License-Identifier: Apache-2.0
"""BuildXL's File Access Trace File: its model, reader and writer (docs/exports.md)."""
