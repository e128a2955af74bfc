# SPDX-License-Identifier: Apache-2.0
"""Where files come from: packages, commits, licence tags. No program is run."""
