# SPDX-License-Identifier: Apache-2.0
"""What the makefiles of a build declare: what make prints, build.ninja, dependency files."""
