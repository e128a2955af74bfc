# SPDX-License-Identifier: Apache-2.0
"""Commands -> the targets that make or ninja ran them for."""
