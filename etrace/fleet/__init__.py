# SPDX-License-Identifier: Apache-2.0
"""Many builds in one dataset of Parquet files, and questions about all of them (docs/fleet.md)."""
