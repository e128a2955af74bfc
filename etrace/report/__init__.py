# SPDX-License-Identifier: Apache-2.0
"""A database -> one HTML page that shows the build (docs/seeing-a-build.md)."""
