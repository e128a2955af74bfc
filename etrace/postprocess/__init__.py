# SPDX-License-Identifier: Apache-2.0
"""The products that `cas pp` adds to the image, one module for each phase."""
