/* SPDX-License-Identifier: Apache-2.0 */
/*
 * privacy_internal.h - what the files of this room share.
 *
 * A recogniser looks at one place of the text, where a byte made it worth looking, and either
 * adds spans to the scan or does nothing. None looks further than a fixed distance from its
 * place, which keeps the whole linear.
 */
#ifndef RT_PRIVACY_INTERNAL_H
#define RT_PRIVACY_INTERNAL_H

#include "privacy/privacy.h"

/* ---- characters ---- */

enum {
    IS_DIGIT = 1,
    IS_LOWER = 2,
    IS_UPPER = 4,
    IS_LETTER = IS_LOWER | IS_UPPER, /* of ASCII */
    IS_HIGH = 8,                     /* part of a character outside ASCII */
    IS_HEX = 16,
    IS_SPACE = 32, /* blank, tab, line ends */
    IS_KEY = 64,   /* base64, base64url and the like: letters, digits, + / _ - */
    IS_ALNUM = IS_LETTER | IS_DIGIT,
    IS_WORD = IS_LETTER | IS_DIGIT | IS_HIGH,
};

extern const unsigned char privacy_class[256];

static inline bool is_class(char c, unsigned classes)
{
    return privacy_class[(unsigned char)c] & classes;
}

static inline char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* The byte at i, or NUL beyond either end. */
static inline char at(rt_str s, size_t i)
{
    return i < s.len ? s.ptr[i] : '\0';
}

static inline bool is_one_of(char c, const char *set)
{
    while (*set && *set != c)
        set++;
    return *set;
}

/* ---- what the words around speak of ---- */

typedef enum topic {
    TOPIC_PHONE,
    TOPIC_SSN,
    TOPIC_CARD,
    TOPIC_BANK,
    TOPIC_ADDRESS,
    TOPIC_BIRTH,
    TOPIC_PASSPORT,
    TOPIC_DRIVER,
    TOPIC_LICENSE,
    TOPIC_IP,
    TOPIC_VERSION,
    TOPIC_NUMBER,  /* order, invoice, serial: some number of something else */
    TOPIC_FOREIGN, /* another country's number for a person */
    TOPIC_MONEY,
    TOPIC_SECRET,
    TOPICS,
} topic;

enum { TOPIC_FAR = 99 };

/* How many words away each topic was heard of, TOPIC_FAR if it was not. */
typedef struct privacy_context {
    unsigned char distance[TOPICS];
} privacy_context;

/* What was heard around the place that was last asked about. */
typedef struct privacy_heard {
    bool is_any;
    size_t start, end;
    privacy_context before, after;
} privacy_heard;

/* ---- a scan under way ---- */

typedef struct privacy_scan {
    rt_str text;
    uint32_t types;
    const unsigned char *min_score;
    bool is_lenient;
    rt_str label;
    rt_arena *arena;
    rt_pii_span *spans;
    size_t count, capacity;
    size_t address_end; /* no address begins before it: the last one reaches so far */
    bool is_overfull;
    size_t rare_end;   /* where the latest word of a rare topic ended; 0: there was none */
    size_t secret_end; /* the same for words that speak of secrets */
    bool is_unsorted;  /* spans were added out of order */
    privacy_heard heard;
} privacy_scan;

static inline bool wants(const privacy_scan *scan, unsigned type)
{
    return scan->types & RT_PII_BIT(type);
}

static inline char before(const privacy_scan *scan, size_t i)
{
    return i ? scan->text.ptr[i - 1] : '\0';
}

/* Takes the span if its type is wanted and its score suffices. */
bool privacy_add(privacy_scan *scan, unsigned type, size_t start, size_t end, int score);

/* Looks for candidates that begin in from..to-1, though they may end after it. */
void privacy_scan_range(privacy_scan *scan, size_t from, size_t to);

/* Sorts the spans and drops the weaker of each two that overlap. */
void privacy_settle(privacy_scan *scan);

void privacy_scan_init(privacy_scan *scan, rt_str text, const rt_privacy_options *options,
                       rt_arena *arena);

void privacy_context_at(privacy_scan *scan, size_t start, size_t end, privacy_context *out);

static inline bool near(const privacy_context *context, topic what, unsigned words)
{
    return context->distance[what] <= words;
}

/* May a rare topic be near `start`? A cheap question before the dear one. */
static inline bool may_be_rare(const privacy_scan *scan, size_t start)
{
    return scan->label.len || (scan->rare_end && start < scan->rare_end + 96);
}

/* ---- numbers in groups ---- */

enum { GROUPS_MAX = 16, CLUSTER_BYTES_MAX = 80 };

typedef enum separator {
    SEP_NONE, /* before the first group */
    SEP_SPACE,
    SEP_DOT,
    SEP_DASH,
    SEP_SLASH,
    SEP_PAREN, /* one that closes a bracket, with or without a blank or dash */
    SEP_WIDE,  /* " - ", ". ": between numbers more often than inside one */
} separator;

typedef struct group {
    size_t start, end;
    unsigned char len;
    separator sep; /* before it */
    bool is_in_parens;
    bool is_dead; /* part of a date or of a time of day */
} group;

/* Digit groups with nothing but separators between them: "+1 (555) 123-4567 x9" has four. */
typedef struct cluster {
    group groups[GROUPS_MAX];
    size_t count;
    size_t end;
    bool has_plus; /* before the first group, with or without a bracket */
    size_t start;  /* with the plus or bracket before the first group */
} cluster;

void privacy_cluster_read(rt_str text, size_t i, cluster *out);

/* The digits of groups first..last, at most `max`; returns how many there are. */
size_t privacy_cluster_digits(rt_str text, const cluster *c, size_t first, size_t last, char *out,
                              size_t max);

/* Is there a date of the calendar at groups g..? Returns how many groups it takes, 0 if none. */
size_t privacy_cluster_date(rt_str text, const cluster *c, size_t g);

/* ---- recognisers: each returns how many groups, or where to go on ---- */

size_t privacy_number(privacy_scan *scan, size_t i); /* at the first digit of a run */
size_t privacy_card(privacy_scan *scan, const cluster *c, size_t g);
size_t privacy_ssn(privacy_scan *scan, const cluster *c, size_t g);
size_t privacy_phone(privacy_scan *scan, const cluster *c, size_t g);
size_t privacy_ipv4(privacy_scan *scan, const cluster *c, size_t g);
size_t privacy_birth(privacy_scan *scan, const cluster *c, size_t g);
void privacy_address(privacy_scan *scan, const cluster *c, size_t g);
void privacy_postcode(privacy_scan *scan, size_t i);
void privacy_document(privacy_scan *scan, size_t i, size_t end);
size_t privacy_iban(privacy_scan *scan, size_t i);
size_t privacy_email(privacy_scan *scan, size_t i);
size_t privacy_ipv6(privacy_scan *scan, size_t i);
size_t privacy_url(privacy_scan *scan, size_t i);
size_t privacy_www(privacy_scan *scan, size_t i);
size_t privacy_assigned(privacy_scan *scan, size_t i);
void privacy_labelled_secret(privacy_scan *scan);  /* the whole text is the label's value */
size_t privacy_told(privacy_scan *scan, size_t i); /* at the "is" of "the password is" */
size_t privacy_labelled_address(privacy_scan *scan, rt_str name, size_t i);
void privacy_told_address(privacy_scan *scan, rt_str name, size_t i);
bool privacy_lone_secret(privacy_scan *scan, size_t i); /* at a digit of it */
size_t privacy_key_block(privacy_scan *scan, size_t i);
size_t privacy_prefixed(privacy_scan *scan, size_t i);
size_t privacy_person(privacy_scan *scan, size_t i);

/* Tells the scan which three bytes may begin something; keys.c knows most of them. */
void privacy_mark(const char *three);
void privacy_mark_keys(void);

void privacy_phone_learn(void);
void privacy_address_learn(void);

size_t privacy_points(rt_str s); /* rt_utf8_length, for long texts */

/* ---- words ---- */

/* What a word can be beside a topic; the bits follow the topics'. */
enum {
    SET_STRONG_LAST = TOPICS,
    SET_WEAK_LAST,
    SET_STRONG_FIRST,
    SET_WEAK_FIRST,
    SET_UNIT,
    SET_COUNTRY,
    SET_SMALL,
    SET_STATE,
    SET_BAN,
    SET_THING,
    SET_GADGET,
    SET_MONTH,
    SET_BOX,
    SET_ADDRESS_NAME,
    SET_FIRST_NAME,
    SET_TITLE,
    SETS_END,
};

#define VOC(what) (UINT32_C(1) << (what))
_Static_assert(SETS_END <= 32, "one bit each");

/* Topics of which nothing is found unless they are heard of: scanning notes where that was. */
#define PRIVACY_RARE                                                                               \
    (VOC(TOPIC_BIRTH) | VOC(TOPIC_PASSPORT) | VOC(TOPIC_DRIVER) | VOC(TOPIC_LICENSE))

/* The topics and sets a word belongs to, in any case; learn comes first. */
uint32_t privacy_vocabulary(rt_str word);
void privacy_vocabulary_learn(void);

/* The word in lower case, ASCII and Latin-1 letters; false when it is longer than `size`. */
bool privacy_fold(rt_str word, char *out, size_t size, size_t *len);

/* Bits of surprise per byte. */
double privacy_entropy(rt_str s);
void privacy_entropy_learn(void);

/* ---- own patterns, and their names in a vault ---- */

enum { PRIVACY_NAME_MAX = 32 };

/* What values of an own pattern are kept as: the runs of a session may have different patterns. */
bool privacy_vault_slot(rt_privacy_vault *vault, rt_str name, unsigned *type, rt_error *err);
bool privacy_vault_type(rt_privacy_vault *vault, rt_str name, unsigned *type);

/* What is looked for when it is to be masked. */
rt_privacy_options privacy_mask_options(const rt_privacy_mask *mask);

/* The token at text[i] == '[': its end and what it stands for. False: it is none of ours. */
bool privacy_token_read(rt_str text, size_t i, rt_privacy_vault *vault, size_t *end, unsigned *type,
                        uint64_t *number);

bool privacy_patterns_scan(privacy_scan *scan, const rt_privacy_patterns *patterns, rt_error *err);

#endif
