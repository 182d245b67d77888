/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secret.c - secrets known by the name beside them, and private keys in their armour.
 *
 * name = value, "name": "value", <name>value</name>, "the password is value". The name must speak
 * of a secret, and the value must look like one: not a word of code, not a template, not a
 * placeholder. Found at the ':', '=', '>' or "is" between the two.
 */
#include "privacy/privacy_internal.h"

enum { NAME_MAX_BYTES = 48, VALUE_MAX = 512 };

typedef enum meaning { NOTHING, PASSWORD, SECRET } meaning;

static bool contains(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

/* The name in lower case, without what separates its words. */
static bool squeeze(rt_str name, char out[NAME_MAX_BYTES + 1])
{
    size_t n = 0;
    for (size_t i = 0; i < name.len && n < NAME_MAX_BYTES; i++)
        if (is_class(name.ptr[i], IS_ALNUM))
            out[n++] = lower(name.ptr[i]);
    out[n] = '\0';
    return n >= 3;
}

static bool ends_with_any(const char *text, size_t len, const char *const *ends, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t n = strlen(ends[i]);
        if (n <= len && ends[i][n - 1] == text[len - 1] && memcmp(text + len - n, ends[i], n) == 0)
            return true;
    }
    return false;
}

/* Most names have none of these in them: a cheap "no". */
static bool may_be_secret(rt_str name)
{
    static const char stems[][4] = { "pas", "pwd", "sec", "tok", "key", "aut",
                                     "cre", "bea", "jwt", "ses", "con", "mot" };
#define BIT(letter) (UINT32_C(1) << ((letter) - 'a'))
    static const uint32_t firsts = BIT('p') | BIT('s') | BIT('t') | BIT('k') | BIT('a') | BIT('c') |
                                   BIT('b') | BIT('j') | BIT('m');
#undef BIT
    for (size_t i = 0; i + 3 <= name.len; i++) {
        char a = lower(name.ptr[i]);
        if (!is_class(a, IS_LOWER) || !(firsts >> (a - 'a') & 1))
            continue;
        char b = lower(name.ptr[i + 1]), c = lower(name.ptr[i + 2]);
        for (size_t k = 0; k < RT_COUNT(stems); k++)
            if (stems[k][0] == a && stems[k][1] == b && stems[k][2] == c)
                return true;
    }
    return false;
}

static meaning meaning_of(rt_str name)
{
    static const char *const harmless[] = {
        "public",    "tokeniz",      "primarykey",    "foreignkey",     "keyboard",
        "keyword",   "csrf",         "xsrf",          "maxtoken",       "mintoken",
        "secretary", "tokencount",   "cachekey",      "nexttoken",      "pagetoken",
        "synctoken", "continuation", "passwordreset", "forgotpassword", "pwdlast",
    };
    static const char *const about[] = {
        "id",          "name",    "path",  "file",  "url",      "uri",  "endpoint", "field",
        "length",      "expires", "ttl",   "type",  "size",     "hint", "label",    "count",
        "policy",      "prompt",  "input", "regex", "error",    "at",   "expiry",   "age",
        "placeholder", "limit",   "title", "dir",   "required",
    };
    static const char *const passwords[] = { "password",   "passwd",     "passphrase", "passwort",
                                             "contraseña", "motdepasse", "dbpass",     "userpass",
                                             "pwd",        "passcode",   "mypass",     "rootpass",
                                             "adminpass",  "smtppass",   "mailpass",   "sshpass" };
    static const char *const secrets[] = {
        "apikey",
        "apisecret",
        "secretkey",
        "secret",
        "token",
        "accesskey",
        "privatekey",
        "authkey",
        "clientsecret",
        "credential",
        "credentials",
        "accountkey",
        "sharedaccesskey",
        "encryptionkey",
        "signingkey",
        "masterkey",
        "authorization",
        "bearer",
        "sharedsecret",
        "webhooksecret",
        "sessionkey",
        "accesstoken",
        "appkey",
        "apppassword",
        "sastoken",
        "subscriptionkey",
        "servicekey",
        "storagekey",
        "keysecret",
        "apikeys",
        "auth",
        "secretaccesskey",
        "hmackey",
        "deploykey",
        "serverkey",
        "connectionstring",
        "jwt",
        "sessionid",
        "sessiontoken",
        "cookiesecret",
        "licensekey",
        "keybase64",
        "consumerkey",
        "securitykey",
        "xapikey",
        "apitoken",
    };
    char text[NAME_MAX_BYTES + 1];
    meaning what = NOTHING;
    if (!may_be_secret(name) || !squeeze(name, text))
        return NOTHING;
    size_t len = strlen(text);
    if (ends_with_any(text, len, passwords, RT_COUNT(passwords)) || rt_str_eq_c(name, "pass"))
        what = PASSWORD;
    else if (ends_with_any(text, len, secrets, RT_COUNT(secrets)))
        what = SECRET;
    else if (ends_with_any(text, len, about, RT_COUNT(about)))
        return NOTHING;
    /* "aws_secret_access_key_id" is about a key, "token_prod" is one. */
    else if (contains(text, "secret") || contains(text, "apikey") || contains(text, "password") ||
             (contains(text, "token") && !contains(text, "tokens")))
        what = SECRET;
    for (size_t i = 0; what != NOTHING && i < RT_COUNT(harmless); i++)
        if (contains(text, harmless[i]))
            return NOTHING;
    return what;
}

/* ---- values ---- */

static bool has_any(rt_str value, const char *const *parts, size_t count)
{
    char text[65];
    size_t n = RT_MIN(value.len, sizeof(text) - 1);
    for (size_t i = 0; i < n; i++)
        text[i] = lower(value.ptr[i]);
    text[n] = '\0';
    for (size_t i = 0; i < count; i++)
        if (strstr(text, parts[i]))
            return true;
    return false;
}

/* Templates, code that fetches it, and what people write where a secret goes. */
static bool is_placeholder(rt_str value)
{
    static const char *const signs[] = {
        "${",    "{{",          "$(",       "<%",          "%(",       "xxxx",    "****",
        "....",  "process.env", "environ",  "getenv",      "env.",     "config.", "settings.",
        "self.", "this.",       "request.", "secrets.",    "vault:",   "ref:",    "::",
        "->",    "_here",       "-here",    "placeholder", "redacted", "change",
    };
    static const char *const words[] = {
        "your", "insert", "example_", "dummy",    "null",   "undefined",
        "none", "todo",   "replace",  "function", "params", "localhost",
    };
    size_t digits = 0;
    if (value.len == 0 || is_one_of(value.ptr[0], "$<{[(%&*@") ||
        (value.ptr[0] == '/' && memchr(value.ptr + 1, '/', value.len - 1)) ||
        rt_str_starts(value, RT_STR("./")) || rt_str_starts(value, RT_STR("http")))
        return true;
    for (size_t i = 0; i < value.len; i++)
        digits += is_class(value.ptr[i], IS_DIGIT);
    /* Among many digits a short word is there by chance. */
    return has_any(value, signs, RT_COUNT(signs)) ||
           (digits < 3 && has_any(value, words, RT_COUNT(words)));
}

typedef struct makeup {
    size_t digits, lower, upper, marks;
    size_t classes;
} makeup;

static makeup makeup_of(rt_str value)
{
    makeup m = { 0 };
    for (size_t i = 0; i < value.len; i++) {
        m.digits += is_class(value.ptr[i], IS_DIGIT);
        m.lower += is_class(value.ptr[i], IS_LOWER);
        m.upper += is_class(value.ptr[i], IS_UPPER);
        m.marks += !is_class(value.ptr[i], IS_WORD);
    }
    m.classes = !!m.digits + !!m.lower + !!m.upper + !!m.marks;
    return m;
}

/* snake_case, dotted.names, call(): code that fetches the secret, not the secret. */
static bool is_code(rt_str value, const makeup *m)
{
    bool is_name = m->digits == 0;
    for (size_t i = 0; i < value.len && is_name; i++)
        is_name = is_class(value.ptr[i], IS_ALNUM) || is_one_of(value.ptr[i], "_.-[]");
    return is_name || memchr(value.ptr, '(', value.len) != NULL;
}

static int score_password(rt_str value, const makeup *m, bool is_quoted)
{
    if (value.len < 6 || value.len > 128)
        return 0;
    if (!is_quoted && (is_code(value, m) || m->classes < 2 || value.len < 7))
        return 0;
    if (memchr(value.ptr, ' ', value.len) || (m->classes == 1 && value.len < 8))
        return 0;
    if (m->digits == value.len)
        return is_quoted ? 52 : 0;
    return m->classes >= 3 ? 78 : m->classes == 2 ? 66 : is_code(value, m) ? 40 : 52;
}

static int score_secret(rt_str value, const makeup *m)
{
    double entropy = privacy_entropy(value);
    if (value.len < 12 || m->digits == 0 || m->digits == value.len || is_code(value, m) ||
        memchr(value.ptr, ' ', value.len))
        return 0;
    if (value.len < 16)
        return m->classes >= 3 && entropy > 3.0 ? 56 : 0;
    return entropy >= 3.5 ? 82 : entropy >= 3.0 ? 62 : 0;
}

static int score_value(meaning what, rt_str value, bool is_quoted)
{
    if (what == NOTHING || is_placeholder(value) || privacy_entropy(value) < 1.8)
        return 0;
    makeup m = makeup_of(value);
    return what == PASSWORD ? score_password(value, &m, is_quoted) : score_secret(value, &m);
}

/* ---- finding name and value ---- */

static bool is_name_byte(char c)
{
    return is_class(c, IS_ALNUM) || c == '_' || c == '-' || c == '.';
}

/* The name that ends before i, with one blank allowed inside: "API Key". */
static rt_str name_before(rt_str text, size_t i)
{
    size_t least = i > NAME_MAX_BYTES ? i - NAME_MAX_BYTES : 0, end = i, start;
    unsigned blanks = 0;
    while (end > least && is_one_of(text.ptr[end - 1], " \t\"'])\\`*:"))
        end--;
    for (start = end; start > least; start--) {
        char c = text.ptr[start - 1];
        if (is_name_byte(c))
            continue;
        if (c != ' ' || blanks++ || start < 2 || !is_class(text.ptr[start - 2], IS_ALNUM))
            break;
    }
    return rt_str_trim(rt_str_slice(text, start, end));
}

static size_t skip_scheme(rt_str text, size_t i)
{
    static const char *const schemes[] = { "bearer ", "basic ", "token ", "apikey " };
    for (size_t k = 0; k < RT_COUNT(schemes); k++) {
        size_t n = 0;
        while (schemes[k][n] && lower(at(text, i + n)) == schemes[k][n])
            n++;
        if (!schemes[k][n])
            return i + n;
    }
    return i;
}

/* Where the value after i begins; its quote, or NUL. */
static size_t value_begin(rt_str text, size_t i, char *quote)
{
    size_t most = RT_MIN(text.len, i + 12);
    while (i < most && is_one_of(text.ptr[i], " \t=>:"))
        i++;
    *quote = '\0';
    while (i < most && is_one_of(text.ptr[i], "\"'`\\")) {
        if (text.ptr[i] != '\\')
            *quote = text.ptr[i];
        i++;
    }
    return skip_scheme(text, i);
}

static size_t value_end(rt_str text, size_t start, char quote)
{
    size_t end = start;
    while (end < text.len && end - start < VALUE_MAX) {
        char c = text.ptr[end];
        if (c == '\n' || c == '\r' || (quote ? c == quote : is_class(c, IS_SPACE)))
            break;
        if (!quote && is_one_of(c, ",;<\"'`"))
            break;
        end++;
    }
    while (end > start && is_one_of(text.ptr[end - 1], quote ? "\\" : ".)]}?!:\\"))
        end--;
    return end;
}

/* 123456789:AA… with 35 of the alphabet: a Telegram bot's. */
static size_t bot_token(privacy_scan *scan, size_t i)
{
    rt_str text = scan->text;
    size_t start = i, end = i + 1;
    while (start && i - start < 11 && is_class(text.ptr[start - 1], IS_DIGIT))
        start--;
    if (i - start < 8 || i - start > 10 || at(text, i + 1) != 'A' || at(text, i + 2) != 'A')
        return i;
    while (end < text.len && end - i < 40 && is_class(text.ptr[end], IS_KEY))
        end++;
    return end - i == 36 && privacy_add(scan, RT_PII_API_KEY, start, end, 92) ? end : i;
}

/* `name` speaks of what follows `i`, where a sign or word of assignment ends. */
static size_t take_value(privacy_scan *scan, rt_str name, size_t i, bool is_element)
{
    rt_str text = scan->text;
    meaning what = meaning_of(name);
    char quote;
    if (what == NOTHING)
        return i;
    bool is_listed = text.ptr[i] == ',';
    size_t start = value_begin(text, i + is_listed, &quote), end = value_end(text, start, quote);
    if (is_listed && (!quote || at(text, end + 1) != ')'))
        return i; /* two names in a list, not a name and its value */
    bool is_quoted = quote && at(text, end) == quote;
    int score = score_value(what, rt_str_slice(text, start, end), is_quoted || is_element);
    return score && privacy_add(scan, RT_PII_API_KEY, start, end, score) ? end : i;
}

size_t privacy_assigned(privacy_scan *scan, size_t i)
{
    rt_str text = scan->text;
    if (i == 0)
        return i;
    if (text.ptr[i] == ':' && is_class(text.ptr[i - 1], IS_DIGIT))
        return bot_token(scan, i);
    if (text.ptr[i] == '=' && at(text, i + 1) == '=')
        return i + 2;
    rt_str name = name_before(text, i);
    bool is_element = text.ptr[i] == '>';
    if (name.len < 3 || (is_element && before(scan, (size_t)(name.ptr - text.ptr)) != '<'))
        return i;
    size_t next = wants(scan, RT_PII_API_KEY) ? take_value(scan, name, i, is_element) : i;
    return next != i || text.ptr[i] == ',' ? next : privacy_labelled_address(scan, name, i + 1);
}

size_t privacy_told(privacy_scan *scan, size_t i)
{
    rt_str name = name_before(scan->text, i);
    size_t next =
        wants(scan, RT_PII_API_KEY) && name.len >= 3 ? take_value(scan, name, i + 2, false) : i;
    if (next == i && name.len >= 4)
        privacy_told_address(scan, name, i + 3);
    return next;
}

void privacy_labelled_secret(privacy_scan *scan)
{
    rt_str value = rt_str_trim(scan->text);
    if (value.len == 0 || value.len > VALUE_MAX || !wants(scan, RT_PII_API_KEY))
        return;
    size_t start = (size_t)(value.ptr - scan->text.ptr), skip = skip_scheme(value, 0);
    value = rt_str_slice(value, skip, value.len);
    privacy_add(scan, RT_PII_API_KEY, start + skip, start + skip + value.len,
                score_value(meaning_of(scan->label), value, true));
}

/* ---- armour ---- */

size_t privacy_key_block(privacy_scan *scan, size_t i)
{
    rt_str rest = rt_str_slice(scan->text, i, i + RT_PRIVACY_SPAN_MAX);
    if (!rt_str_starts(rest, RT_STR("-----BEGIN ")))
        return i;
    size_t eol = 11;
    while (eol < rest.len && eol < 80 &&
           (is_class(rest.ptr[eol], IS_ALNUM) || rest.ptr[eol] == ' '))
        eol++;
    if (rt_str_find(rt_str_slice(rest, 0, eol), RT_STR("PRIVATE KEY")) < 0)
        return i;
    ptrdiff_t last = rt_str_find(rt_str_slice(rest, eol, rest.len), RT_STR("-----END "));
    size_t end = rest.len;
    if (last >= 0) {
        end = eol + (size_t)last + 9;
        while (end < rest.len && (is_class(rest.ptr[end], IS_ALNUM) || rest.ptr[end] == ' '))
            end++;
        while (end < rest.len && rest.ptr[end] == '-')
            end++;
    }
    return privacy_add(scan, RT_PII_API_KEY, i, i + end, 98) ? i + end : i;
}
