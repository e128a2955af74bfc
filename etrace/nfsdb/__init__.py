# SPDX-License-Identifier: Apache-2.0
"""The database on disk: its image, and JSON in and out."""
