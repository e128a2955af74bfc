# SPDX-License-Identifier: Apache-2.0
"""What would make a build faster or more robust: findings, each with evidence and a prediction."""
