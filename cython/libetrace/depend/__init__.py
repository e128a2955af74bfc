# SPDX-License-Identifier: Apache-2.0
"""What files were made of: uses of files by time, graph, walk."""
