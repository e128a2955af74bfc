# SPDX-License-Identifier: Apache-2.0
"""What rows are: kinds of files and executions, temporary files, copies, records of values."""
