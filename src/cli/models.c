/* SPDX-License-Identifier: Apache-2.0 */
/*
 * models.c - `retort models add|list|embed`: sentence models on this machine, and their vectors.
 */
#include "cli/house.h"
#include "models/models.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LINE_MAX_BYTES ((size_t)16 << 20)
enum { BATCH = 64 }; /* lines that are answered together */

static const char help[] =
    "Usage: retort models add DIR [--name NAME] [--replace]   install a model from its folder\n"
    "       retort models list [--json]                       those that are installed\n"
    "       retort models embed [--model NAME] TEXT           the vector of a text, as JSON\n"
    "       retort models embed [--model NAME] --jsonl        {\"text\":…} by line on stdin\n\n"
    "DIR is a sentence-transformers model (BERT or MPNet) as it is published, with\n"
    "model.safetensors; it is copied, and tried before it counts as installed. --jsonl answers "
    "each\n"
    "line with {\"embedding\":[…],\"model_used\":NAME}. Without --model it is models.default, or "
    "the\n"
    "only one there is. Settings (--data-dir, --models.directory) as for 'retort serve'.";

typedef struct options {
    rt_str word; /* what is no option */
    rt_str name, model;
    bool replaces, is_json, is_jsonl;
} options;

static bool read_option(options *o, int argc, char **argv, int *i, rt_error *err)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = { { "--replace", &o->replaces },
                  { "--json", &o->is_json },
                  { "--jsonl", &o->is_jsonl } };
    const struct {
        const char *name;
        rt_str *value;
    } values[] = { { "--name", &o->name }, { "--model", &o->model } };
    for (size_t k = 0; k < RT_COUNT(flags); k++)
        if (strcmp(argv[*i], flags[k].name) == 0)
            return *flags[k].flag = true;
    for (size_t k = 0; k < RT_COUNT(values); k++) {
        const char *value = cli_option(argc, argv, i, values[k].name, err);
        if (err->code)
            return false;
        if (value) {
            *values[k].value = rt_str_of(value);
            return true;
        }
    }
    if ((argv[*i][0] == '-' && argv[*i][1] == '-') || o->word.ptr)
        return rt_fail(err, RT_INVALID,
                       "'%.60s' is unknown or one too many; 'retort models --help' says more",
                       argv[*i]);
    o->word = rt_str_of(argv[*i]);
    return true;
}

static bool print(rt_buf *text, rt_error *err)
{
    bool ok = rt_buf_ok(text, err) && rt_write_all(STDOUT_FILENO, rt_buf_str(text), err);
    rt_buf_reset(text);
    return ok;
}

/* ---- add and list ---- */

static bool add(rt_models *models, const options *o, rt_arena *arena, rt_error *err)
{
    const rt_model *model;
    rt_str name;
    rt_model_addition what = { .folder = o->word.ptr, .name = o->name, .replaces = o->replaces };
    if (!o->word.ptr)
        return rt_fail(err, RT_INVALID, "usage: retort models add DIR");
    if (!rt_models_add(models, &what, arena, &name, err) ||
        !rt_models_find(models, name, &model, err))
        return false;
    printf("%s: %s, %zu dimensions, %zu tokens\n", name.ptr, rt_model_kind(model),
           rt_model_dims(model), rt_model_tokens(model));
    return true;
}

static void write_entry(const rt_model_entry *e, rt_json_writer *w)
{
    rt_jw_object(w);
    rt_jw_kstr(w, "name", e->name);
    if (e->model) {
        rt_jw_kstr(w, "kind", rt_str_of(rt_model_kind(e->model)));
        rt_jw_ku64(w, "dimension", rt_model_dims(e->model));
        rt_jw_ku64(w, "max_tokens", rt_model_tokens(e->model));
        rt_jw_kbool(w, "normalized", rt_model_is_normalized(e->model));
        rt_jw_ku64(w, "weights_bytes", rt_model_bytes(e->model));
    } else {
        rt_jw_kstr(w, "problem", e->problem);
    }
    rt_jw_end(w);
}

static void write_row(const rt_model_entry *e, rt_buf *out)
{
    if (e->model)
        rt_buf_addf(out, "%-28.*s %-6s %4zu dimensions %5zu tokens %6.1f MB\n", RT_FMT(e->name),
                    rt_model_kind(e->model), rt_model_dims(e->model), rt_model_tokens(e->model),
                    (double)rt_model_bytes(e->model) / 1e6);
    else
        rt_buf_addf(out, "%-28.*s cannot be used: %.*s\n", RT_FMT(e->name), RT_FMT(e->problem));
}

static bool list(rt_models *models, const options *o, rt_arena *arena, rt_error *err)
{
    rt_buf out RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_model_entry *entries;
    size_t count;
    if (!rt_models_list(models, arena, &entries, &count, err))
        return false;
    if (!o->is_json) {
        for (size_t i = 0; i < count; i++)
            write_row(&entries[i], &out);
        if (count == 0)
            rt_buf_add(&out, RT_STR("No model is installed; 'retort models add DIR' installs "
                                    "one.\n"));
        return print(&out, err);
    }
    rt_json_begin(&w, &out);
    rt_jw_array(&w);
    for (size_t i = 0; i < count; i++)
        write_entry(&entries[i], &w);
    rt_jw_end(&w);
    rt_buf_addc(&out, '\n');
    return print(&out, err);
}

/* ---- embed ---- */

static bool choose(rt_models *models, rt_str asked, rt_str usual, rt_arena *arena,
                   const rt_model **out, rt_error *err)
{
    rt_model_entry *entries;
    size_t count;
    if (asked.len > 0 || usual.len > 0)
        return rt_models_find(models, asked.len ? asked : usual, out, err);
    if (!rt_models_list(models, arena, &entries, &count, err))
        return false;
    if (count != 1)
        return rt_fail(err, RT_INVALID,
                       count ? "which model? --model NAME says; 'retort models list' shows them"
                             : "no model is installed; 'retort models add DIR' installs one");
    return rt_models_find(models, entries[0].name, out, err);
}

static void write_vector(const rt_model *model, const float *vector, rt_buf *out)
{
    rt_json_writer w;
    char number[32];
    rt_json_begin(&w, out);
    rt_jw_object(&w);
    rt_jw_karray(&w, "embedding");
    for (size_t i = 0; i < rt_model_dims(model); i++) {
        int len = snprintf(number, sizeof(number), "%.9g", (double)vector[i]); /* exact again */
        rt_jw_raw(&w, (rt_str){ number, (size_t)len });
    }
    rt_jw_end(&w);
    rt_jw_kstr(&w, "model_used", rt_str_of(rt_model_name(model)));
    rt_jw_end(&w);
    rt_buf_addc(out, '\n');
}

/* Texts that wait for an answer; they live in the arena. */
typedef struct waiting {
    const rt_model *model;
    rt_arena arena;
    rt_str texts[BATCH];
    size_t count;
    float *vectors;
    rt_buf out;
} waiting;

static void waiting_done(waiting *w)
{
    rt_arena_done(&w->arena);
    rt_buf_done(&w->out);
    free(w->vectors);
}

static bool answer(waiting *w, rt_error *err)
{
    size_t dims = rt_model_dims(w->model);
    if (!w->vectors && !(w->vectors = malloc(BATCH * dims * sizeof(*w->vectors))))
        rt_out_of_memory(BATCH * dims * sizeof(*w->vectors));
    if (w->count > 0 && !rt_model_embed(w->model, w->texts, w->count, w->vectors, err))
        return false;
    for (size_t i = 0; i < w->count; i++)
        write_vector(w->model, w->vectors + i * dims, &w->out);
    w->count = 0;
    rt_arena_reset(&w->arena);
    return print(&w->out, err);
}

static bool take_line(waiting *w, rt_str line, rt_error *err)
{
    rt_json doc;
    if (line.len > LINE_MAX_BYTES)
        return rt_fail(err, RT_LIMIT, "longer than %zu bytes", LINE_MAX_BYTES);
    if (!rt_json_parse(line, &w->arena, &doc, err))
        return false;
    rt_json text = rt_json_get_c(doc, "text");
    if (rt_json_type(text) != RT_JSON_STRING)
        return rt_fail(err, RT_INVALID, "expected an object with a string \"text\"");
    w->texts[w->count++] = rt_json_str(text);
    return w->count < BATCH || answer(w, err);
}

static bool embed_lines(waiting *w, rt_error *err)
{
    char *line RT_CLEANUP(rt_freep) = NULL;
    size_t capacity = 0, number = 0;
    ssize_t len;
    while ((len = getline(&line, &capacity, stdin)) >= 0) {
        rt_str text = rt_str_trim((rt_str){ line, (size_t)len });
        number++;
        if (text.len > 0 && !take_line(w, text, err))
            return rt_wrap(err, "line %zu", number);
    }
    return answer(w, err);
}

static bool embed(rt_models *models, const options *o, rt_str usual, rt_arena *arena, rt_error *err)
{
    waiting w RT_CLEANUP(waiting_done) = { 0 };
    if (!o->word.ptr == !o->is_jsonl)
        return rt_fail(err, RT_INVALID, "usage: retort models embed TEXT, or --jsonl");
    if (!choose(models, o->model, usual, arena, &w.model, err))
        return false;
    if (o->is_jsonl)
        return embed_lines(&w, err);
    w.texts[w.count++] = o->word;
    return answer(&w, err);
}

int cli_models(int argc, char **argv)
{
    cli_house house = { 0 };
    options o = { 0 };
    rt_error err = { 0 };
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0)
            return puts(help) < 0 ? EXIT_FAILED : EXIT_GOOD;
    bool ok = cli_house_read(&house, &argc, argv, &err);
    const char *verb = argc > 1 ? argv[1] : "";
    for (int i = 2; i < argc && ok; i++)
        ok = read_option(&o, argc, argv, &i, &err);
    rt_models *models = ok ? cli_house_models(&house) : NULL;
    if (ok && strcmp(verb, "add") == 0)
        ok = add(models, &o, &house.arena, &err);
    else if (ok && strcmp(verb, "list") == 0)
        ok = list(models, &o, &house.arena, &err);
    else if (ok && strcmp(verb, "embed") == 0)
        ok = embed(models, &o, house.settings.models.default_name, &house.arena, &err);
    else if (ok)
        ok = rt_fail(&err, RT_INVALID, "retort models add, list or embed; --help says more");
    cli_house_close(&house);
    return ok ? EXIT_GOOD : cli_complain(&err);
}
