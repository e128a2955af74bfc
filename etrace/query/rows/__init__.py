# SPDX-License-Identifier: Apache-2.0
"""What the rows of an image are: kinds, classes, labels, records of values."""

from __future__ import annotations
