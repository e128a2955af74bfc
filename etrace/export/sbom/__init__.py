# SPDX-License-Identifier: Apache-2.0
"""Bills of materials: what went into linked modules, and how, in the formats of the field."""
