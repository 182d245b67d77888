/* SPDX-License-Identifier: Apache-2.0 */
/*
 * types.c - the kinds of personal data and what each is called where.
 */
#include "privacy/privacy_internal.h"

static const char *const names[RT_PII_BUILTIN][5] = {
    [RT_PII_EMAIL] = { "EMAIL", "email", "email", "EMAIL", "EMAIL" },
    [RT_PII_SSN] = { "SSN", "ssn", "ssn", "SSN", "SSN" },
    [RT_PII_PHONE] = { "PHONE", "phone", "phone", "PHONE", "PHONE" },
    [RT_PII_CREDIT_CARD] = { "CREDIT_CARD", "credit_card", "creditCard", "CREDITCARD", "CARD" },
    [RT_PII_ADDRESS] = { "ADDRESS", "address", "address", "ADDRESS", "ADDRESS" },
    [RT_PII_API_KEY] = { "API_KEY", "api_key", "apiKey", "APIKEY", "APIKEY" },
    [RT_PII_IP] = { "IP", "ip", "ip", "IP", "IP" },
    [RT_PII_IBAN] = { "IBAN", "iban", "iban", "IBAN", "IBAN" },
    [RT_PII_URL] = { "URL", "url", "url", "URL", "URL" },
    [RT_PII_DATE_OF_BIRTH] = { "DATE_OF_BIRTH", "date_of_birth", "dateOfBirth", "DATEOFBIRTH",
                               "BIRTHDATE" },
    [RT_PII_PASSPORT] = { "PASSPORT", "passport", "passport", "PASSPORT", "PASSPORT" },
    [RT_PII_DRIVER_LICENSE] = { "DRIVER_LICENSE", "driver_license", "driverLicense",
                                "DRIVERLICENSE", "LICENSE" },
    [RT_PII_PERSON] = { "PERSON", "person", "person", "PERSON", "PERSON" },
};

const char *rt_pii_name(unsigned type, rt_pii_style style)
{
    return type < RT_PII_BUILTIN ? names[type][style] : "";
}

static bool is_named(rt_str word, unsigned type)
{
    const char *name = names[type][RT_PII_STORED];
    size_t i = 0;
    for (; i < word.len && name[i]; i++)
        if (lower(word.ptr[i]) != name[i])
            return rt_str_eq_c(word, names[type][RT_PII_CAMEL]);
    return i == word.len && !name[i];
}

bool rt_pii_types_parse(rt_str list, uint32_t *out, rt_error *err)
{
    uint32_t types = 0;
    rt_str word;
    while (rt_str_cut(&list, ',', &word)) {
        unsigned type = 0;
        word = rt_str_trim(word);
        while (type < RT_PII_BUILTIN && !is_named(word, type))
            type++;
        if (type == RT_PII_BUILTIN)
            return rt_fail(err, RT_INVALID, "there is no type of personal data called '%.*s'",
                           (int)RT_MIN(word.len, (size_t)40), word.ptr);
        types |= RT_PII_BIT(type);
    }
    *out = types;
    return true;
}
