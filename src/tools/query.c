/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query.c - from a sentence to the documents it may mean.
 *
 * A request is a row of wishes (clauses), each a row of concepts. A concept is one word with what
 * may stand in its place: its synonyms, its neighbours in the lexicon, and, when nobody knows the
 * word, those spelled nearly so. In a document a concept counts as its best form counts there; the
 * forms do not add up, so a word with many synonyms is not worth more than one with none.
 *
 * A document's words score is its part of the whole request mixed with its best part of one wish: a
 * tool that answers one of three wishes entirely should not lose to one that touches each of them.
 * A document's meaning score is the likeness of vectors, taken the same way. Both are scaled to
 * this request's best and worst, then added with fixed weights; the best of a server's tools lifts
 * its others a little, and so does having been used.
 */
#include "tools/search_internal.h"

#include <math.h>
#include <stdlib.h>

enum { WORDS_MAX = 256, CLAUSES_MAX = 8, FORMS_MAX = 64, CLAUSE_WORDS_MIN = 2 };

static const float UNSEEN_IDF = 6;    /* of a word no document has */
static const float LIKE_LEAST = 0.3f; /* vectors that are farther apart than this are strangers */

/* Chosen by measuring on tests/tools/search-set; the neighbourhood of each value is flat. */
static const struct {
    float meaning;                  /* the vectors' part of the score; the rest is the words' */
    float own_meaning;              /* the same with an embedder of one's own: a sentence model */
    float clause, part;             /* of words, of meaning: the part of the best wish */
    float server, usage;            /* what these two can add */
    float synonym;                  /* on the weights of synonyms.c */
    float neighbour, neighbour_min; /* of the lexicon: weight, and how near */
    float forms;                    /* synonyms in the request's vector */
    float spelling, number, named, extra, pair; /* what such a word is worth */
    float common; /* how much the commonness of an English word takes from it */
} tune = {
    .meaning = 0.35f,
    .own_meaning = 0.65f,
    .clause = 0.5f,
    .part = 0.4f,
    .server = 0.15f,
    .usage = 0.03f,
    .synonym = 1.2f,
    .neighbour = 0.35f,
    .neighbour_min = 0.65f,
    .forms = 0.7f,
    .spelling = 0.7f,
    .number = 0.3f,
    .named = 0.9f,
    .extra = 0.5f,
    .pair = 0.8f,
    .common = 0.7f,
};

/* One word of the request. */
typedef struct concept {
    rt_str stem;
    float weight;
    uint32_t clauses; /* one bit for each it is in */
    struct {
        uint32_t term;
        float weight;
    } forms[FORMS_MAX];
    size_t form_count;
}
concept;

typedef struct question {
    const rt_search *search;
    rt_arena arena; /* stems that are in no token */
    search_tokens tokens;
    concept *concepts;
    size_t concept_count;
    size_t clause_count;
    rt_buf wishes[CLAUSES_MAX]; /* their words, for an embedder that is not ours */
    /* One number for each document. */
    float *words, *clause_words[CLAUSES_MAX], *meaning, *best, *scratch;
    uint32_t *touched;
} question;

static void *numbers(size_t count)
{
    void *p = calloc(count ? count : 1, sizeof(float));
    if (!p)
        rt_out_of_memory(count * sizeof(float));
    return p;
}

static void question_done(question *q)
{
    for (size_t i = 0; i < CLAUSES_MAX; i++) {
        free(q->clause_words[i]);
        rt_buf_done(&q->wishes[i]);
    }
    free(q->words);
    free(q->meaning);
    free(q->best);
    free(q->scratch);
    free(q->touched);
    free(q->concepts);
    search_tokens_done(&q->tokens);
    rt_arena_done(&q->arena);
}

/* -- Understanding ----------------------------------------------------------------------------- */

static rt_str word_of(const search_token *t)
{
    return (rt_str){ t->word, t->word_len };
}

static bool is_joint(rt_str word)
{
    static const char *const joints[] = { "and",          "then",       "also",     "plus",
                                          "additionally", "finally",    "moreover", "next",
                                          "afterwards",   "furthermore" };
    for (size_t i = 0; i < RT_COUNT(joints); i++)
        if (rt_str_eq_c(word, joints[i]))
            return true;
    return false;
}

static void add_form(question *q, concept *c, rt_str stem, float weight)
{
    uint32_t term = search_number_find(&q->search->stems, stem);
    if (term == SEARCH_NO_TERM || q->search->terms[term].count == 0 || weight <= 0)
        return;
    for (size_t i = 0; i < c->form_count; i++)
        if (c->forms[i].term == term) {
            c->forms[i].weight = RT_MAX(c->forms[i].weight, weight);
            return;
        }
    if (c->form_count < FORMS_MAX) {
        c->forms[c->form_count].term = term;
        c->forms[c->form_count++].weight = weight;
    }
}

static concept *concept_of(question *q, rt_str stem, float weight, uint32_t clause)
{
    for (size_t i = 0; i < q->concept_count; i++) {
        concept *c = &q->concepts[i];
        if (rt_str_eq(c->stem, stem)) { /* said twice: a little more */
            c->weight = RT_MAX(c->weight, weight) * 1.15f;
            c->clauses |= 1u << clause;
            return NULL;
        }
    }
    if (q->concept_count == WORDS_MAX)
        return NULL;
    concept *c = &q->concepts[q->concept_count++];
    *c = (concept){ .stem = stem, .weight = weight, .clauses = 1u << clause };
    return c;
}

static void add_synonyms(question *q, concept *c)
{
    search_synonym synonyms[SEARCH_SYNONYMS_MAX];
    size_t count = search_synonyms(c->stem, synonyms);
    for (size_t i = 0; i < count; i++)
        add_form(q, c, synonyms[i].stem, tune.synonym * synonyms[i].weight);
}

static void add_neighbours(question *q, concept *c, uint32_t entry)
{
    for (size_t i = 0; i < SEARCH_LEXICON_NEAR; i++) {
        float likeness;
        uint32_t near = search_lexicon_near(entry, i, &likeness);
        if (likeness >= tune.neighbour_min)
            add_form(q, c, search_lexicon_stem(near), tune.neighbour * likeness);
    }
}

/* How alike two words are spelled: twice the common three-letter runs, by all of them. */
static void add_spellings(question *q, concept *c)
{
    const rt_search *s = q->search;
    size_t grams = c->stem.len >= 4 ? c->stem.len - 2 : 0;
    if (grams == 0)
        return;
    uint16_t *common = calloc(s->stems.count, sizeof(*common));
    if (!common)
        rt_out_of_memory(s->stems.count * sizeof(*common));
    for (size_t i = 0; i < grams; i++) {
        uint32_t gram = search_gram(c->stem, i);
        for (uint32_t j = s->gram_starts[gram]; j < s->gram_starts[gram + 1]; j++)
            common[s->gram_terms[j]]++;
    }
    for (size_t i = 0; i < s->stems.count; i++) {
        size_t others = s->stems.texts[i].len >= 3 ? s->stems.texts[i].len - 2 : 0;
        float alike = 2.0f * (float)common[i] / (float)(grams + others);
        if (alike >= 0.5f && s->stems.texts[i].ptr[0] == c->stem.ptr[0])
            add_form(q, c, s->stems.texts[i], tune.spelling * RT_MIN(alike, 1.0f));
    }
    free(common);
}

static void understand_word(question *q, const search_token *t, uint32_t clause)
{
    rt_str stem = search_token_stem(t);
    float weight = search_chatter(stem);
    weight *= t->is_number ? tune.number : t->is_extra ? tune.extra : 1;
    weight *= t->is_named ? tune.named : 1;
    weight *= 1 - tune.common + tune.common * search_word_weight(stem);
    concept *c = concept_of(q, stem, weight, clause);
    if (!c)
        return;
    add_form(q, c, stem, 1);
    bool is_here = c->form_count > 0;
    if (t->is_number || t->is_extra)
        return;
    add_synonyms(q, c);
    uint32_t entry = search_lexicon_find(stem);
    if (entry != SEARCH_NOT_A_WORD && !(weight < 0.5f))
        add_neighbours(q, c, entry);
    else if (entry == SEARCH_NOT_A_WORD && !is_here)
        add_spellings(q, c);
}

/* "web hook" may be "webhook" in the documents. */
static void understand_pair(question *q, const search_token *a, const search_token *b,
                            uint32_t clause)
{
    search_synonym added[SEARCH_SYNONYMS_MAX];
    size_t count = search_phrases(a, b, added);
    for (size_t i = 0; i < count; i++) {
        char *stem = rt_arena_copy(&q->arena, added[i].stem);
        rt_str text = { stem, search_stem(stem, added[i].stem.len) };
        concept *c = concept_of(q, text, added[i].weight, clause);
        if (c)
            add_form(q, c, text, 1);
    }
    if (a->ends_clause || a->is_extra || b->is_extra || a->word_len + b->word_len > SEARCH_WORD_MAX)
        return;
    rt_str both = rt_arena_printf(&q->arena, "%.*s%.*s", RT_FMT(word_of(a)), RT_FMT(word_of(b)));
    both.len = search_stem((char *)both.ptr, both.len);
    if (search_number_find(&q->search->stems, both) == SEARCH_NO_TERM)
        return;
    concept *c = concept_of(q, both, tune.pair, clause);
    if (c)
        add_form(q, c, both, 1);
}

static void understand(question *q, rt_str text)
{
    size_t clause_words = 0;
    uint32_t clause = 0;
    bool is_end = false;
    search_tokenise(text, WORDS_MAX, &q->tokens);
    q->concepts = calloc(WORDS_MAX, sizeof(*q->concepts));
    if (!q->concepts)
        rt_out_of_memory(WORDS_MAX * sizeof(*q->concepts));
    for (size_t i = 0; i < q->tokens.count; i++) {
        const search_token *t = &q->tokens.items[i];
        if ((is_end || is_joint(word_of(t))) && clause_words >= CLAUSE_WORDS_MIN) {
            clause = RT_MIN(clause + 1, (uint32_t)CLAUSES_MAX - 1);
            clause_words = 0;
        }
        is_end = t->ends_clause;
        if (!search_is_built_in(q->search) && !t->is_extra && !is_joint(word_of(t)))
            rt_buf_addf(&q->wishes[clause], "%.*s ", RT_FMT(word_of(t)));
        if (!search_is_stop_word(word_of(t))) {
            understand_word(q, t, clause);
            clause_words += search_chatter(search_token_stem(t)) > 0.5f;
        }
        if (i + 1 < q->tokens.count)
            understand_pair(q, t, t + 1, clause);
    }
    q->clause_count = clause + 1;
}

/* -- Words ------------------------------------------------------------------------------------- */

/* A rare synonym of a common word must not be worth more than the word itself. */
static float form_weight(const question *q, const concept *c, size_t form)
{
    const search_term *first = &q->search->terms[c->forms[0].term];
    const search_term *here = &q->search->terms[c->forms[form].term];
    bool is_itself = c->forms[0].weight == 1;
    float weight = c->weight * c->forms[form].weight;
    return is_itself && here->idf > first->idf ? weight * first->idf / here->idf : weight;
}

static void score_concept(question *q, const concept *c)
{
    size_t touched = 0;
    for (size_t f = 0; f < c->form_count; f++) {
        const search_term *t = &q->search->terms[c->forms[f].term];
        float weight = form_weight(q, c, f);
        for (uint32_t i = t->first; i < t->first + t->count; i++) {
            const search_posting *p = &q->search->postings[i];
            float *best = &q->scratch[p->document];
            if (*best == 0)
                q->touched[touched++] = p->document;
            *best = RT_MAX(*best, weight * p->impact);
        }
    }
    for (size_t i = 0; i < touched; i++) {
        uint32_t d = q->touched[i];
        q->words[d] += q->scratch[d];
        for (size_t k = 0; k < q->clause_count && q->clause_count > 1; k++)
            if (c->clauses >> k & 1)
                q->clause_words[k][d] += q->scratch[d];
        q->scratch[d] = 0;
    }
}

static float largest(const float *values, size_t count)
{
    float most = 0;
    for (size_t i = 0; i < count; i++)
        most = RT_MAX(most, values[i]);
    return most;
}

/* A wish with little in it (as against the one with the most) is no wish of its own. */
static void score_words(question *q)
{
    size_t count = q->search->document_count;
    float tops[CLAUSES_MAX] = { 0 }, top = 0, most;
    for (size_t i = 0; i < q->concept_count; i++)
        score_concept(q, &q->concepts[i]);
    most = largest(q->words, count);
    for (size_t k = 0; k < q->clause_count && q->clause_count > 1; k++) {
        tops[k] = largest(q->clause_words[k], count);
        top = RT_MAX(top, tops[k]);
    }
    for (size_t d = 0; d < count && most > 0; d++) {
        float part = 0;
        for (size_t k = 0; k < q->clause_count && top > 0; k++)
            if (tops[k] > 0)
                part = RT_MAX(part, q->clause_words[k][d] / tops[k] * sqrtf(tops[k] / top));
        float whole = q->words[d] / most;
        q->words[d] = top > 0 ? (1 - tune.clause) * whole + tune.clause * part : whole;
    }
}

/* -- Meaning ----------------------------------------------------------------------------------- */

static void embed_concept(const question *q, const concept *c, float *sum)
{
    const rt_search *s = q->search;
    uint32_t term = search_number_find(&s->stems, c->stem);
    float idf = term == SEARCH_NO_TERM ? UNSEEN_IDF : s->terms[term].idf;
    float weight = c->weight * search_word_weight(c->stem) * sqrtf(idf);
    float shared = tune.forms * weight / sqrtf((float)RT_MAX(c->form_count, (size_t)1));
    search_embed_word(c->stem, weight, sum, s->embedder.dims);
    for (size_t f = 0; f < c->form_count; f++)
        if (c->forms[f].weight < 1)
            search_embed_word(s->stems.texts[c->forms[f].term], shared * c->forms[f].weight, sum,
                              s->embedder.dims);
}

/* Of the whole request, or of the wishes whose bits are set. */
static bool embed_concepts(const question *q, uint32_t clauses, float *out)
{
    const rt_search *s = q->search;
    for (size_t i = 0; i < q->concept_count; i++)
        if (q->concepts[i].clauses & clauses)
            embed_concept(q, &q->concepts[i], out);
    search_embed_finish(out, s->embedder.dims);
    return search_dot(out, out, s->embedder.dims) > 0;
}

/* The vectors of the whole request and, if there are several, of its wishes; how many. */
static size_t embed_question(const question *q, rt_str text, float *vectors)
{
    const rt_search *s = q->search;
    size_t dims = s->embedder.dims, asked = 1, wishes = q->clause_count > 1 ? q->clause_count : 0;
    if (search_is_built_in(s)) {
        embed_concepts(q, UINT32_MAX, vectors);
        for (size_t k = 0; k < wishes; k++)
            asked += embed_concepts(q, 1u << k, vectors + asked * dims);
        return asked;
    }
    rt_str texts[CLAUSES_MAX + 1] = { text };
    for (size_t k = 0; k < wishes; k++)
        texts[asked++] = rt_buf_str(&q->wishes[k]);
    s->embedder.embed(s->embedder.ctx, RT_EMBED_QUERIES, texts, asked, vectors);
    for (size_t i = 0; i < asked; i++)
        search_embed_finish(vectors + i * dims, dims);
    return asked;
}

/* Scaled so that the nearest is 1 and what is no nearer than the average is 0. */
static void scale(float *likeness, size_t count)
{
    float most = -1;
    double mean = 0;
    for (size_t d = 0; d < count; d++) {
        most = RT_MAX(most, likeness[d]);
        mean += likeness[d];
    }
    mean /= (double)count;
    float range = most - (float)mean;
    for (size_t d = 0; d < count; d++) {
        float above = likeness[d] - (float)mean;
        likeness[d] = above > 0 && most >= LIKE_LEAST && range > 1e-6f ? above / range : 0;
    }
}

/* The whole request's vector and each wish's, beside each document's: the documents' do not fit in
 * the cache, so each is fetched once for all. */
static void score_meaning(question *q, rt_str text)
{
    const rt_search *s = q->search;
    size_t dims = s->embedder.dims, count = s->document_count;
    float *vectors = numbers((CLAUSES_MAX + 1) * dims);
    float *likeness[CLAUSES_MAX + 1] = { q->meaning };
    size_t asked = embed_question(q, text, vectors);
    for (size_t i = 1; i < asked; i++)
        likeness[i] = numbers(count);
    for (size_t d = 0; d < count; d++)
        for (size_t i = 0; i < asked; i++)
            likeness[i][d] = search_dot(vectors + i * dims, s->vectors + d * dims, dims);
    for (size_t i = 0; i < asked; i++)
        scale(likeness[i], count);
    for (size_t d = 0; d < count && asked > 1; d++) {
        float best = 0;
        for (size_t i = 1; i < asked; i++)
            best = RT_MAX(best, likeness[i][d]);
        q->meaning[d] = (1 - tune.part) * q->meaning[d] + tune.part * best;
    }
    for (size_t i = 1; i < asked; i++)
        free(likeness[i]);
    free(vectors);
}

/* -- Putting together -------------------------------------------------------------------------- */

static float usage_of(const rt_search *s, size_t d)
{
    return s->max_usage > 0 ? logf(1 + s->documents[d].usage) / logf(1 + (float)s->max_usage) : 0;
}

static void lift_servers(question *q)
{
    const rt_search *s = q->search;
    float *best = numbers(s->servers.count);
    for (size_t d = 0; d < s->document_count; d++) {
        uint32_t server = s->documents[d].server;
        if (server != SEARCH_NO_SERVER)
            best[server] = RT_MAX(best[server], q->best[d]);
    }
    for (size_t d = 0; d < s->document_count; d++) {
        uint32_t server = s->documents[d].server;
        if (q->best[d] > 0) /* who has no server is its own */
            q->best[d] += tune.server * (server == SEARCH_NO_SERVER ? q->best[d] : best[server]);
    }
    free(best);
}

static void put_hit(rt_search_hit *hits, size_t *count, size_t max, rt_search_hit hit)
{
    if (*count == max && hits[max - 1].score >= hit.score)
        return;
    size_t at = *count < max ? (*count)++ : max - 1;
    for (; at > 0 && hits[at - 1].score < hit.score; at--)
        hits[at] = hits[at - 1];
    hits[at] = hit;
}

static size_t choose(const question *q, rt_search_hit *hits, size_t max)
{
    const rt_search *s = q->search;
    float full = 1 + tune.server + tune.usage;
    size_t count = 0;
    for (size_t d = 0; d < s->document_count; d++) {
        if (q->best[d] <= 0)
            continue;
        float usage = usage_of(s, d);
        put_hit(hits, &count, max,
                (rt_search_hit){ .document = (uint32_t)d,
                                 .score = (q->best[d] + tune.usage * usage) / full,
                                 .lexical = q->words[d],
                                 .semantic = q->meaning[d],
                                 .usage = usage });
    }
    return count;
}

size_t rt_search_query(const rt_search *s, rt_str text, rt_search_hit *hits, size_t max)
{
    question q RT_CLEANUP(question_done) = { .search = s };
    size_t count = s->document_count;
    if (count == 0 || max == 0)
        return 0;
    understand(&q, text);
    q.words = numbers(count);
    q.meaning = numbers(count);
    q.best = numbers(count);
    q.scratch = numbers(count);
    q.touched = numbers(count);
    for (size_t i = 0; i < q.clause_count && q.clause_count > 1; i++)
        q.clause_words[i] = numbers(count);
    score_words(&q);
    score_meaning(&q, text);
    float meaning = search_is_built_in(s) ? tune.meaning : tune.own_meaning;
    for (size_t d = 0; d < count; d++)
        q.best[d] = (1 - meaning) * q.words[d] + meaning * q.meaning[d];
    lift_servers(&q);
    return choose(&q, hits, max);
}
