# SPDX-License-Identifier: Apache-2.0
"""The event format, defined once in events.toml."""
