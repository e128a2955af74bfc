# SPDX-License-Identifier: Apache-2.0
# Completion for bash: the program itself knows its options, whatever its version.
eval "$(etrace completion bash 2>/dev/null)"
