# SPDX-License-Identifier: Apache-2.0
"""What an instrumented program says of its functions: sleds, symbols, declarations."""

from __future__ import annotations
