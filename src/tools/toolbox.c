/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toolbox.c - the sample tools: from the folder toolbox/ into the store, and from there to callers.
 *
 * Each tool is a directory: tool.json says what it is, code.py or code.js does it. Both are part of
 * this program. Seeding writes what is there now and keeps what was counted, so it can be repeated.
 */
#include <stdlib.h>

#include "tools/tools_internal.h"

/* The compiler runs in the root of the tree. */
#define EMBED(id, ending)                                                                          \
    __asm__(".pushsection .rodata\n"                                                               \
            "toolbox_" #id "_about:\n.incbin \"toolbox/" #id "/tool.json\"\n.byte 0\n"             \
            "toolbox_" #id "_code:\n.incbin \"toolbox/" #id "/code." ending "\"\n.byte 0\n"        \
            ".popsection\n");                                                                      \
    extern const char toolbox_##id##_about[] __attribute__((visibility("hidden")));                \
    extern const char toolbox_##id##_code[] __attribute__((visibility("hidden")))

EMBED(csv_parser, "py");
EMBED(json_transformer, "js");
EMBED(stripe_payment, "py");
EMBED(twilio_sms, "js");
EMBED(pdf_extractor, "py");
EMBED(excel_reader, "py");
EMBED(statistical_analyzer, "py");
EMBED(trend_detector, "py");
EMBED(email_sender, "py");
EMBED(file_watcher, "js");
EMBED(data_validator, "py");

#define SAMPLE(id)                                                                                 \
    {                                                                                              \
#id, toolbox_##id##_about, toolbox_##id##_code                                             \
    }

static const struct sample {
    const char *id, *about, *code;
} samples[] = {
    SAMPLE(csv_parser),           SAMPLE(json_transformer), SAMPLE(stripe_payment),
    SAMPLE(twilio_sms),           SAMPLE(pdf_extractor),    SAMPLE(excel_reader),
    SAMPLE(statistical_analyzer), SAMPLE(trend_detector),   SAMPLE(email_sender),
    SAMPLE(file_watcher),         SAMPLE(data_validator),
};

static const struct {
    const char *name, *description, *icon;
} categories[] = {
    { "data", "Read and reshape data", "table" },
    { "api", "Services on the network", "plug" },
    { "documents", "Read documents", "file" },
    { "analytics", "Statistics and trends", "chart" },
    { "automation", "Things that happen by themselves", "gear" },
};

/* -- Seeding
 * --------------------------------------------------------------------------------------- */

static bool seed_categories(rt_tx *tx, int64_t now, rt_error *err)
{
    for (size_t i = 0; i < RT_COUNT(categories); i++) {
        rt_sql_value row[] = { rt_sql_text(rt_str_of(categories[i].name)),
                               rt_sql_text(rt_str_of(categories[i].description)),
                               rt_sql_text(rt_str_of(categories[i].icon)), rt_sql_i64(now) };
        if (!rt_sql(tx,
                    "INSERT INTO tool_categories (id, name, description, icon, created_ms, "
                    "updated_ms) VALUES ($1, $1, $2, $3, $4, $4) ON CONFLICT (id) DO UPDATE SET "
                    "description = $2, icon = $3, updated_ms = $4",
                    row, RT_COUNT(row), NULL, NULL, err))
            return false;
    }
    return true;
}

static rt_sql_value json_text(rt_json about, const char *key, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_print(rt_json_get_c(about, key), &text);
    return rt_sql_text(rt_arena_str(arena, rt_buf_str(&text)));
}

static rt_sql_value text_value(rt_json about, const char *key)
{
    return rt_sql_text(rt_json_str(rt_json_get_c(about, key)));
}

static rt_sql_value number_value(rt_json about, const char *key)
{
    int64_t n = 0;
    rt_json_i64(rt_json_get_c(about, key), &n);
    return rt_sql_i64(n);
}

static bool seed_one(rt_tx *tx, const struct sample *sample, int64_t now, size_t *added,
                     rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json about;
    rt_rows rows;
    if (!rt_json_parse(rt_str_of(sample->about), &arena, &about, err))
        return rt_wrap(err, "%s", sample->id);
    rt_sql_value row[] = {
        rt_sql_text(rt_str_of(sample->id)),
        text_value(about, "name"),
        text_value(about, "description"),
        text_value(about, "category"),
        rt_sql_text(rt_str_of(sample->code)),
        text_value(about, "language"),
        json_text(about, "packages", &arena),
        number_value(about, "max_memory_mb"),
        number_value(about, "max_timeout_sec"),
        json_text(about, "input_schema", &arena),
        json_text(about, "sample_input", &arena),
        json_text(about, "allowed_hosts", &arena),
        rt_sql_i64(now),
    };
    if (!rt_sql(tx, "SELECT 1 FROM tools WHERE id = $1", row, 1, &arena, &rows, err))
        return false;
    *added += rows.count == 0;
    return rt_sql(tx,
                  "INSERT INTO tools (id, name, description, category_id, code_template, language, "
                  "required_packages, max_memory_mb, max_timeout_sec, input_schema, sample_input, "
                  "allowed_hosts, created_ms, updated_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, "
                  "$9, $10, $11, $12, $13, $13) ON CONFLICT (id) DO UPDATE SET name = $2, "
                  "description = $3, category_id = $4, code_template = $5, language = $6, "
                  "required_packages = $7, max_memory_mb = $8, max_timeout_sec = $9, "
                  "input_schema = $10, sample_input = $11, allowed_hosts = $12, updated_ms = $13",
                  row, RT_COUNT(row), NULL, NULL, err);
}

bool rt_toolbox_seed(rt_store *store, size_t *added, rt_error *err)
{
    rt_tx *tx RT_CLEANUP(rt_tx_rollbackp) = NULL;
    int64_t now = (int64_t)rt_wall_ms();
    size_t count = 0;
    if (!rt_tx_begin(store, RT_TX_WRITE, &tx, err) || !seed_categories(tx, now, err))
        return rt_wrap(err, "seed the toolbox");
    for (size_t i = 0; i < RT_COUNT(samples); i++)
        if (!seed_one(tx, &samples[i], now, &count, err))
            return rt_wrap(err, "seed the toolbox");
    if (!rt_sql(tx,
                "INSERT INTO settings (key, value) VALUES ('toolbox_was_seeded', 'true')"
                " ON CONFLICT (key) DO NOTHING",
                NULL, 0, NULL, NULL, err) ||
        !rt_tx_commit(&tx, err))
        return rt_wrap(err, "seed the toolbox");
    *added = count;
    return true;
}

bool rt_toolbox_seed_once(rt_store *store, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_rows rows;
    size_t added;
    if (!rt_sql_once(store, RT_TX_READ, "SELECT 1 FROM settings WHERE key = 'toolbox_was_seeded'",
                     NULL, 0, &arena, &rows, err))
        return rt_wrap(err, "seed the toolbox");
    return rows.count > 0 || rt_toolbox_seed(store, &added, err);
}

/* -- Rows
 * ------------------------------------------------------------------------------------------ */

#define COLUMNS                                                                                    \
    "SELECT t.id, t.name, t.description, t.version, t.language, c.name, t.input_schema, "          \
    "t.max_memory_mb, t.max_timeout_sec, t.usage_count, t.last_used_ms, t.average_exec_ms"
#define CODE_COLUMNS ", t.code_template, t.sample_input, t.required_packages, t.allowed_hosts"
#define FROM         " FROM tools t JOIN tool_categories c ON c.id = t.category_id WHERE t.is_active"

static rt_toolbox_tool tool_at(const rt_rows *rows, size_t i)
{
    return (rt_toolbox_tool){ .id = rt_rows_at(rows, i, 0).text,
                              .name = rt_rows_at(rows, i, 1).text,
                              .description = rt_rows_at(rows, i, 2).text,
                              .version = rt_rows_at(rows, i, 3).text,
                              .language = rt_rows_at(rows, i, 4).text,
                              .category = rt_rows_at(rows, i, 5).text,
                              .input_schema = rt_rows_at(rows, i, 6).text,
                              .max_memory_mb = rt_rows_at(rows, i, 7).i64,
                              .max_timeout_sec = rt_rows_at(rows, i, 8).i64,
                              .usage_count = rt_rows_at(rows, i, 9).i64,
                              .last_used_ms = rt_rows_at(rows, i, 10).i64,
                              .average_exec_ms = rt_rows_at(rows, i, 11).number,
                              .code = rt_rows_at(rows, i, 12).text,
                              .sample_input = rt_rows_at(rows, i, 13).text,
                              .required_packages = rt_rows_at(rows, i, 14).text,
                              .allowed_hosts = rt_rows_at(rows, i, 15).text };
}

static char small(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
}

static bool contains(rt_str hay, rt_str needle)
{
    for (size_t i = 0; i + needle.len <= hay.len; i++) {
        size_t n = 0;
        while (n < needle.len && small(hay.ptr[i + n]) == small(needle.ptr[n]))
            n++;
        if (n == needle.len)
            return true;
    }
    return false;
}

bool rt_toolbox_list(rt_store *store, rt_str category, rt_str text, rt_arena *arena,
                     rt_toolbox_tool **out, size_t *count, rt_error *err)
{
    rt_rows rows;
    if (!rt_sql_once(store, RT_TX_READ, COLUMNS FROM " ORDER BY c.name, t.name", NULL, 0, arena,
                     &rows, err))
        return rt_wrap(err, "list the toolbox");
    *out = rt_arena_alloc(arena, (rows.count + 1) * sizeof(**out));
    *count = 0;
    for (size_t i = 0; i < rows.count; i++) {
        rt_toolbox_tool t = tool_at(&rows, i);
        t.input_schema = (rt_str){ 0 };
        bool is_meant = category.len == 0 || rt_str_eq(t.category, category);
        bool has_text =
            contains(t.name, text) || contains(t.description, text) || contains(t.category, text);
        if (is_meant && has_text)
            (*out)[(*count)++] = t;
    }
    return true;
}

bool rt_toolbox_get(rt_store *store, rt_str id, rt_arena *arena, rt_toolbox_tool *out,
                    rt_error *err)
{
    rt_sql_value value = rt_sql_text(id);
    rt_rows rows;
    if (!rt_sql_once(store, RT_TX_READ, COLUMNS CODE_COLUMNS FROM " AND (t.id = $1 OR t.name = $1)",
                     &value, 1, arena, &rows, err))
        return rt_wrap(err, "read the toolbox");
    if (rows.count == 0)
        return rt_fail(err, RT_NOT_FOUND, "Tool not found: %.*s", (int)RT_MIN(id.len, 100u),
                       id.ptr);
    *out = tool_at(&rows, 0);
    return true;
}

/* -- The provider
 * ---------------------------------------------------------------------------------- */

typedef struct toolbox {
    rt_provider provider;
    rt_toolbox_config config;
} toolbox;

static bool list(rt_provider *self, rt_arena *arena, rt_tool **out, size_t *count, rt_error *err)
{
    toolbox *box = (toolbox *)self;
    rt_rows rows;
    if (!rt_sql_once(box->config.store, RT_TX_READ, COLUMNS CODE_COLUMNS FROM " ORDER BY t.id",
                     NULL, 0, arena, &rows, err))
        return rt_wrap(err, "list the toolbox");
    *out = rt_arena_alloc(arena, (rows.count + 1) * sizeof(**out));
    *count = rows.count;
    for (size_t i = 0; i < rows.count; i++) {
        rt_toolbox_tool t = tool_at(&rows, i);
        bool has_network = !rt_str_eq_c(t.allowed_hosts, "[]");
        (*out)[i] = (rt_tool){ .name = t.id,
                               .title = t.name,
                               .description = t.description,
                               .category = t.category,
                               .input_schema = t.input_schema,
                               .flags = has_network ? RT_TOOL_OPEN_WORLD | RT_TOOL_SIDE_EFFECT
                                                    : RT_TOOL_READ_ONLY };
    }
    return true;
}

static bool is_granted(const toolbox *box, rt_str host)
{
    for (size_t i = 0; i < box->config.granted_count; i++)
        if (rt_str_eq(box->config.granted_hosts[i], host))
            return true;
    return false;
}

/* "$smtp_host" is whatever host the argument of that name says. */
static bool check_hosts(const toolbox *box, const rt_toolbox_tool *t, rt_json arguments,
                        rt_arena *arena, rt_error *err)
{
    rt_json hosts, host;
    if (!rt_json_parse(t->allowed_hosts, arena, &hosts, err))
        return rt_wrap(err, "allowed_hosts of %.*s", RT_FMT(t->id));
    rt_json_iter it = rt_json_each(hosts);
    while (rt_json_next(&it, NULL, &host)) {
        rt_str name = rt_json_str(host);
        if (rt_str_starts(name, RT_STR("$")))
            name = rt_json_str(rt_json_get(arguments, rt_str_slice(name, 1, name.len)));
        if (!is_granted(box, name))
            return rt_fail(err, RT_DENIED,
                           "%.*s needs the network and has no grant for it; the operator can "
                           "grant allowed_hosts: [%.*s]",
                           RT_FMT(t->name), (int)RT_MIN(name.len, 100u), name.ptr);
    }
    return true;
}

static bool call(rt_provider *self, const rt_tool_call *c, rt_arena *arena, rt_tool_result *out,
                 rt_error *err)
{
    toolbox *box = (toolbox *)self;
    rt_str id = c->tool, server;
    rt_toolbox_tool tool;
    rt_json arguments;
    rt_str_cut(&id, ':', &server);
    if (!rt_toolbox_get(box->config.store, id, arena, &tool, err))
        return false;
    if (!rt_json_parse(c->arguments, arena, &arguments, err) ||
        (rt_json_type(arguments) != RT_JSON_OBJECT &&
         !rt_fail(err, RT_INVALID, "they are no object")))
        return rt_wrap(err, "arguments of %.*s", RT_FMT(tool.id));
    return check_hosts(box, &tool, arguments, arena, err) &&
           box->config.run(box->config.run_ctx, &(rt_toolbox_run){ &tool, c }, arena, out, err);
}

static void health(rt_provider *self, rt_json_writer *w)
{
    rt_error err = { 0 };
    toolbox *box = (toolbox *)self;
    bool is_healthy = rt_store_check(box->config.store, &err);
    rt_jw_object(w);
    rt_jw_kstr(w, "server", RT_STR(RT_TOOLBOX));
    rt_jw_kstr(w, "status", is_healthy ? RT_STR("healthy") : RT_STR("down"));
    if (!is_healthy)
        rt_jw_kstr(w, "error", rt_str_of(err.text));
    rt_jw_end(w);
}

static void close_toolbox(rt_provider *self)
{
    free(self);
}

bool rt_toolbox_open(const rt_toolbox_config *config, rt_provider **out, rt_error *err)
{
    if (!config->store || !config->run)
        return rt_fail(err, RT_INVALID, "a toolbox needs a store, and somebody who runs code");
    toolbox *box = calloc(1, sizeof(*box));
    if (!box)
        rt_out_of_memory(sizeof(*box));
    box->config = *config;
    box->provider = (rt_provider){
        .name = RT_TOOLBOX, .list = list, .call = call, .health = health, .close = close_toolbox
    };
    *out = &box->provider;
    return true;
}
