/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_bench.c - our side of the schema rows: bench/schema/ajv.mjs has the other.
 *
 * Each file is {name, schema, remotes, instances}. Parsing is not counted, as it is not for ajv,
 * which gets objects; the best round counts.
 *
 *     build/schema-bench-ours build/schema-bench/webhooks.json ...
 */
#include "schema/schema.h"

#include <stdio.h>
#include <stdlib.h>

enum { FILE_MAX = 64 << 20, REMOTES_MAX = 16, COMPILE_ROUNDS = 15, CHECK_MS = 1500 };

static void die(const char *file, const char *why)
{
    fprintf(stderr, "%s: %s\n", file, why);
    exit(1);
}

static double best_compile(rt_json schema, const rt_schema_options *options, const char *file)
{
    uint64_t least = UINT64_MAX;
    for (int round = 0; round < COMPILE_ROUNDS; round++) {
        rt_error err = { 0 };
        rt_schema *compiled = NULL;
        uint64_t began = rt_now_ns();
        if (!rt_schema_new(schema, options, &compiled, &err))
            die(file, err.text);
        least = RT_MIN(least, rt_now_ns() - began);
        rt_schema_free(compiled);
    }
    return (double)least / 1000;
}

static double best_check(const rt_schema *schema, rt_json instances, const char *file)
{
    uint64_t least = UINT64_MAX, end = rt_now_ns() + CHECK_MS * UINT64_C(1000000);
    while (rt_now_ns() < end) {
        rt_json_iter it = rt_json_each(instances);
        rt_json instance;
        bool ok = true;
        uint64_t began = rt_now_ns();
        while (rt_json_next(&it, NULL, &instance))
            ok &= rt_schema_check(schema, instance, NULL);
        least = RT_MIN(least, rt_now_ns() - began);
        if (!ok)
            die(file, "an instance was refused");
    }
    return (double)least / 1000;
}

static void measure(const char *file)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_str text;
    rt_json one;
    if (!rt_read_file(file, FILE_MAX, &arena, &text, &err) ||
        !rt_json_parse(text, &arena, &one, &err))
        die(file, err.text);
    rt_schema_document remotes[REMOTES_MAX];
    rt_schema_options options = { .draft = RT_DRAFT_07, .documents = remotes };
    rt_json_iter it = rt_json_each(rt_json_get_c(one, "remotes"));
    rt_schema_document *next = remotes;
    while (options.document_count < REMOTES_MAX && rt_json_next(&it, &next->uri, &next->root)) {
        options.document_count++;
        next++;
    }
    rt_json schema = rt_json_get_c(one, "schema"), instances = rt_json_get_c(one, "instances");
    double compile_us = best_compile(schema, &options, file);
    rt_schema *compiled RT_CLEANUP(rt_schema_freep) = NULL;
    if (!rt_schema_new(schema, &options, &compiled, &err))
        die(file, err.text);
    rt_buf size RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_print(instances, &size);
    printf("{\"name\":\"%.*s\",\"bytes\":%zu,\"compile_us\":%.1f,\"validate_us\":%.2f}\n",
           RT_FMT(rt_json_str(rt_json_get_c(one, "name"))), size.len, compile_us,
           best_check(compiled, instances, file));
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        measure(argv[i]);
    return 0;
}
