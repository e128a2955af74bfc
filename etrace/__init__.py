# SPDX-License-Identifier: Apache-2.0
"""See everything a Linux build did, as data."""

__version__ = "1.0.0"
