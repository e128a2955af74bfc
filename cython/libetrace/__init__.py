# SPDX-License-Identifier: Apache-2.0
"""Native library of etrace: reads traces and databases. Imports nothing outside the standard library."""
