# SPDX-License-Identifier: Apache-2.0
"""What the user asks about: text of options -> rows of an image."""

from __future__ import annotations
