# SPDX-License-Identifier: Apache-2.0
"""Database images: schema, header, columns, checked views of columns, builder of columns."""
