# SPDX-License-Identifier: Apache-2.0
"""Programs that data names (make of a trace, a compiler) run here and nowhere else.

`programs` says which may run at all, `run` runs one so that it can compute, read and print only
(native/sandbox). docs/security.md lists who runs what.
"""
