# SPDX-License-Identifier: Apache-2.0
# Completion for fish: the program itself knows its options, whatever its version.
etrace completion fish 2>/dev/null | source
