# SPDX-License-Identifier: Apache-2.0
"""Two databases -> what differs between two builds, as values, tables and a page."""
