# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Tests of text over many strings or command lines at once.

A wildcard means what fnmatch(3) without flags means, and is left to select.patterns; a regular
expression is Python's and has to match at the start. A command line is argv joined by blanks.
"""
import re
from array import array

from libc.string cimport memcmp

from libetrace.image.mapped cimport Span, Text

from libetrace.select import windows_paths
from libetrace.select.commands import match_rows
from libetrace.core.errors import FilterError

cdef extern from "<string.h>" nogil:
    void *memmem(const void *text, size_t n_text, const void *part, size_t n_part)


cdef Matcher make_matcher(TextTest test, object value):
    cdef Matcher out = Matcher.__new__(Matcher)
    out.test = test
    if not isinstance(value, (str, bytes)):
        raise FilterError(f"expected a text, not {value!r}")
    text = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    out.needle = text
    if test == MATCHES_EXPRESSION:
        try:
            out.expression = re.compile(text.decode("utf-8", "surrogateescape"), re.DOTALL)
        except re.error as error:
            raise FilterError(f"{value!r} is not a regular expression: {error}") from error
    elif test == MATCHES_WILDCARD:
        from libetrace.select.patterns import PatternSet

        out.expression = PatternSet([text])
    elif test == IS_UNDER:
        out.needle = text.rstrip(b"/")
    return out


cdef bint is_under(const Text *text, const char *folder, Py_ssize_t n_bytes) noexcept nogil:
    if text.len < n_bytes or memcmp(text.data, folder, n_bytes) != 0:
        return False
    return text.len == n_bytes or text.data[n_bytes] == c'/'


cdef class Matcher:
    """One test of text."""

    cdef int narrow_strings(
        self, Mapped columns, const u32 *strings, u64 n, bint negate, u8 *keep
    ) except -1:
        """Lower keep[i] to 0 where string i, a path, fails."""
        if windows_paths.has_windows_paths(columns.image):
            return narrow_windows(self, columns, strings, n, negate, keep)
        if self.test == MATCHES_WILDCARD:
            return narrow_wildcard(self, columns, strings, n, negate, keep)
        if self.test == MATCHES_EXPRESSION:
            return narrow_expression(self, columns, strings, n, negate, keep)
        return narrow_bytes(self, columns, strings, n, negate, keep)

    cdef int narrow_commands(
        self, Mapped columns, const u32 *executions, u64 n, bint negate, u8 *keep
    ) except -1:
        """Lower keep[i] to 0 where the command line of execution i fails; index 0 has none."""
        cdef Span span
        cdef u64 i
        cdef u64 k
        if self.test == MATCHES_WILDCARD:
            return narrow_command_wildcard(self, columns, executions, n, negate, keep)
        for i in range(n):
            if not keep[i]:
                continue
            if columns.executions_index.at[executions[i]] == 0:
                keep[i] = negate
                continue
            columns.span(&columns.executions_argv_start, executions[i], columns.arguments_string.n, &span)
            line = " ".join([columns.decode(columns.arguments_string.at[k])
                             for k in range(span.first, span.last)])
            keep[i] = finds(self, line) != negate
        return 0


cdef int narrow_windows(
    Matcher matcher, Mapped columns, const u32 *strings, u64 n, bint negate, u8 *keep
) except -1:
    cdef u64 i
    value = matcher.needle.decode("utf-8", "surrogateescape")
    if matcher.test == MATCHES_WILDCARD:
        holds = windows_paths.matches_any([value])
    elif matcher.test == MATCHES_EXPRESSION:
        holds = windows_paths.matches_expression(value)
    elif matcher.test == IS_UNDER:
        holds = windows_paths.is_under(value)
    else:
        holds = windows_paths.has_part(value)
    for i in range(n):
        if keep[i]:
            keep[i] = <bint>holds(columns.decode(strings[i])) != negate
    return 0


cdef int narrow_bytes(
    Matcher matcher, Mapped columns, const u32 *strings, u64 n, bint negate, u8 *keep
) except -1:
    cdef const char *needle = matcher.needle
    cdef Py_ssize_t n_needle = len(matcher.needle)
    cdef bint is_folder = matcher.test == IS_UNDER
    cdef Text text
    cdef bint found
    cdef u64 i
    for i in range(n):
        if not keep[i]:
            continue
        text = columns.text(strings[i])
        if text.data == NULL:
            raise columns.broken("string", i, strings[i])
        if is_folder:
            found = is_under(&text, needle, n_needle)
        else:
            found = memmem(text.data, text.len, needle, n_needle) != NULL
        keep[i] = found != negate
    return 0


cdef int narrow_expression(
    Matcher matcher, Mapped columns, const u32 *strings, u64 n, bint negate, u8 *keep
) except -1:
    cdef u64 i
    match = matcher.expression.match
    for i in range(n):
        if keep[i]:
            keep[i] = (match(columns.decode(strings[i])) is not None) != negate
    return 0


cdef int narrow_wildcard(
    Matcher matcher, Mapped columns, const u32 *strings, u64 n, bint negate, u8 *keep
) except -1:
    places = array("Q")
    starts = array("Q", [0])
    texts = array("I")
    cdef u64 i
    for i in range(n):
        if keep[i]:
            places.append(i)
            texts.append(strings[i])
            starts.append(len(texts))
    return ask_patterns(matcher, columns, places, starts, texts, negate, keep)


# Row k of `starts` and `texts` is about keep[places[k]].
cdef int ask_patterns(
    Matcher matcher, Mapped columns, places, starts, texts, bint negate, u8 *keep
) except -1:
    cdef const u8[::1] bits
    cdef const u64[::1] place = places
    cdef Py_ssize_t k
    if not len(places):
        return 0
    bits = match_rows(columns.image, matcher.expression, starts, texts)
    for k in range(place.shape[0]):
        keep[place[k]] = (bits[k] != 0) != negate
    return 0


cdef bint finds(Matcher matcher, str line) except -1:
    if matcher.test == MATCHES_EXPRESSION:
        return matcher.expression.match(line) is not None
    return matcher.needle in line.encode("utf-8", "surrogateescape")


cdef int narrow_command_wildcard(
    Matcher matcher, Mapped columns, const u32 *executions, u64 n, bint negate, u8 *keep
) except -1:
    cdef Span span
    cdef u64 i
    cdef u64 k
    places = array("Q")
    starts = array("Q", [0])
    texts = array("I")
    for i in range(n):
        if not keep[i]:
            continue
        if columns.executions_index.at[executions[i]] == 0:
            keep[i] = negate
            continue
        columns.span(&columns.executions_argv_start, executions[i], columns.arguments_string.n, &span)
        places.append(i)
        for k in range(span.first, span.last):
            texts.append(columns.arguments_string.at[k])
        starts.append(len(texts))
    return ask_patterns(matcher, columns, places, starts, texts, negate, keep)
