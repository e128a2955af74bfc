# SPDX-License-Identifier: Apache-2.0
"""Native library of etrace: reads traces and databases; needs the standard library only."""
