/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Rendered from etrace/redaction/names.toml by `make generate`: do not edit. */
#ifndef ETRACE_SECRET_NAMES_H
#define ETRACE_SECRET_NAMES_H

#define ETRACE_HIDDEN "[hidden]"
#define ETRACE_SECRET_NAME_MAX 120

/* Each sorted as bytes. */
static const char etrace_strong[][15] = {
"accesskey", "activationcode", "apikey", "apitoken", "authkey", "authorization",
"authtoken", "bearer", "cookie", "credential", "credentials", "creds",
"jsessionid", "masterauth", "mnemonic", "passcode", "passphrase", "passwd",
"password", "passwort", "phpsessid", "privatekey", "privkey", "psk",
"requirepass", "secret", "secretkey", "secrets", "seedphrase", "sessionid",
"token", "tokens", "unlockcode", "webhook",
};

static const char etrace_strong_ends[][12] = {
"accesskey", "accountkey", "apikey", "authkey", "credential", "credentials",
"passphrase", "passwd", "password", "privatekey", "privkey", "secret",
"secretkey", "sessionkey", "token",
};

static const char etrace_weak[][10] = {
"auth", "cookies", "cred", "dsn", "jwt", "keypass",
"otp", "pass", "passin", "passout", "pat", "pin",
"pw", "pwd", "sig", "signature", "storepass", "totp",
"userpass", "userpwd",
};

static const char etrace_weak_ends[][5] = {
"pass", "pwd",
};

static const char etrace_no_weak_ends[][7] = {
"all", "band", "by", "com", "en", "first",
"high", "low", "lto", "multi", "opt", "over",
"pre", "render", "single", "sub", "sur", "tres",
"under",
};

static const char etrace_weak_pw_ends[][8] = {
"adminpw", "bindpw", "dbpw", "keypw", "ldappw", "mypw",
"pgpw", "rootpw", "sqlpw", "storepw", "sudopw", "userpw",
};

static const char etrace_tails[][7] = {
"b64", "base64", "plain", "raw", "str", "string",
"text", "value", "values",
};

static const char etrace_keys[][16] = {
"access", "account", "activation", "admin", "aes", "agent",
"api", "app", "application", "auth", "cipher", "client",
"consumer", "crypto", "cryptographic", "decryption", "deploy", "deployment",
"encrypt", "encryption", "function", "functions", "gpg", "hmac",
"ingest", "ingestion", "instrumentation", "integration", "join", "jwt",
"licence", "license", "master", "nuget", "personal", "pgp",
"preshared", "private", "psk", "push", "recovery", "registration",
"release", "root", "rsa", "secret", "service", "session",
"shared", "sign", "signing", "ssh", "ssl", "storage",
"subscription", "symmetric", "tls", "unseal", "upload", "user",
"vault", "vpn", "webhook", "wifi", "wireguard", "write",
};

static const char etrace_key_tails[][8] = {
"base", "content", "data", "id", "pem",
};

static const char etrace_open_keys[][14] = {
"build", "cache", "config", "configuration", "dict", "foreign",
"group", "hash", "hot", "index", "locale", "lookup",
"map", "message", "natural", "object", "partition", "primary",
"pub", "public", "registry", "row", "s3", "sort",
"translation", "unique",
};

static const char etrace_files[][12] = {
"auth", "cookie", "cookies", "credentials", "creds", "key",
"keys",
};

static const char etrace_trivial[][10] = {
"always", "ask", "auto", "char", "default", "disabled",
"empty", "enabled", "env", "fail", "failed", "false",
"inherit", "int", "m", "n", "never", "nil",
"no", "none", "null", "off", "ok", "on",
"optional", "pass", "passed", "prompt", "required", "stdin",
"string", "true", "undefined", "void", "y", "yes",
};

static const char etrace_about[][11] = {
"a", "age", "alg", "algorithm", "audience", "backend",
"bits", "bucket", "buffer", "c", "cache", "cc",
"check", "checker", "class", "classes", "cmd", "command",
"count", "cpp", "dir", "directory", "driver", "enabled",
"endpoint", "env", "expiration", "expire", "expires", "expiry",
"factory", "fd", "file", "files", "folder", "format",
"generator", "h", "handler", "handlers", "header", "headers",
"helper", "hint", "host", "hpp", "html", "impl",
"interval", "issuer", "js", "json", "kind", "kinds",
"len", "length", "lexer", "lib", "libraries", "library",
"libs", "limit", "limits", "list", "lists", "manager",
"map", "mask", "max", "md", "method", "min",
"mode", "module", "modules", "name", "names", "o",
"parser", "path", "paths", "plugin", "policy", "port",
"prefix", "program", "prompt", "provider", "py", "ref",
"reference", "review", "ring", "rotation", "rule", "rules",
"scope", "scopes", "script", "service", "services", "size",
"so", "source", "spec", "stdin", "storage", "store",
"stream", "support", "table", "test", "tests", "through",
"timeout", "toml", "ts", "ttl", "txt", "type",
"types", "uri", "url", "validation", "validator", "version",
"yaml", "yml",
};

static const char etrace_switches[][9] = {
"allow", "ask", "check", "count", "debug", "detect",
"disable", "dump", "enable", "expand", "forward", "generate",
"get", "has", "have", "ignore", "is", "list",
"max", "min", "need", "needs", "no", "num",
"number", "print", "prompt", "require", "reset", "revoke",
"rotate", "scan", "show", "skip", "unused", "verify",
"want", "wants", "werror", "without", "wno",
};

static const char etrace_plain[][15] = {
"author", "cookiejar", "debug-pass", "fpass", "max-token", "max-tokens",
"pass-remarks", "print-pass", "rpass", "rpass-analysis", "rpass-missed", "tokenize",
"tokens",
};

#endif /* ETRACE_SECRET_NAMES_H */
