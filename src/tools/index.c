/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index.c - documents into an index: BM25 over fields, vectors, and words by their letters.
 *
 * BM25F (Robertson, Zaragoza, Taylor 2004): a word's occurrences are weighted by the field they are
 * in and by that field's length, summed, and only then saturated, so a word in the name counts for
 * more than one in an argument's description, but twice the same word not for twice as much. What
 * depends on the document alone is worked out here, once; a question only adds numbers up.
 */
#include "tools/search_internal.h"

#include <math.h>
#include <stdlib.h>

/* A word of a document, with how it was met. */
struct search_seen {
    uint32_t term, document;
    float amount; /* BM25F's weighted frequency, once the lengths are known */
    uint8_t field;
};

enum { DIMS = 128, TEXT_BYTES_MAX = 600 };

static const struct {
    float weight, slope; /* how much a word here counts; how much a long field takes from it */
    float meaning;       /* its part in the vector */
    size_t words;        /* more are not read */
} fields[SEARCH_FIELDS] = {
    [SEARCH_NAME] = { 2.6f, 0.45f, 1.5f, 64 },
    [SEARCH_TITLE] = { 1.5f, 0.4f, 0.7f, 64 },
    [SEARCH_DESCRIPTION] = { 1.0f, 0.4f, 1.0f, 400 },
    [SEARCH_ARGUMENTS] = { 0.45f, 0.6f, 0.2f, 200 },
    [SEARCH_ARGUMENT_TEXTS] = { 0.3f, 0.7f, 0.15f, 400 },
    [SEARCH_CATEGORY] = { 0.8f, 0.2f, 0.5f, 32 },
    [SEARCH_SERVER] = { 1.0f, 0.2f, 0.6f, 32 },
};

static const float SATURATION = 1.2f; /* BM25's k1 */

#define GROW(array, count, cap)                                                                    \
    do {                                                                                           \
        if ((count) == (cap)) {                                                                    \
            (cap) = (cap) ? 2 * (cap) : 256;                                                       \
            (array) = grow((array), (cap) * sizeof(*(array)));                                     \
        }                                                                                          \
    } while (0)

static void *grow(void *old, size_t size)
{
    void *more = realloc(old, size);
    if (!more)
        rt_out_of_memory(size);
    return more;
}

static void *zeroed(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size);
    if (!p)
        rt_out_of_memory(count * size);
    return p;
}

static void embed_built_in(void *ctx, rt_embed_what what, const rt_str *texts, size_t count,
                           float *out)
{
    (void)ctx;
    (void)what;
    for (size_t i = 0; i < count; i++)
        rt_embed(texts[i], out + i * DIMS, DIMS);
}

bool search_is_built_in(const rt_search *s)
{
    return s->embedder.embed == embed_built_in;
}

rt_search *rt_search_new(const rt_search_options *options)
{
    rt_search *s = zeroed(1, sizeof(*s));
    s->memo = zeroed(1, sizeof(*s->memo));
    s->embedder = options && options->embedder ? *options->embedder
                                               : (rt_embedder){ DIMS, embed_built_in, NULL };
    return s;
}

void rt_search_free(rt_search *s)
{
    if (!s)
        return;
    free(s->terms);
    free(s->documents);
    free(s->seen);
    free(s->postings);
    search_numbering_done(&s->stems);
    search_numbering_done(&s->servers);
    free(s->vectors);
    free(s->texts);
    rt_arena_done(&s->text_arena);
    free(s->memo);
    free(s->gram_starts);
    free(s->gram_terms);
    rt_arena_done(&s->arena);
    free(s);
}

void rt_search_freep(rt_search **s)
{
    rt_search_free(*s);
    *s = NULL;
}

size_t rt_search_count(const rt_search *s)
{
    return s->document_count;
}

/* -- Adding ------------------------------------------------------------------------------------ */

static void add_field(rt_search *s, search_document *d, search_field field, rt_str text)
{
    search_tokens tokens RT_CLEANUP(search_tokens_done) = { .memo = s->memo };
    search_tokenise(text, fields[field].words, &tokens);
    for (size_t i = 0; i < tokens.count; i++) {
        const search_token *t = &tokens.items[i];
        if (search_is_stop_word((rt_str){ t->word, t->word_len }) && field != SEARCH_SERVER)
            continue;
        GROW(s->seen, s->seen_count, s->seen_cap);
        s->seen[s->seen_count++] =
            (struct search_seen){ .term =
                                      search_number_of(&s->stems, search_token_stem(t), &s->arena),
                                  .document = (uint32_t)s->document_count,
                                  .field = (uint8_t)field };
        d->lengths[field] += !t->is_extra;
    }
}

/* "listCommits" and "list_commits" as one would say them. */
static void add_spoken(rt_buf *out, rt_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool is_capital = c >= 'A' && c <= 'Z';
        bool after_small = i > 0 && name.ptr[i - 1] >= 'a' && name.ptr[i - 1] <= 'z';
        if (is_capital && after_small)
            rt_buf_addc(out, ' ');
        rt_buf_addc(out, c == '_' || c == '-' || c == '.' || c == ':' ? ' ' : c);
    }
}

/* What an embedder of one's own reads: sentences rather than identifiers, and the first of them,
 * since each word costs. */
static void keep_text(rt_search *s, const rt_search_document *document)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_buf_addf(&text, "%.*s: ", RT_FMT(document->server));
    add_spoken(&text, document->name);
    rt_buf_addf(&text, ". %.*s. %.*s", RT_FMT(document->title), RT_FMT(document->description));
    GROW(s->texts, s->document_count, s->text_cap);
    s->texts[s->document_count] =
        rt_arena_str(&s->text_arena, rt_str_slice(rt_buf_str(&text), 0, TEXT_BYTES_MAX));
}

void rt_search_add(rt_search *s, const rt_search_document *document)
{
    const rt_str texts[SEARCH_FIELDS] = {
        [SEARCH_NAME] = document->name,
        [SEARCH_TITLE] = document->title,
        [SEARCH_DESCRIPTION] = document->description,
        [SEARCH_ARGUMENTS] = document->arguments,
        [SEARCH_ARGUMENT_TEXTS] = document->argument_texts,
        [SEARCH_CATEGORY] = document->category,
        [SEARCH_SERVER] = document->server,
    };
    size_t had = s->document_cap;
    GROW(s->documents, s->document_count, s->document_cap);
    if (had != s->document_cap)
        s->vectors = grow(s->vectors, s->document_cap * s->embedder.dims * sizeof(*s->vectors));
    search_document *d = &s->documents[s->document_count];
    *d = (search_document){ .usage = (float)document->usage };
    d->server = document->server.len ? search_number_of(&s->servers, document->server, &s->arena)
                                     : SEARCH_NO_SERVER;
    for (size_t i = 0; i < SEARCH_FIELDS; i++)
        add_field(s, d, (search_field)i, texts[i]);
    if (!search_is_built_in(s))
        keep_text(s, document);
    s->max_usage = RT_MAX(s->max_usage, document->usage);
    s->document_count++;
}

/* -- Building ---------------------------------------------------------------------------------- */

static void weigh_words(rt_search *s)
{
    double mean[SEARCH_FIELDS] = { 0 };
    size_t with[SEARCH_FIELDS] = { 0 };
    for (size_t i = 0; i < s->document_count; i++)
        for (size_t f = 0; f < SEARCH_FIELDS; f++) {
            mean[f] += s->documents[i].lengths[f];
            with[f] += s->documents[i].lengths[f] > 0;
        }
    for (size_t f = 0; f < SEARCH_FIELDS; f++)
        mean[f] = with[f] ? mean[f] / (double)with[f] : 1;
    for (size_t i = 0; i < s->seen_count; i++) {
        struct search_seen *w = &s->seen[i];
        float length = s->documents[w->document].lengths[w->field] / (float)mean[w->field];
        float slope = fields[w->field].slope;
        w->amount = fields[w->field].weight / (1 - slope + slope * length);
    }
}

/* Words by term, and within a term by document: a counting sort keeps the order of documents. */
static void sort_words(rt_search *s)
{
    uint32_t *at = zeroed(s->stems.count + 1, sizeof(*at));
    struct search_seen *sorted = zeroed(s->seen_count, sizeof(*sorted));
    for (size_t i = 0; i < s->seen_count; i++)
        at[s->seen[i].term + 1]++;
    for (size_t i = 0; i < s->stems.count; i++)
        at[i + 1] += at[i];
    for (size_t i = 0; i < s->seen_count; i++)
        sorted[at[s->seen[i].term]++] = s->seen[i];
    free(s->seen);
    free(at);
    s->seen = sorted;
}

static void make_postings(rt_search *s)
{
    size_t count = 0;
    s->terms = zeroed(s->stems.count, sizeof(*s->terms));
    s->postings = zeroed(s->seen_count, sizeof(*s->postings));
    for (size_t i = 0; i < s->seen_count; i++) {
        const struct search_seen *w = &s->seen[i];
        search_term *t = &s->terms[w->term];
        if (t->count == 0)
            t->first = (uint32_t)count;
        if (t->count == 0 || s->postings[count - 1].document != w->document) {
            s->postings[count++] = (search_posting){ .document = w->document };
            t->count++;
        }
        s->postings[count - 1].impact += w->amount;
    }
    for (size_t i = 0; i < s->stems.count; i++) {
        search_term *t = &s->terms[i];
        t->idf = logf(1 + ((float)s->document_count - (float)t->count + 0.5f) /
                              ((float)t->count + 0.5f));
        for (search_posting *p = s->postings + t->first; p < s->postings + t->first + t->count; p++)
            p->impact = t->idf * p->impact * (SATURATION + 1) / (SATURATION + p->impact);
    }
}

/* The built-in vectors know how seldom a word is here, too; so they are made last. */
static void make_vectors(rt_search *s)
{
    size_t dims = s->embedder.dims;
    float *word = zeroed(dims, sizeof(*word));
    memset(s->vectors, 0, s->document_count * dims * sizeof(*s->vectors));
    for (size_t i = 0; i < s->seen_count;) {
        uint32_t term = s->seen[i].term;
        rt_str stem = s->stems.texts[term];
        memset(word, 0, dims * sizeof(*word));
        search_embed_word(stem, search_word_weight(stem) * sqrtf(s->terms[term].idf), word, dims);
        for (; i < s->seen_count && s->seen[i].term == term; i++) {
            float *sum = s->vectors + s->seen[i].document * dims;
            float weight = fields[s->seen[i].field].meaning;
            for (size_t d = 0; d < dims; d++)
                sum[d] += weight * word[d];
        }
    }
    free(word);
}

uint32_t search_gram(rt_str stem, size_t i)
{
    const unsigned char *p = (const unsigned char *)stem.ptr + i;
    return (p[0] * 961u + p[1] * 31u + p[2]) % SEARCH_GRAMS;
}

static void index_letters(rt_search *s)
{
    s->gram_starts = zeroed(SEARCH_GRAMS + 2, sizeof(*s->gram_starts));
    for (size_t i = 0; i < s->stems.count; i++)
        for (size_t j = 0; j + 3 <= s->stems.texts[i].len; j++)
            s->gram_starts[search_gram(s->stems.texts[i], j) + 2]++;
    for (size_t i = 0; i < SEARCH_GRAMS; i++)
        s->gram_starts[i + 2] += s->gram_starts[i + 1];
    s->gram_terms = zeroed(s->gram_starts[SEARCH_GRAMS + 1], sizeof(*s->gram_terms));
    for (size_t i = 0; i < s->stems.count; i++)
        for (size_t j = 0; j + 3 <= s->stems.texts[i].len; j++)
            s->gram_terms[s->gram_starts[search_gram(s->stems.texts[i], j) + 1]++] = (uint32_t)i;
}

void rt_search_build(rt_search *s)
{
    weigh_words(s);
    sort_words(s);
    make_postings(s);
    if (s->document_count > 0 && search_is_built_in(s))
        make_vectors(s);
    else if (s->document_count > 0)
        s->embedder.embed(s->embedder.ctx, RT_EMBED_DOCUMENTS, s->texts, s->document_count,
                          s->vectors);
    for (size_t i = 0; i < s->document_count; i++)
        search_embed_finish(s->vectors + i * s->embedder.dims, s->embedder.dims);
    index_letters(s);
    free(RT_TAKE(s->seen));
    free(RT_TAKE(s->memo));
    free(RT_TAKE(s->texts));
    rt_arena_done(&s->text_arena);
    s->seen_count = s->seen_cap = 0;
}
