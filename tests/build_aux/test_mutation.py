# SPDX-License-Identifier: Apache-2.0
"""build-aux/mutation.py finds a function in C, Cython and Python, and changes the token meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutation import MutationError, Sources, change

C = r"""
#define OPEN(name) { /* no brace
	counts */ name

struct point {
	int x;
};
static struct point *look_up(int key);

static const char *const names[] = {
	"{ look_up(", "}",
};

#ifdef CONFIG_64BIT
static __printf(1, 2) int width(struct point *p, int n) __must_hold(lock)
{
#else
static int width(struct point *p, int n)
{
#endif
	if (n < 1 || p->x < 2) // and < 3
		return n ? '}' : 0; /* < */
	return 2 * n;
}

#ifdef __cplusplus
extern "C" {
#endif
static struct point *look_up(int key) { return key && width(NULL, key) ? &all[key] : NULL; }
"""
CYTHON = '''
cdef extern from "x.h":
    int width(int n)


cdef u32 width_of(const Point *p, u32 n) noexcept nogil  # declared


@cython.boundscheck(False)
cdef inline u32 width_of(const Point *p,
                         u32 n) except? 0 nogil:
    """A width < n: def look_up()."""
    cdef u32 first = <u32>look_up(p)
# a comment at the margin
    if n < 1 or \\
       p.x < <u32>2:

        return 1 if n else 0
    return not n


cdef class Points:
    cdef u32 n

    @property
    def first(self):
        return self.n > 0

    def last(self) -> int: return self.n - 1


def first(points): return points.n > 0
'''


def tree(top: Path) -> Sources:
    for name, text in (
        ("native/a.c", C),
        ("cython/a.pyx", CYTHON),
        ("etrace/a.py", "def b():\n  1"),
    ):
        (top / name).parent.mkdir()
        (top / name).write_text(text)
    return Sources(top)


@pytest.mark.parametrize(
    ("function", "first", "last"),
    [
        ("width", "static __printf(1, 2) int width(", "return 2 * n;\n}"),
        ("look_up", "static struct point *look_up(int key) {", "NULL; }"),
        ("point", "struct point {", "}"),
        ("names", "static const char *const names[] = {", '"}",\n}'),
        ("width_of", "cdef inline u32 width_of(", "return not n"),
        ("Points", "cdef class Points:", "self.n - 1"),
        ("Points.first", "def first(self):", "self.n > 0"),
        ("last", "def last(self) -> int:", "self.n - 1"),
        ("a.py::b", "def b():", "1"),
    ],
)
def test_a_function_is_from_its_signature_to_its_end(
    tmp_path: Path, function: str, first: str, last: str
) -> None:
    sources = tree(tmp_path)
    path, start, end = sources.find(function)
    text = sources.texts[path][start:end]
    assert text.startswith(first)
    assert text.endswith(last)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("gone", "gone: no such function: write its new name, or its file's"),
        ("b.c::width", "b.c::width: no such function: write its new name, or its file's"),
        (
            "first",
            "first: in cython/a.pyx, cython/a.pyx: write FILE::first or Class.first",
        ),
    ],
)
def test_a_function_that_is_not_there_once_is_named(
    tmp_path: Path, function: str, message: str
) -> None:
    with pytest.raises(MutationError, match=r".") as error:
        tree(tmp_path).find(function)
    assert str(error.value) == message


def test_a_change_leaves_the_rest_of_the_file_alone(tmp_path: Path) -> None:
    path, text = tree(tmp_path).changed("width", "2nd <", ">=")
    assert (path, text) == (Path("native/a.c"), C.replace("p->x < 2", "p->x >= 2"))


def test_a_place_that_is_not_there_names_function_and_file(tmp_path: Path) -> None:
    with pytest.raises(MutationError) as error:
        tree(tmp_path).changed("width", "3rd <", ">")
    message = "width (native/a.c): it has 2 of '<': choose another place"
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("text", "place", "becomes", "changed"),
    [
        ("if (a < b)", "<", "<=", "if (a <= b)"),
        ("a <<= b << c < d", "<", ">", "a <<= b << c > d"),
        ('p("a < b"); /* < */ a < b', "<", ">", 'p("a < b"); /* < */ a > b'),
        ("f(const char __user *p)", "__user", "", "f(const char  *p)"),
        ("max(a, b) + max(c)", "2nd max(", "max(0, ", "max(a, b) + max(0, c)"),
        ("if (f(a) == 1) g();", "if", "never", "if (0) g();"),
        ("if (f(a) == 1) g();", "if", "inverted", "if (!(f(a) == 1)) g();"),
        ("while (a) b();", "while", "always", "while (1) b();"),
        ("x = (s64)f(a, 1) > 2 ? b : c;", "?", "never", "x = 0 ? b : c;"),
        ("return a ? b : c;", "?", "always", "return 1 ? b : c;"),
        ("a ? b : c ? d : e;", "2nd ?", "inverted", "a ? b : !(c) ? d : e;"),
        ("return a == b;", "return", "always", "return 1;"),
        ("if (a && f(b) && c || d)", "1st &&", "left operand", "if (a && c || d)"),
        ("if (a && f(b) && c || d)", "2nd &&", "left operand", "if (a && f(b) || d)"),
        ("if (a || b && c) d", "||", "left operand", "if (a) d"),
    ],
)
def test_a_change_of_c(text: str, place: str, becomes: str, changed: str) -> None:
    assert change(text, place, becomes, is_c=True) == changed


@pytest.mark.parametrize(
    ("text", "place", "becomes", "changed"),
    [
        ("if <u32>a < b: c", "<", ">=", "if <u32>a >= b: c"),
        ("<const char *>a < <View **>b", "<", ">", "<const char *>a > <View **>b"),
        ("f(b'<', '''<''', f\"<\", \"\"\"'<\"\"\", c'<') < 1  # <", "<", ">", None),
        ("if a[1:2] == b: c", "if", "never", "if False: c"),
        ("if a:\n  b\nelif c:\n  d", "elif", "inverted", "if a:\n  b\nelif not (c):\n  d"),
        ("x = a if b == c else d\n", "if", "always", "x = a if True else d\n"),
        ("if a if b else c: d", "1st if", "never", "if False: d"),
        ("if a if b else c: d", "2nd if", "never", "if a if False else c: d"),
        ("[a for a in b if c]", "if", "never", "[a for a in b if False]"),
        ("while a: b", "while", "inverted", "while not (a): b"),
        ("return (a or\n  b)\nc", "return", "always", "return True\nc"),
        ("x = a and b[c, d] and e\nf", "1st and", "left operand", "x = a and e\nf"),
        ("x = a and b[c, d] and e\nf", "2nd and", "left operand", "x = a and b[c, d]\nf"),
        ("a if b and c else d", "and", "left operand", "a if b else d"),
        ("if a or b and c:", "or", "left operand", "if a:"),
        ("if a or b or c:", "1st or", "left operand", "if a or c:"),
        ("chosen[-1]", "-1", "0", "chosen[0]"),
    ],
)
def test_a_change_of_cython_and_python(
    text: str, place: str, becomes: str, changed: str | None
) -> None:
    expected = changed or text.replace(" < 1", " > 1")
    assert change(text, place, becomes, is_c=False) == expected


@pytest.mark.parametrize(
    ("place", "becomes", "message"),
    [
        ("<", ">", "it has 2 of '<': write which, as in '2nd <'"),
        ("3rd <", ">", "it has 2 of '<': choose another place"),
        (">", "<", "it has 0 of '>': choose another place"),
        ("1st <", "<", "'1st <' -> '<' changes nothing"),
        ("", "<", "an empty place: write the token to change"),
    ],
)
def test_what_cannot_be_changed_is_an_error(place: str, becomes: str, message: str) -> None:
    with pytest.raises(MutationError) as error:
        change("a < b < c", place, becomes, is_c=True)
    assert str(error.value) == message
