# SPDX-License-Identifier: Apache-2.0
"""The commands: the only part that prints."""
