/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search_internal.h - what the files of the search share: words, what is known of them, vectors.
 */
#ifndef RT_TOOLS_SEARCH_INTERNAL_H
#define RT_TOOLS_SEARCH_INTERNAL_H

#include "tools/search.h"

/* -- stem.c ------------------------------------------------------------------------------------ */

/* Shortens the word in place; returns its new length. Room for one more byte is not needed. */
size_t search_stem(char *word, size_t len);

/* -- tokens.c: text into words ----------------------------------------------------------------- */

#define SEARCH_WORD_MAX 40 /* bytes; what is longer is cut */

typedef struct search_token {
    char stem[SEARCH_WORD_MAX], word[SEARCH_WORD_MAX]; /* the word is lower-case, not shortened */
    uint8_t stem_len, word_len;
    bool is_extra; /* a part of a compound, or the compound whose parts are there too */
    bool is_number;
    bool ends_clause; /* a full stop, a comma, a line end came after it */
    bool is_named;    /* written with a capital, not at the start of a sentence */
} search_token;

/* Words come again and again: what was found out about the latest ones, by hash. */
typedef struct search_memo {
    struct search_memo_word {
        char word[SEARCH_WORD_MAX], stem[SEARCH_WORD_MAX];
        uint8_t word_len, stem_len, seam; /* word_len is 0: nothing here yet */
    } words[8192];
} search_memo;

typedef struct search_tokens {
    search_token *items;
    size_t count, cap;
    search_memo *memo; /* may be NULL */
} search_tokens;

/* Appends; at most `max` tokens are there afterwards. */
void search_tokenise(rt_str text, size_t max, search_tokens *out);
void search_tokens_done(search_tokens *tokens);

static inline rt_str search_token_stem(const search_token *t)
{
    return (rt_str){ t->stem, t->stem_len };
}

/* -- lexicon.c: what is known of English words (words.bin) ------------------------------------- */

#define SEARCH_LEXICON_DIMS 64
#define SEARCH_LEXICON_NEAR 8
#define SEARCH_NOT_A_WORD   UINT32_MAX

uint32_t search_lexicon_count(void);
uint32_t search_lexicon_find(rt_str stem); /* SEARCH_NOT_A_WORD: unknown */
rt_str search_lexicon_stem(uint32_t entry);
const int8_t *
search_lexicon_vector(uint32_t entry);         /* of SEARCH_LEXICON_DIMS, about unit length * 127 */
uint32_t search_lexicon_place(uint32_t entry); /* 0: the commonest word */
/* Its nearest words, best first; the likeness (0 to 1) in *likeness. */
uint32_t search_lexicon_near(uint32_t entry, size_t i, float *likeness);

/* -- synonyms.c -------------------------------------------------------------------------------- */

typedef struct search_synonym {
    rt_str stem;
    float weight;
} search_synonym;

#define SEARCH_SYNONYMS_MAX 24

bool search_is_stop_word(rt_str word); /* as written, in lower case */
float search_chatter(rt_str stem); /* what a word of a request is worth: 1, or less for chatter */
size_t search_synonyms(rt_str stem, search_synonym out[SEARCH_SYNONYMS_MAX]);
/* What two words in a row add, not shortened. */
size_t search_phrases(const search_token *first, const search_token *second,
                      search_synonym out[SEARCH_SYNONYMS_MAX]);

/* -- embed.c ----------------------------------------------------------------------------------- */

float search_word_weight(rt_str stem); /* 0 to 1: how much it says, by how common it is */
void search_embed_word(rt_str stem, float weight, float *sum, size_t dims); /* adds to it */
void search_embed_finish(float *sum, size_t dims);                          /* to length one */
float search_dot(const float *a, const float *b, size_t dims);

/* -- numbering.c: texts by number -------------------------------------------------------------- */

typedef struct search_numbering {
    rt_hash_key key;
    rt_str *texts; /* in the arena they were given */
    size_t count;
    uint32_t *slots; /* number + 1 by hash */
    size_t slot_count;
} search_numbering;

uint32_t search_number_of(search_numbering *n, rt_str text, rt_arena *arena);
uint32_t search_number_find(const search_numbering *n, rt_str text); /* UINT32_MAX: none */
void search_numbering_done(search_numbering *n);

/* -- index.c ----------------------------------------------------------------------------------- */

typedef enum search_field {
    SEARCH_NAME,
    SEARCH_TITLE,
    SEARCH_DESCRIPTION,
    SEARCH_ARGUMENTS,
    SEARCH_ARGUMENT_TEXTS,
    SEARCH_CATEGORY,
    SEARCH_SERVER,
    SEARCH_FIELDS
} search_field;

typedef struct search_posting {
    uint32_t document;
    float impact; /* the word's BM25 weight in this document */
} search_posting;

typedef struct search_term {
    uint32_t first, count; /* its postings */
    float idf;
} search_term;

typedef struct search_document {
    uint32_t server; /* number of its server; SEARCH_NO_SERVER: none */
    float lengths[SEARCH_FIELDS];
    float usage;
} search_document;

#define SEARCH_NO_SERVER UINT32_MAX
#define SEARCH_NO_TERM   UINT32_MAX /* what search_number_find answers */
#define SEARCH_GRAMS     65536

struct rt_search {
    rt_embedder embedder;
    rt_arena arena; /* stems, servers' names */

    search_numbering stems, servers;
    search_term *terms; /* by the number of the stem; made by the build */

    search_document *documents;
    size_t document_count, document_cap;
    struct search_seen *seen; /* words as they were met; gone after the build */
    size_t seen_count, seen_cap;
    search_posting *postings;

    rt_str *texts; /* of the documents, for an embedder that is not ours; gone after the build */
    size_t text_cap;
    rt_arena text_arena;
    float *vectors;                     /* embedder.dims for each document */
    uint32_t *gram_starts, *gram_terms; /* terms by three letters in a row */
    double max_usage;
    search_memo *memo; /* gone after the build */
};

bool search_is_built_in(const rt_search *search); /* its vectors are ours */
uint32_t search_gram(rt_str stem, size_t i);      /* the three letters at i, as a number */

#endif
