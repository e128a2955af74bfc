# SPDX-License-Identifier: Apache-2.0
"""JSON to images and images to JSON, and their side files."""
