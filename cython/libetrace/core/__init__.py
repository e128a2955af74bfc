# SPDX-License-Identifier: Apache-2.0
"""What all packages need: integers, memory, byte scanning, interned strings, JSON text."""
