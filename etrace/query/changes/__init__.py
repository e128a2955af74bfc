# SPDX-License-Identifier: Apache-2.0
"""What changed from one build to another, and why files were made again."""
