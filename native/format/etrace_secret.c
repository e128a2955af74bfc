// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Secrets in variables: etrace_secret.h. Each look at a value has a limit: the time is linear. */
#include "etrace_secret.h"

#include "etrace_secret_names.h"

#ifdef __KERNEL__
#include <linux/string.h>
#else
#include <string.h>
#endif

#define NAME_MAX_BYTES ETRACE_SECRET_NAME_MAX
#define VALUE_LOOK 256 /* bytes of a value, after which it is neither a switch nor a path */
#define RANDOM_LEAST 16

struct word {
	const char *text;
	size_t len;
};

/* The words of a name in small letters: `dbPassword`, `DB_PASSWORD` and `db.password` have two. */
struct words {
	char text[NAME_MAX_BYTES];
	u8 at[NAME_MAX_BYTES];
	u8 len[NAME_MAX_BYTES];
	size_t n;
};

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_alnum(char c)
{
	return is_upper(c) || is_lower(c) || is_digit(c);
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_quote(char c)
{
	return c == '"' || c == '\'';
}

static char lower(char c)
{
	return is_upper(c) ? (char)(c + ('a' - 'A')) : c;
}

/* ---- lists of words ---- */

#define LIST(words) (words)[0], sizeof((words)[0]), sizeof(words) / sizeof((words)[0])

/* Whether a sorted list of words, each in `width` bytes, has a text. */
static bool is_in(const char *list, size_t width, size_t n, const char *text, size_t len)
{
	size_t low = 0;

	if (len >= width)
		return false;
	while (low < n) {
		size_t middle = low + (n - low) / 2;
		const char *word = list + middle * width;
		int order = memcmp(word, text, len);

		if (!order && !word[len])
			return true;
		if (order < 0)
			low = middle + 1;
		else
			n = middle;
	}
	return false;
}

/* The length of the word of a list that a text ends with, 0 for none. */
static size_t ends_in(const char *list, size_t width, size_t n, const char *text, size_t len)
{
	size_t i;

	for (i = 0; i < n; i++) {
		size_t own = strnlen(list + i * width, width);

		if (own <= len && !memcmp(text + len - own, list + i * width, own))
			return own;
	}
	return 0;
}

/* ---- names ---- */

/* The length of the word that begins a text, as _WORDS of names.py matches it; 0 for none. */
static size_t word_length(const char *text, size_t len)
{
	size_t n = 0;

	if (is_digit(text[0])) {
		while (n < len && is_digit(text[n]))
			n++;
		return n;
	}
	while (n < len && is_upper(text[n]))
		n++;
	if (n && (n == len || !is_lower(text[n])))
		return n;
	if (n > 1)
		return n - 1;
	while (n < len && is_lower(text[n]))
		n++;
	return n;
}

static struct word word_of(const struct words *words, size_t i)
{
	return (struct word){ words->text + words->at[i], words->len[i] };
}

static bool is_number(const struct word *word)
{
	return is_digit(word->text[0]);
}

static void split_name(struct words *words, const char *name, size_t len)
{
	size_t at;

	if (len > NAME_MAX_BYTES) {
		name += len - NAME_MAX_BYTES;
		len = NAME_MAX_BYTES;
	}
	words->n = 0;
	for (at = 0; at < len;) {
		size_t n = word_length(name + at, len - at);
		size_t i;

		for (i = 0; i < n; i++)
			words->text[at + i] = lower(name[at + i]);
		if (n) {
			words->at[words->n] = (u8)at;
			words->len[words->n++] = (u8)n;
		}
		at += n ? n : 1;
	}
	while (words->n > 1) {
		struct word last = word_of(words, words->n - 1);

		if (!is_number(&last) && !is_in(LIST(etrace_tails), last.text, last.len))
			break;
		words->n--;
	}
}

/* Two words together: pass_word. */
static bool is_joined(const struct word *a, const struct word *b)
{
	char text[sizeof(etrace_strong[0])];

	if (a->len + b->len >= sizeof(text))
		return false;
	memcpy(text, a->text, a->len);
	memcpy(text + a->len, b->text, b->len);
	return is_in(LIST(etrace_strong), text, a->len + b->len);
}

static bool is_strong(const struct words *words)
{
	size_t i;

	for (i = 0; i < words->n; i++) {
		struct word word = word_of(words, i);
		struct word next;

		if (is_in(LIST(etrace_strong), word.text, word.len) ||
		    ends_in(LIST(etrace_strong_ends), word.text, word.len))
			return true;
		if (i + 1 == words->n)
			break;
		next = word_of(words, i + 1);
		if (is_joined(&word, &next))
			return true;
	}
	return false;
}

static bool is_weak(const struct word *last)
{
	size_t end = ends_in(LIST(etrace_weak_ends), last->text, last->len);

	if (is_in(LIST(etrace_weak), last->text, last->len) ||
	    ends_in(LIST(etrace_weak_pw_ends), last->text, last->len))
		return true;
	return end && !ends_in(LIST(etrace_no_weak_ends), last->text, last->len - end);
}

static bool is_word(const struct word *word, const char *text)
{
	return word->len == strlen(text) && !memcmp(word->text, text, word->len);
}

/* api-key, ssh_key_id; the last `key` counts. */
static bool key_is_secret(const struct words *words)
{
	size_t i;

	for (i = words->n; i-- > 1;) {
		struct word word = word_of(words, i);
		struct word before = word_of(words, i - 1);

		if (is_word(&word, "key"))
			return is_in(LIST(etrace_keys), before.text, before.len);
		if (!is_in(LIST(etrace_key_tails), word.text, word.len))
			return false;
	}
	return false;
}

/* is_secret() of names.py. */
static bool is_secret_name(const struct words *words, const char *name, size_t len)
{
	struct word first, last;
	char plain[sizeof(etrace_plain[0])];
	size_t i;

	if (!words->n)
		return false;
	for (; len && *name == '-'; len--)
		name++;
	while (len && name[len - 1] == '-')
		len--;
	for (i = 0; i < len && i < sizeof(plain); i++)
		plain[i] = lower(name[i]);
	first = word_of(words, 0);
	last = word_of(words, words->n - 1);
	if (i == len && is_in(LIST(etrace_plain), plain, len))
		return false;
	if ((words->n > 1 && is_in(LIST(etrace_switches), first.text, first.len)) ||
	    is_in(LIST(etrace_about), last.text, last.len))
		return false;
	return is_strong(words) || is_weak(&last) || key_is_secret(words);
}

/* is_key() of names.py: the value decides. */
static bool is_key_name(const struct words *words)
{
	struct word last;
	size_t i;

	if (words->n < 2)
		return false;
	last = word_of(words, words->n - 1);
	if (!is_word(&last, "key") && !is_word(&last, "keys"))
		return false;
	for (i = 0; i + 1 < words->n; i++) {
		struct word word = word_of(words, i);

		if (is_in(LIST(etrace_open_keys), word.text, word.len))
			return false;
	}
	return true;
}

/* ---- values ---- */

static bool is_random(const char *value, size_t len)
{
	bool has_digit = false, has_letter = false;
	size_t i;

	for (i = 0; i < len; i++) {
		has_digit |= is_digit(value[i]);
		has_letter |= is_alnum(value[i]) && !is_digit(value[i]);
		if (!is_alnum(value[i]) && !strchr("_+/=.~-", value[i]))
			return false;
	}
	return len >= RANDOM_LEAST && has_digit && has_letter;
}

/* A switch, or nothing that has a letter. */
static bool is_trivial(const char *value, size_t len)
{
	char text[sizeof(etrace_trivial[0])];
	bool has_letter = false, has_digit = false;
	size_t i;

	for (i = 0; i < len; i++) {
		has_digit |= is_digit(value[i]);
		has_letter |= is_alnum(value[i]) && !is_digit(value[i]);
		if (i < sizeof(text))
			text[i] = lower(value[i]);
	}
	if (!has_letter)
		return !has_digit || len <= 3;
	return is_in(LIST(etrace_trivial), text, len);
}

static bool is_path(const char *value, size_t len)
{
	size_t i;

	if (!len || !strchr("/.~", value[0]) || value[len - 1] == '=')
		return false;
	for (i = 0; i < len; i++)
		if (!is_alnum(value[i]) && !strchr("_./+@~-", value[i]))
			return false;
	return true;
}

static bool may_be_file(const struct word *last)
{
	return is_in(LIST(etrace_files), last->text, last->len) ||
	       (last->len >= 3 && !memcmp(last->text + last->len - 3, "pwd", 3));
}

/* keeps() of names.py, `is_loose`: for names with a noun that means a secret and nothing else. */
static bool keeps(const char *name, size_t name_len, const char *value, size_t len, bool is_loose)
{
	struct words words;
	struct word last;

	for (; len && is_quote(*value); len--)
		value++;
	if (len > VALUE_LOOK)
		len = VALUE_LOOK;
	else
		while (len && is_quote(value[len - 1]))
			len--;
	if (!len)
		return false;
	split_name(&words, name, name_len);
	if (!is_secret_name(&words, name, name_len))
		return !is_loose && is_key_name(&words) && is_random(value, len);
	if ((is_loose && !is_strong(&words)) || is_trivial(value, len))
		return false;
	last = word_of(&words, words.n - 1);
	return !(may_be_file(&last) && is_path(value, len));
}

static bool is_of_name(char c)
{
	return is_alnum(c) || c == '_' || c == '.' || c == '-';
}

/* A value in a value ends at a blank or a quote. */
static size_t length_of_inner(const char *text, size_t len)
{
	size_t n;

	for (n = 0; n < len && n < VALUE_LOOK; n++)
		if (is_blank(text[n]) || is_quote(text[n]) || text[n] == ';' || text[n] == ',')
			break;
	return n;
}

/* `NAME=value` or `"name": "value"` around the sign at `at`. */
static bool is_secret_at(const char *text, size_t len, size_t at)
{
	size_t end = at, begin, value = at + 1;
	bool is_quoted;

	while (end && (is_quote(text[end - 1]) || text[end - 1] == '\\'))
		end--;
	is_quoted = end < at;
	for (begin = end; begin && end - begin < NAME_MAX_BYTES && is_of_name(text[begin - 1]);)
		begin--;
	if (end - begin > 2 && text[begin] == '-' && text[begin + 1] == 'D')
		begin += 2;
	while (value < len && value - at < 8 &&
	       (is_blank(text[value]) || is_quote(text[value]) || text[value] == '\\'))
		value++;
	if (begin == end || value == len ||
	    (text[at] == ':' && (text[value] == '/' || text[value] == ':')))
		return false;
	len = length_of_inner(text + value, len - value);
	return keeps(text + begin, end - begin, text + value, len, text[at] == ':' && !is_quoted);
}

static bool starts_at(const char *text, size_t len, size_t at, const char *begin)
{
	size_t n = strlen(begin);

	return len - at >= n && !memcmp(text + at, begin, n);
}

/* Whether a colon in an address begins a port. */
static bool is_port(const char *text, size_t len)
{
	size_t n = 0;

	while (n < len && is_digit(text[n]))
		n++;
	return n && n <= 5 && (n == len || is_blank(text[n]) || strchr("/?#\"'", text[n]));
}

/* `user:password@` or, for HTTP, `user@` after the `://` before `at`. */
static bool has_user_at(const char *text, size_t len, size_t at)
{
	bool is_http = (at >= 7 && starts_at(text, len, at - 7, "http")) ||
		       (at >= 8 && starts_at(text, len, at - 8, "https"));
	bool is_authority = true, has_colon = false;
	size_t i;

	if (len > at + VALUE_LOOK)
		len = at + VALUE_LOOK;
	for (i = at; i < len && !is_blank(text[i]) && !is_quote(text[i]); i++) {
		if (text[i] == '@' && (has_colon || (is_http && is_authority)))
			return true;
		if (text[i] == '/' || text[i] == '?' || text[i] == '#')
			is_authority = false;
		else if (text[i] == ':' && is_authority && !is_port(text + i + 1, len - i - 1))
			has_colon = true;
	}
	return false;
}

static bool has_secret(const char *text, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		if (text[i] == ':' && starts_at(text, len, i, "://")) {
			if (has_user_at(text, len, i + 3))
				return true;
		} else if ((text[i] == '=' || text[i] == ':') && is_secret_at(text, len, i)) {
			return true;
		}
		if (text[i] == 'P' && starts_at(text, len, i, "PRIVATE KEY"))
			return true;
	}
	return false;
}

size_t etrace_hide(char hidden[ETRACE_HIDDEN_MAX], const char *variable, size_t len, bool is_whole)
{
	const char *sign = memchr(variable, '=', len);
	size_t name = sign ? (size_t)(sign - variable) : 0;
	const char *value = sign ? sign + 1 : variable;
	size_t value_len = len - (size_t)(value - variable);

	if (is_whole && !keeps(variable, name, value, value_len, false) &&
	    !has_secret(value, value_len))
		return 0;
	len = (size_t)(value - variable);
	if (len > ETRACE_HIDDEN_MAX - sizeof(ETRACE_HIDDEN))
		len = ETRACE_HIDDEN_MAX - sizeof(ETRACE_HIDDEN);
	memcpy(hidden, variable, len);
	memcpy(hidden + len, ETRACE_HIDDEN, sizeof(ETRACE_HIDDEN) - 1);
	return len + sizeof(ETRACE_HIDDEN) - 1;
}
