# SPDX-License-Identifier: Apache-2.0
"""One text -> where it has secrets: by their form, or by a name or an address in the text.

Places are pairs (begin, end). Every search begins where a word does, or has a limit, so that the
time is linear in the length of a text.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator

from etrace.redaction.names import LISTS, is_harmless, is_key, is_secret, is_strong, keeps
from etrace.redaction.tokens import HOOKS, PEM, PEM_END, token

HIDDEN = "[hidden]"
Span = tuple[int, int]
#: a longer value that can be shown is not searched for names
MAX_OTHER = 256

_RUN = re.compile(r"[^\s\"'`<>]+")
#: schemes whose user without a password is an account, as in ssh://git@host/
ACCOUNT_SCHEMES = (
    "ssh",
    "git",
    "rsync",
    "sftp",
    "scp",
    "svn",
    "hg",
    "bzr",
    "file",
    "ldap",
    "mailto",
)
_PORT = re.compile(r"\d{1,5}(?:[/?#]|$)")
_AUTHORITY = re.compile(r"[^/?#]*@")
_PASSWORD_BEGINS = re.compile(r"([^\s/?#:@\[]*+):")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}$")
#: user:password@host of scp, rsync and drivers of databases
_USER = re.compile(r"([A-Za-z_][\w.+-]{0,63}):(?!\d{1,5}/)(?=[^/])")
_HOST = re.compile(
    r"(?!sha(?:256|384|512)\b)(?!v?\d+(?:\.\d+){0,2}(?:[:/]|$))"
    r"(?:(?:[A-Za-z0-9][\w-]*+(?:\.[\w-]++)*+):(?!:\W)|[A-Za-z0-9][\w-]*+(?:\.[\w-]++)++(?:/|$)"
    r"|localhost(?:/|$)|(?:tcp|unix)\(|\[[0-9a-f:]+\])"
)
#: a name and what separates it from its value
_NAMED = re.compile(
    r"(?<![\w.$-])([\w.$-]++)(\\{0,3}[\"'])?[\]}]?\s{0,3}(?::(?:STRING|INTERNAL|UNINITIALIZED)(?==))?(:=|\+=|\?=|==|=>|=|:(?![:/]))\s{0,3}"
)
#: options whose name goes on with that of a setting
_DEFINES = ("-D", "-P", "-e", "-E", "-S", "-v")
_OPEN = re.compile(r"(?:[\"']?\\{1,3})?([\"'])")
#: rest of a value: up to a blank, a quote, or the next member of a list
_VALUE = re.compile(r"(?:[^\s;&,\"']++|[;&,](?!\s?[\w.-]{1,40}(?: [\w.-]{1,40}){0,3}\s?[=:]))*+")
_SCHEMES = re.compile(
    r"(?i)(?<![\w-])(?:bearer(?:[ \t]{1,4}|%20)([\w.~+/=-]{6,})"
    r"|(?:basic|negotiate|ntlm)(?:[ \t]{1,4}|%20)([A-Za-z0-9+/]{8,}={0,2}))"
)
_OPAQUE = re.compile(r"(?=[^0-9]*[0-9])|(?=[^A-Z]*[A-Z])(?=[^a-z]*[a-z])|[a-z]{20,}")
_NETRC = re.compile(
    r"(?:(?<!\w)|(?<=\\n))(?:login|user)(?:\s|\\n){1,9}[^\s\\]{1,100}(?:\s|\\n){1,9}(?:password|passwd|pass)\s{1,9}"
    r"([^\s\\\"']+)"
)
#: host:port:database:user:password of ~/.pgpass
_PGPASS = re.compile(
    r"(?<![\w.*:-])[\w.*-]{1,80}:(?:\d{2,5}|\*):(?!\d+:)[\w.*-]{1,60}:[\w.*-]{1,60}:([^\s\"'|>:]{4,})"
)
#: of SQL and of programs: PASSWORD 'X', IDENTIFIED BY 'X', send "X\r"
_CALLED = re.compile(
    r"(?i)(?<![\w-])(?:(?:password|identified(?:\s{1,4}with\s{1,4}[\w\"'`]{1,40})?\s{1,4}(?:by|as)"
    r"(?:\s{1,4}password)?)(?:\s{1,4}|\s{0,4}[=(]\s{0,4})"
    r"|send\s{1,4}(?:--\s{1,4})?\\{0,3}(?=[^\"']{0,9}\"[^\"'\\]{1,200}\\{1,4}r))"
    r"([\"'])(?![:,;])([^\"'\\]+)(?:\1|\\)"
)
#: of programs: auth("me", "X"), Credentials("realm", "host", "me", "X"), connect("db:x", "me", "X")
_CALLED_WITH_USER = re.compile(
    r"(?i)(?:(?:auth|login|authentication|authenticate|credentials?)(?:\s?=\s?)?[(\[]\s{0,4}"
    r"(?:[\"'][^\"'\\]{0,80}[\"']\s{0,4},\s{0,4}){0,2}|connect(?:ion)?\(\s{0,4}"
    r"[\"'][^\"'\\]{1,200}[\"']\s{0,4},\s{0,4})"
    r"[\"'][^\"'\\]{0,60}[\"']\s{0,4},\s{0,4}([\"'])([^\"'\\]{4,200})\1"
)
#: of programs: setenv("TOKEN", "X"), and ["token"] "X" of sops; names and values may alternate
_PAIR = re.compile(r"[\"']([\w.-]{1,60})[\"'](?:\s{0,3},\s{0,3}|\]\s{1,3})(?=[\"']([^\"']+))")
#: of XML: <password>X</password>, <add key="password" value="X"/>, <key>password</key><string>X<
_ELEMENT = re.compile(
    r"<(?:\w{1,20}:)?([\w.-]{1,60})(?:\s[^<>]{0,200})?>\s{0,9}([^<>\s][^<>]{0,4000})</"
    r"|\b(?:key|name|property)=\\?[\"']([\w.:-]{1,60})\\?[\"']"
    r"(?:[\s,\\]{1,9}value=\\?[\"']([^\"'<>\\]{1,4000})|\s{0,9}>([^<>]{1,4000})<)"
    r"|<key>([\w .-]{1,60})</key>\s{0,99}<\w{1,20}>([^<>]{1,4000})<"
)
#: user and password of curl's files, of mount.cifs: user = "me:X", username=me%X
_USER_SETTING = re.compile(
    r"(?<![\w-])(?:proxy-)?user(?:name)?\s{0,3}[=:]\s{0,3}\\?[\"']?[\w.@/-]{1,60}[:%]([^\s\"'\\,/:]{6,})"
)
#: of sed: s/@PASSWORD@/X/
_REPLACED = re.compile(
    r"(?:@|__|\{|%|<)([A-Za-z][A-Za-z0-9-]{0,30}(?:_[A-Za-z0-9-]{1,30}){0,4})"
    r"(?:@{1,2}|__|\\?\}{1,2}|%{1,2}|>)([/|#,])([^/|#,]{6,})"
)
_KEY_OF_QUERY = re.compile(r"[?&]key=([\w+%-]{16,})")
#: a line of a file that a script writes: password = X
_SETTING = re.compile(
    r"(?m)(?:^|\\n)[ \t]{0,20}([\w.-]{1,100})[ \t]{0,9}[=:][ \t]{0,9}([^\s\\\"']+)"
    r"[ \t]{0,9}(?=\\n|$)"
)
_LINE = re.compile(r"[^\r\n\"']*")
_WHOLE_LINE = re.compile(r"[^\r\n]*")


def is_opaque(text: str) -> bool:
    """Return whether a text does not look like a word of a language."""
    return _OPAQUE.match(text) is not None and not is_harmless(text)


def merged(spans: Iterable[Span]) -> list[Span]:
    """Return places in order, those that touch or overlap as one."""
    found: list[Span] = []
    for begin, end in sorted(spans):
        if begin >= end:
            continue
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((begin, end))
    return found


def hidden(text: str, spans: Iterable[Span]) -> str:
    """Return a text with HIDDEN in these places, which are merged."""
    parts, at = [], 0
    for begin, end in spans:
        parts += [text[at:begin], HIDDEN]
        at = end
    return "".join(parts) + text[at:]


def without_secrets(text: str) -> str:
    """Return a text without the secrets that it shows by itself."""
    return hidden(text, merged(spans_of(text)))


def spans_of(text: str, *, to_end: bool = False, is_script: bool = False) -> Iterator[Span]:
    """Yield where a text has secrets; they may overlap.

    With `to_end` the text is one argument: the value of a name at its begin goes on over blanks.
    Names in a script are left to those who know its words.
    """
    if "@" in text:
        yield from _users(text)
    if not is_script and (":" in text or "=" in text):
        yield from _named(text, to_end=to_end)
    if len(text) >= 16:
        for match in token().finditer(text):
            yield match.span()
        if "/" in text:
            for match in HOOKS.finditer(text):
                yield match.span(match.lastindex or 0)
    if " " in text or "\t" in text or "%20" in text or ":" in text or "(" in text:
        yield from _authorizations(text)
    if "user" in text and ("=" in text or ":" in text):
        for match in _USER_SETTING.finditer(text):
            if is_opaque(match[1]) and not match[1].isdigit():
                yield match.span(1)
    if (">" in text and "<" in text) or "value=" in text:
        yield from _elements(text)
    if "," in text or "\n" in text or "\\n" in text or "/" in text or "|" in text or "]" in text:
        yield from _assigned(text)
    if "----" in text:
        yield from _keys(text)


def _users(text: str) -> Iterator[Span]:
    """Yield users and passwords of addresses."""
    for run in _RUN.finditer(text):
        word, at = run[0], run.start()
        if "@" not in word:
            continue
        if "://" in word:
            yield from ((at + a, at + b) for a, b in _users_of_urls(word))
        else:
            yield from ((at + a, at + b) for a, b in _users_of_hosts(word))


def _users_of_urls(word: str) -> Iterator[Span]:
    last, begin = word.rindex("@"), word.find("://")
    while 0 <= begin < last:
        at = begin + 3
        user = _PASSWORD_BEGINS.match(word, at)
        if user and user.end() <= last and not _PORT.match(word, user.end()):
            yield at, last
            return
        if strict := _AUTHORITY.match(word, at):
            scheme = _SCHEME.search(word, max(0, begin - 31), begin)
            is_account = scheme and scheme[0].lower().split("+")[-1] in ACCOUNT_SCHEMES
            if not is_account:
                yield at, strict.end() - 1
        begin = word.find("://", at)


def _users_of_hosts(word: str) -> Iterator[Span]:
    last = word.rindex("@")
    if not _HOST.match(word, last + 1):
        return
    method = word.find(":", 3) + 1 if word.startswith((":", "-d:")) else 0  # :pserver:me:x@host
    for begin in {0, word.find("=") + 1, method}:
        user = _USER.match(word, begin)
        if user and user.end() < last and user[1].lower() not in LISTS["no_users"]:
            yield user.end(), last
            return


def _named(text: str, *, to_end: bool) -> Iterator[Span]:
    """Yield values of `name=value`, `name: value`, `"name": "value"` and their lists."""
    at = 0
    while match := _NAMED.search(text, at):
        begin = at = match.end()
        name, sign = match[1], match[3]
        is_header = sign == ":" and _is_header(name)
        quote = _OPEN.match(text, begin)
        is_slash = match.start(1) == 1 and text[0] == "/"  # /pass:X
        is_member = is_slash or quote is not None or text[0] == "{"
        is_loose = sign == ":" and match[2] is None and not is_member
        if not is_header and not _may_keep(name, is_loose=is_loose):
            continue
        if quote:
            begin = quote.end()
            end = text.find(quote[1], begin)
            end = len(text) if end < 0 else end
            while text[end - 1 : end] == "\\" and end > begin:
                end -= 1
        elif is_header:
            is_whole = to_end and not text[: match.start(1)]  # has quotes as others have
            end = _end_of_line(text, begin, _WHOLE_LINE if is_whole else _LINE)
        elif to_end and sign != ":" and not text[: match.start(1)].strip("-/") and match[2] is None:
            end = _end_of_value(text, begin, with_blanks=True)
        else:
            end = _end_of_value(text, begin, with_blanks=False)
        value = text[begin:end]
        if (
            (is_header and not is_harmless(value))
            or (name[:2] != "-D" and keeps(name.lstrip("-"), value))
            or (quote and name.lower() == "key" and len(value) >= 12)
            or _is_define(name, value)
        ):
            yield begin, end
            at = max(at, end)
        elif end - begin > MAX_OTHER or is_header:
            at = max(at, end)  # is not read again for each name in it


def _is_define(name: str, value: str) -> bool:
    """Whether `-DNAME=value` and its like have a secret."""
    return name[:2] in _DEFINES and keeps(name[2:], value)


def _may_keep(name: str, *, is_loose: bool) -> bool:
    """Whether a name can be that of a secret; a loose one, as in `auth:token`, must be strong."""
    if name[:2] == "-D":
        name = name[2:]
    bare = name.lstrip("-")
    if is_loose:
        return is_secret(bare) and is_strong(bare)
    return (
        is_secret(bare) or "key" in bare.lower() or (name[:2] in _DEFINES and is_secret(name[2:]))
    )


def _is_header(name: str) -> bool:
    low = name.lower().lstrip("-").removeprefix("h")
    return (
        low in LISTS["headers"]
        or name.lower().lstrip("-") in LISTS["headers"]
        or (low.startswith("x-") and is_key(name))
        or (
            "-" in name.strip("-")
            and low.endswith(("-token", "-key", "-secret", "-password"))
            and is_secret(name)
        )
    )


def _end_of_line(text: str, begin: int, line: re.Pattern[str]) -> int:
    found = line.match(text, begin)
    return found.end() if found else begin


def _end_of_value(text: str, begin: int, *, with_blanks: bool) -> int:
    end = begin
    while True:
        found = _VALUE.match(text, end)
        end = found.end() if found else end
        if end >= len(text) or text[end] in ";&,":
            return end
        if not with_blanks and text[end] in " \t\r\n\"'":
            return end
        end += 1


def _authorizations(text: str) -> Iterator[Span]:
    for match in _SCHEMES.finditer(text):
        at = match.lastindex or 0
        if is_opaque(match[at]):
            yield match.span(at)
    for match in _CALLED.finditer(text):
        if not is_harmless(match[2]):
            yield match.span(2)
    for match in _CALLED_WITH_USER.finditer(text):
        if not is_harmless(match[2]):
            yield match.span(2)
    for match in _NETRC.finditer(text):
        if not is_harmless(match[1]):
            yield match.span(1)
    for match in _PGPASS.finditer(text):
        if is_opaque(match[1]):
            yield match.span(1)


def _assigned(text: str) -> Iterator[Span]:
    """Yield values that follow a name in a program or a line of a file."""
    for pattern in (_PAIR, _SETTING) if len(text) > 8 else ():
        for match in pattern.finditer(text):
            if is_secret(match[1]) and keeps(match[1], match[2]):
                yield match.span(2)
    for match in _REPLACED.finditer(text):
        if is_secret(match[1]) and is_strong(match[1]) and not is_harmless(match[3]):
            yield match.span(3)
    for match in _KEY_OF_QUERY.finditer(text):
        yield match.span(1)


def _elements(text: str) -> Iterator[Span]:
    """Yield values of the elements of XML whose names are those of secrets."""
    at = 0
    while match := _ELEMENT.search(text, at):
        groups = [i for i in range(1, 8) if match[i] is not None]
        name, value = groups[0], groups[-1]
        if keeps(match[name].replace(" ", ""), match[value]):
            yield match.span(value)
        at = match.start(value)  # a value of an element may be the name of the next


def _keys(text: str) -> Iterator[Span]:
    """Yield private keys in PEM, up to their ends."""
    at = 0
    while match := PEM.search(text, at):
        end = PEM_END.search(text, match.end())
        at = end.end() if end else len(text)
        yield match.start(), at


def parts_of(value: str) -> Iterator[str]:
    """Yield a hidden value, and what of it may be elsewhere by itself: the password of `u:p`."""
    text = value.strip("\"'")
    yield text
    for sign in (":", " ", "%", ","):
        head, found, rest = text.partition(sign)
        if found:
            yield rest.strip()
            if sign == " ":
                yield from text.split()[-1:]
                if head.lower() == "basic":
                    yield from _decoded(rest.strip())


def _decoded(text: str) -> Iterator[str]:
    try:
        plain = base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        return
    yield plain.partition(":")[2]
