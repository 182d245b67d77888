/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/telemetry.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/retort-telemetry-test-XXXXXX";
static char file[64];

static void begin(void)
{
    rt_outbound_scrub_set(rt_outbound_scrub_nothing);
    cr_assert_not_null(mkdtemp(folder));
    snprintf(file, sizeof(file), "%s/spans", folder);
}

static void end(void)
{
    unlink(file);
    rmdir(folder);
}

TestSuite(telemetry, .init = begin, .fini = end);

static size_t count_threads(void)
{
    size_t count = 0;
    DIR *tasks = opendir("/proc/self/task");
    cr_assert_not_null(tasks);
    for (const struct dirent *entry; (entry = readdir(tasks));)
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

Test(telemetry, without_an_endpoint_nothing_is_started)
{
    size_t before = count_threads();
    rt_telemetry *telemetry RT_CLEANUP(rt_telemetry_closep) = NULL;
    rt_telemetry_config config = { .sample_ratio = -1,
                                   .posthog_url = RT_STR("https://eu.i.posthog.com") };
    cr_assert(rt_telemetry_open(&config, &telemetry, NULL));
    rt_event_send(telemetry, RT_STR("e"), RT_STR("who"), RT_STR("{}"));
    cr_expect_eq(count_threads(), before);
}

Test(telemetry, what_cannot_work_is_told_at_the_start)
{
    char pipe_path[64];
    snprintf(pipe_path, sizeof(pipe_path), "%s/pipe", folder);
    cr_assert_eq(mkfifo(pipe_path, 0600), 0);
    const struct {
        rt_telemetry_config config;
        const char *told;
    } cases[] = {
        { { .otlp_traces_url = RT_STR("ftp://x/") },
          "telemetry: receiver of spans: the URL does not begin with http:// or https://" },
        { { .otlp_traces_url = RT_STR("http://x/a b") },
          "telemetry: receiver of spans: the URL has a space or a control character" },
        { { .otlp_traces_url = RT_STR("http://x/\0y") },
          "telemetry: receiver of spans: the URL has a space or a control character" },
        { { .otlp_traces_url = RT_STR("http://x/"), .otlp_headers = RT_STR("a") },
          "telemetry: headers for the receiver of spans: part 1: a part has no '='" },
        { { .otlp_traces_url = RT_STR("http://x/"), .resource_attributes = RT_STR("a") },
          "telemetry: resource attributes: part 1: a part has no '='" },
        { { .otlp_traces_url = RT_STR("https://x/"), .otlp_certificate = "/none/here" },
          "telemetry: receiver of spans: read /none/here: No such file or directory" },
        { { .span_file = "/none/here" },
          "telemetry: file of spans: open /none/here: No such file or directory" },
        { { .span_file = "/dev/null" },
          "telemetry: file of spans: /dev/null is not a regular file" },
        { { .posthog_url = RT_STR("posthog"), .posthog_key = RT_STR("phc_x") },
          "telemetry: receiver of events: the URL does not begin with http:// or https://" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        rt_telemetry *telemetry = NULL;
        rt_error err = { 0 };
        cr_expect(!rt_telemetry_open(&cases[i].config, &telemetry, &err));
        cr_expect_str_eq(err.text, cases[i].told);
        cr_expect_null(telemetry);
    }
    rt_telemetry *telemetry = NULL;
    cr_expect(!rt_telemetry_open(&(rt_telemetry_config){ .span_file = pipe_path }, &telemetry,
                                 NULL)); /* and does not wait for a reader */
    unlink(pipe_path);
}

Test(telemetry, a_file_gets_one_request_a_line)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str text, line, last = { 0 };
    size_t lines = 0;
    for (size_t round = 0; round < 2; round++) { /* the second one appends */
        rt_telemetry *telemetry RT_CLEANUP(rt_telemetry_closep) = NULL;
        rt_telemetry_config config = { .span_file = file, .sample_ratio = -1 };
        cr_assert(rt_telemetry_open(&config, &telemetry, NULL));
        rt_span span;
        rt_span_start(telemetry, &span, "run", RT_SPAN_INTERNAL, NULL);
        rt_span_str(&span, "text", RT_STR("one\ntwo"));
        rt_span_end(telemetry, &span);
    }
    cr_assert(rt_read_file(file, 1 << 20, &arena, &text, NULL));
    while (rt_str_cut(&text, '\n', &line)) {
        rt_json doc;
        last = line;
        if (line.len == 0)
            continue;
        lines++;
        cr_expect(rt_json_parse(line, &arena, &doc, NULL));
        cr_expect_eq(rt_json_count(rt_json_get_c(doc, "resourceSpans")), 1);
    }
    cr_expect_eq(lines, 2);
    cr_expect_eq(last.len, 0);
    struct stat st;
    cr_assert_eq(stat(file, &st), 0);
    cr_expect_eq(st.st_mode & 0777, 0600);
}

Test(telemetry, the_configuration_may_go_away)
{
    rt_telemetry *telemetry = NULL;
    char *name = strdup("service"), *list = strdup("k=v"), *path = strdup(file);
    rt_telemetry_config config = { .span_file = path,
                                   .service_name = rt_str_of(name),
                                   .resource_attributes = rt_str_of(list),
                                   .sample_ratio = -1 };
    cr_assert(rt_telemetry_open(&config, &telemetry, NULL));
    free(name);
    free(list);
    free(path);
    rt_span span;
    rt_span_start(telemetry, &span, "run", RT_SPAN_INTERNAL, NULL);
    rt_span_end(telemetry, &span);
    rt_telemetry_close(telemetry);
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str text;
    cr_assert(rt_read_file(file, 1 << 20, &arena, &text, NULL));
    cr_expect(rt_str_find(text, RT_STR("\"stringValue\":\"service\"")) > 0);
}
