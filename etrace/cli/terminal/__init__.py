# SPDX-License-Identifier: Apache-2.0
"""What moves on a terminal: progress bars, a status line."""
