# SPDX-License-Identifier: Apache-2.0
"""What a build's makefiles declare beside what its commands did."""
