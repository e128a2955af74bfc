# SPDX-License-Identifier: Apache-2.0
"""The database image: what it holds, and JSON into and out of it."""
