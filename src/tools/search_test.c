/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <pthread.h>

#include "tools/search.h"

static const rt_search_document documents[] = {
    { .name = { "Gmail_SendEmail", sizeof("Gmail_SendEmail") - 1 },
      .description = { "Send an email using the Gmail API.",
                       sizeof("Send an email using the Gmail API.") - 1 },
      .server = { "gmail", sizeof("gmail") - 1 } },
    { .name = { "Gmail_TrashEmail", sizeof("Gmail_TrashEmail") - 1 },
      .description = { "Move an email to the trash folder.",
                       sizeof("Move an email to the trash folder.") - 1 },
      .server = { "gmail", sizeof("gmail") - 1 } },
    { .name = { "list_commits", sizeof("list_commits") - 1 },
      .description = { "Get list of commits of a branch",
                       sizeof("Get list of commits of a branch") - 1 },
      .server = { "github", sizeof("github") - 1 } },
    { .name = { "create_issue", sizeof("create_issue") - 1 },
      .description = { "Create a new issue in a repository",
                       sizeof("Create a new issue in a repository") - 1 },
      .server = { "github", sizeof("github") - 1 } },
    { .name = { "get_forecast", sizeof("get_forecast") - 1 },
      .description = { "Get weather forecast for a location.",
                       sizeof("Get weather forecast for a location.") - 1 },
      .server = { "weather", sizeof("weather") - 1 } },
    { .name = { "take_screenshot", sizeof("take_screenshot") - 1 },
      .description = { "Capture the current page", sizeof("Capture the current page") - 1 },
      .server = { "browser", sizeof("browser") - 1 } },
    { .name = { "delete_file", sizeof("delete_file") - 1 },
      .description = { "Delete a file", sizeof("Delete a file") - 1 },
      .server = { "files", sizeof("files") - 1 } },
    { .name = { "fahrplan_auskunft", sizeof("fahrplan_auskunft") - 1 },
      .description = { "Verbindungen der Bahn zwischen zwei Städten",
                       sizeof("Verbindungen der Bahn zwischen zwei Städten") - 1 } },
    { .name = { "tenki", sizeof("tenki") - 1 },
      .description = { "東京の天気予報を返す", sizeof("東京の天気予報を返す") - 1 } },
    { .name = { "translate_text", sizeof("translate_text") - 1 },
      .description = { "Translate text into another language",
                       sizeof("Translate text into another language") - 1 } },
    { .name = { "stock_quote", sizeof("stock_quote") - 1 },
      .description = { "Latest price of a share", sizeof("Latest price of a share") - 1 },
      .arguments = { "ticker", sizeof("ticker") - 1 } },
    { .name = { "kubectl_scale", sizeof("kubectl_scale") - 1 },
      .description = { "Scale a Kubernetes deployment",
                       sizeof("Scale a Kubernetes deployment") - 1 },
      .server = { "kubernetes", sizeof("kubernetes") - 1 } },
};

static rt_search *sample(void)
{
    rt_search *s = rt_search_new(NULL);
    for (size_t i = 0; i < RT_COUNT(documents); i++)
        rt_search_add(s, &documents[i]);
    rt_search_build(s);
    return s;
}

static void expect_first(const rt_search *s, const char *query, const char *name)
{
    rt_search_hit hits[5];
    size_t count = rt_search_query(s, rt_str_of(query), hits, 5);
    cr_assert_gt(count, 0, "%s finds nothing", query);
    cr_assert(rt_str_eq_c(documents[hits[0].document].name, name), "%s finds %.*s", query,
              RT_FMT(documents[hits[0].document].name));
}

Test(search, everyday_words_find_the_tool)
{
    rt_search *s RT_CLEANUP(rt_search_freep) = sample();
    expect_first(s, "send an email", "Gmail_SendEmail");
    expect_first(s, "do I need an umbrella tomorrow", "get_forecast");
    expect_first(s, "who committed last week", "list_commits");
    expect_first(s, "take a picture of the website", "take_screenshot");
    expect_first(s, "get rid of this document", "delete_file");
    expect_first(s, "how do you say hello in Spanish", "translate_text");
    expect_first(s, "what is a Tesla share worth", "stock_quote");
}

Test(search, typing_mistakes_and_glued_words_are_forgiven)
{
    rt_search *s RT_CLEANUP(rt_search_freep) = sample();
    expect_first(s, "kubernetis", "kubectl_scale");
    expect_first(s, "screen shot", "take_screenshot");
    expect_first(s, "sendemail", "Gmail_SendEmail");
    expect_first(s, "listCommits", "list_commits");
}

Test(search, other_languages_are_found_in_their_own_words)
{
    rt_search *s RT_CLEANUP(rt_search_freep) = sample();
    expect_first(s, "Verbindung zwischen Städten", "fahrplan_auskunft");
    expect_first(s, "天気", "tenki");
}

Test(search, each_of_two_wishes_is_among_the_first)
{
    rt_search *s RT_CLEANUP(rt_search_freep) = sample();
    rt_search_hit hits[4];
    bool has_weather = false, has_email = false;
    size_t count = rt_search_query(
        s, RT_STR("Check the weather in Oslo for Saturday and then send an email to the team"),
        hits, 4);
    for (size_t i = 0; i < count; i++) {
        has_weather |= hits[i].document == 4;
        has_email |= hits[i].document == 0;
    }
    cr_assert(has_weather && has_email);
}

Test(search, of_equals_the_one_that_was_used_comes_first)
{
    rt_search *s RT_CLEANUP(rt_search_freep) = rt_search_new(NULL);
    rt_search_hit hits[2];
    rt_search_document d = { .name = RT_STR("send_message"),
                             .description = RT_STR("Send a message") };
    rt_search_add(s, &d);
    d.usage = 20;
    rt_search_add(s, &d);
    rt_search_build(s);
    cr_assert_eq(rt_search_query(s, RT_STR("send a message"), hits, 2), 2);
    cr_assert_eq(hits[0].document, 1);
    cr_assert_gt(hits[0].usage, hits[1].usage);
}

Test(search, nothing_is_found_where_nothing_is_meant)
{
    rt_search *s RT_CLEANUP(rt_search_freep) = sample(),
                 *empty RT_CLEANUP(rt_search_freep) = rt_search_new(NULL);
    rt_search_hit hits[5];
    rt_search_build(empty);
    cr_assert_eq(rt_search_query(empty, RT_STR("send an email"), hits, 5), 0);
    cr_assert_eq(rt_search_query(s, RT_STR(""), hits, 5), 0);
    cr_assert_eq(rt_search_query(s, RT_STR("the of and"), hits, 5), 0);
    cr_assert_eq(rt_search_query(s, RT_STR("send an email"), hits, 0), 0);
}

Test(search, scores_fall_and_stay_between_nought_and_one)
{
    rt_search *s RT_CLEANUP(rt_search_freep) = sample();
    rt_search_hit hits[20];
    size_t count = rt_search_query(s, RT_STR("create an issue about the broken email"), hits, 20);
    cr_assert_gt(count, 1);
    for (size_t i = 0; i < count; i++) {
        cr_assert(hits[i].score > 0 && hits[i].score <= 1.0001);
        cr_assert(i == 0 || hits[i].score <= hits[i - 1].score);
    }
}

/* Knows of the weather, and that "qwertz" is about it; documents come together, wishes too. */
static void embed_weather(void *ctx, rt_embed_what what, const rt_str *texts, size_t count,
                          float *out)
{
    size_t *documents_seen = ctx;
    if (what == RT_EMBED_DOCUMENTS)
        *documents_seen += count;
    for (size_t i = 0; i < count; i++) {
        bool is_weather = rt_str_find(texts[i], RT_STR("weather: get forecast. ")) == 0 ||
                          rt_str_find(texts[i], RT_STR("qwertz")) >= 0;
        out[2 * i] = is_weather;
        out[2 * i + 1] = !is_weather;
    }
}

Test(search, an_embedder_of_ones_own_takes_the_place_of_ours)
{
    size_t documents_seen = 0;
    rt_embedder embedder = { .dims = 2, .embed = embed_weather, .ctx = &documents_seen };
    rt_search *s RT_CLEANUP(rt_search_freep) =
        rt_search_new(&(rt_search_options){ .embedder = &embedder });
    for (size_t i = 0; i < RT_COUNT(documents); i++)
        rt_search_add(s, &documents[i]);
    rt_search_build(s);
    cr_assert_eq(documents_seen, RT_COUNT(documents));
    expect_first(s, "qwertz", "get_forecast");
    expect_first(s, "send an email", "Gmail_SendEmail");
    rt_search_hit hits[2];
    cr_assert_eq(rt_search_query(s, RT_STR("qwertz today, and then delete the file"), hits, 2), 2);
    cr_expect(hits[0].document + hits[1].document == 4 + 6, "the forecast, and deleting");
}

static void *ask_often(void *ctx)
{
    rt_search_hit hits[3];
    for (int i = 0; i < 200; i++)
        if (rt_search_query(ctx, RT_STR("send an email"), hits, 3) == 0 || hits[0].document != 0)
            return ctx;
    return NULL;
}

Test(search, many_threads_may_ask)
{
    rt_search *s RT_CLEANUP(rt_search_freep) = sample();
    pthread_t threads[4];
    void *wrong;
    for (size_t i = 0; i < RT_COUNT(threads); i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, ask_often, s), 0);
    for (size_t i = 0; i < RT_COUNT(threads); i++) {
        pthread_join(threads[i], &wrong);
        cr_assert_null(wrong);
    }
}
