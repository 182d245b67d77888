/* SPDX-License-Identifier: Apache-2.0 */
/*
 * iban.c - international bank account numbers: country, its length, checksum modulo 97.
 */
#include "privacy/privacy_internal.h"

enum { IBAN_MAX = 34 };

/* Two letters and the length of each country in the registry. */
static const char lengths[] =
    "AD24AE23AL28AT20AZ28BA20BE16BG22BH22BI27BR29BY28CH21CR22CY28CZ24DE22DJ27DK18DO28EE20EG29"
    "ES24FI18FK18FO18FR27GB22GE22GI23GL18GR27GT28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20LB28"
    "LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19MN20MR27MT31MU30NI28NL18NO15OM23PK24PL28PS29PT25"
    "QA29RO24RS22RU33SA24SC31SD18SE24SI19SK24SM27SO23ST25SV28TL23TN24TR26UA29VA22VG24XK20"
    "DZ26AO25BJ28BF28CM27CV25CF27TD27KM27CG27CI28GA27GQ27GW25HN28IR26MA28MG27ML28MZ25NE28SN28"
    "TG28";

static size_t country_length(char a, char b)
{
    for (const char *row = lengths; *row; row += 4)
        if (row[0] == a && row[1] == b)
            return (size_t)(row[2] - '0') * 10 + (size_t)(row[3] - '0');
    return 0;
}

static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 32) : c;
}

/* Letters count as 10 to 35; the first four characters go to the end. */
static bool passes_mod97(const char *iban, size_t n)
{
    unsigned rest = 0;
    for (size_t i = 0; i < n; i++) {
        char c = iban[(i + 4) % n];
        rest = c <= '9' ? rest * 10 + (unsigned)(c - '0') : rest * 100 + (unsigned)(c - 'A') + 10;
        rest %= 97;
    }
    return rest == 1;
}

/* Reads `want` letters and digits from `start`, single blanks or dashes between; 0: too few. */
static size_t read_iban(rt_str text, size_t start, size_t want, char *out)
{
    size_t i = start, n = 0;
    while (n < want && i < text.len) {
        char c = text.ptr[i];
        if (is_class(c, IS_ALNUM))
            out[n++] = upper(c);
        else if ((c != ' ' && c != '-') || n < 4 || !is_class(at(text, i + 1), IS_ALNUM))
            return 0;
        i++;
    }
    return n == want ? i : 0;
}

size_t privacy_iban(privacy_scan *scan, size_t i)
{
    rt_str text = scan->text;
    char iban[IBAN_MAX];
    if (!wants(scan, RT_PII_IBAN) || i < 2 || !is_class(at(text, i + 1), IS_DIGIT) ||
        !is_class(text.ptr[i - 2], IS_LETTER) || !is_class(text.ptr[i - 1], IS_LETTER) ||
        (i > 2 && is_class(text.ptr[i - 3], IS_WORD)))
        return i;
    size_t want = country_length(upper(text.ptr[i - 2]), upper(text.ptr[i - 1]));
    /* Many are made up with a character too few or too many, and with the checksum for it. */
    static const signed char off[] = { 0, -1, 1 };
    for (size_t k = 0; want && k < RT_COUNT(off); k++) {
        size_t n = want + (size_t)off[k], end = n <= IBAN_MAX ? read_iban(text, i - 2, n, iban) : 0;
        if (end && !is_class(at(text, end), IS_WORD) && passes_mod97(iban, n))
            return privacy_add(scan, RT_PII_IBAN, i - 2, end, k ? 75 : 97) ? end : i;
    }
    return i;
}
