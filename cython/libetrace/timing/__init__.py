# SPDX-License-Identifier: Apache-2.0
"""When the segments of a build run: their network, what orders jobs, the simulation."""
