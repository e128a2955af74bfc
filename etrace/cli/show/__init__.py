# SPDX-License-Identifier: Apache-2.0
"""How answers are shown: shapes of entries, lines, JSON, pages."""
