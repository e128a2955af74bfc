# SPDX-License-Identifier: Apache-2.0
"""What `import libetrace` gives: database, execution, open file, compilation."""
