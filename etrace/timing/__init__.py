# SPDX-License-Identifier: Apache-2.0
"""When executions ran, what they waited for, and what would have been with other times or jobs."""
