# SPDX-License-Identifier: Apache-2.0
"""What is known of compilers, linkers, archivers and launchers: TOML, and what reads it."""
