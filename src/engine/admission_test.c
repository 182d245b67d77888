#include <criterion/criterion.h>

#include <stdio.h>
#include <unistd.h>

#include "engine/engine_internal.h"

#define MB (1ull << 20)

static const admission_limits two_slots = {
    .max_running = 2, .max_queued = 100, .max_memory_bytes = 1024 * MB, .wait_ms = 10000
};

typedef struct guest {
    pthread_t thread;
    admission *a;
    const char *group;
    uint64_t memory;
    rt_canceller *canceller;
    admission_place place;
    rt_error err;
    bool is_in;
    atomic_int *order;
    int turn;
} guest;

static void *enter(void *arg)
{
    guest *g = arg;
    uint64_t waited;
    g->is_in = engine_admission_enter(g->a, rt_str_of(g->group), g->memory, g->canceller, &g->place,
                                      &waited, &g->err);
    g->turn = atomic_fetch_add(g->order, 1);
    return NULL;
}

static void wait_queued(admission *a, unsigned count)
{
    while (engine_admission_counts(a).queued != count)
        usleep(500);
}

static void come(guest *g, admission *a, const char *group, uint64_t memory, atomic_int *order)
{
    unsigned before = engine_admission_counts(a).queued;
    *g = (guest){ .a = a, .group = group, .memory = memory, .order = order };
    pthread_create(&g->thread, NULL, enter, g);
    wait_queued(a, before + 1);
}

static admission_place take(admission *a, const char *group, uint64_t memory)
{
    admission_place place = { 0 };
    uint64_t waited;
    rt_error err = { 0 };
    cr_assert(engine_admission_enter(a, rt_str_of(group), memory, NULL, &place, &waited, &err),
              "%s", err.text);
    return place;
}

Test(admission, a_full_house_makes_the_next_one_wait)
{
    admission *a = engine_admission_new(&two_slots);
    atomic_int order = 0;
    guest third;
    admission_place one = take(a, "x", MB), two = take(a, "x", MB);
    come(&third, a, "x", MB, &order);
    cr_assert_eq(engine_admission_counts(a).running, 2);
    engine_admission_leave(&one);
    pthread_join(third.thread, NULL);
    cr_assert(third.is_in);
    engine_admission_leave(&two);
    engine_admission_leave(&third.place);
    admission_counts c = engine_admission_counts(a);
    cr_assert(c.running == 0 && c.queued == 0 && c.memory_bytes == 0 && c.total == 3);
    engine_admission_free(a);
}

Test(admission, who_has_fewest_running_comes_first)
{
    admission *a = engine_admission_new(&two_slots);
    atomic_int order = 0;
    guest greedy[3], modest;
    admission_place one = take(a, "greedy", MB), two = take(a, "greedy", MB);
    for (size_t i = 0; i < 3; i++)
        come(&greedy[i], a, "greedy", MB, &order);
    come(&modest, a, "modest", MB, &order);
    engine_admission_leave(&one);
    pthread_join(modest.thread, NULL);
    cr_assert_eq(modest.turn, 0, "it came last and has nothing running");
    engine_admission_leave(&two);
    engine_admission_leave(&modest.place);
    for (size_t i = 0; i < 3; i++) {
        pthread_join(greedy[i].thread, NULL);
        engine_admission_leave(&greedy[i].place);
    }
    engine_admission_free(a);
}

Test(admission, a_large_run_is_not_starved_by_small_ones)
{
    admission *a = engine_admission_new(&two_slots);
    atomic_int order = 0;
    guest large, small;
    admission_place one = take(a, "x", 600 * MB);
    come(&large, a, "x", 800 * MB, &order);
    come(&small, a, "x", MB, &order);
    cr_assert_eq(engine_admission_counts(a).running, 1, "the small one is not let past");
    engine_admission_leave(&one);
    pthread_join(large.thread, NULL);
    pthread_join(small.thread, NULL);
    cr_assert(large.is_in && small.is_in);
    engine_admission_leave(&large.place);
    engine_admission_leave(&small.place);
    engine_admission_free(a);
}

Test(admission, more_memory_than_there_is_can_never_be_had)
{
    admission *a = engine_admission_new(&two_slots);
    admission_place place = { 0 };
    uint64_t waited;
    rt_error err = { 0 };
    cr_assert(!engine_admission_enter(a, RT_STR("x"), 2048 * MB, NULL, &place, &waited, &err));
    cr_assert_eq(err.code, RT_LIMIT);
    cr_assert(strstr(err.text, "TOTAL_MEMORY"));
    cr_assert_eq(engine_admission_counts(a).rejected, 1);
    engine_admission_free(a);
}

Test(admission, waiting_ends_with_time_cancel_or_stop)
{
    admission_limits limits = two_slots;
    limits.max_running = 1;
    limits.wait_ms = 30;
    admission *a = engine_admission_new(&limits);
    atomic_int order = 0;
    uint64_t waited;
    rt_error err = { 0 };
    admission_place one = take(a, "x", MB), place = { 0 };
    cr_assert(!engine_admission_enter(a, RT_STR("x"), MB, NULL, &place, &waited, &err));
    cr_assert(err.code == RT_UNAVAILABLE && strstr(err.text, "ACQUIRE_TIMEOUT"));
    engine_admission_leave(&one);
    engine_admission_free(a);

    limits.wait_ms = 60000;
    a = engine_admission_new(&limits);
    one = take(a, "x", MB);
    rt_canceller canceller;
    rt_canceller_init(&canceller);
    guest g = { .a = a, .group = "x", .memory = MB, .canceller = &canceller, .order = &order };
    pthread_create(&g.thread, NULL, enter, &g);
    wait_queued(a, 1);
    rt_canceller_cancel(&canceller);
    engine_admission_nudge(a);
    pthread_join(g.thread, NULL);
    cr_assert(!g.is_in && g.err.code == RT_CANCELLED);

    g = (guest){ .a = a, .group = "x", .memory = MB, .order = &order };
    pthread_create(&g.thread, NULL, enter, &g);
    wait_queued(a, 1);
    engine_admission_stop(a);
    pthread_join(g.thread, NULL);
    cr_assert(!g.is_in && g.err.code == RT_UNAVAILABLE);
    engine_admission_leave(&one);
    rt_canceller_done(&canceller);
    engine_admission_free(a);
}

Test(admission, the_queue_has_an_end)
{
    admission_limits limits = {
        .max_running = 1, .max_queued = 1, .max_memory_bytes = 10 * MB, .wait_ms = 10000
    };
    admission *a = engine_admission_new(&limits);
    atomic_int order = 0;
    guest second;
    admission_place one = take(a, "x", MB), place = { 0 };
    uint64_t waited;
    rt_error err = { 0 };
    come(&second, a, "x", MB, &order);
    cr_assert(!engine_admission_enter(a, RT_STR("y"), MB, NULL, &place, &waited, &err));
    cr_assert(err.code == RT_UNAVAILABLE && strstr(err.text, "CONCURRENT_EXECUTIONS"));
    engine_admission_leave(&one);
    pthread_join(second.thread, NULL);
    engine_admission_leave(&second.place);
    engine_admission_free(a);
}

static void *come_and_go(void *arg)
{
    admission *a = arg;
    for (int i = 0; i < 300; i++) {
        admission_place place = { 0 };
        uint64_t waited;
        char group[8];
        snprintf(group, sizeof(group), "g%d", i % 5);
        cr_assert(engine_admission_enter(a, rt_str_of(group), (uint64_t)(i % 7 + 1) * 100 * MB,
                                         NULL, &place, &waited, &(rt_error){ 0 }));
        admission_counts c = engine_admission_counts(a);
        cr_assert(c.running <= 2 && c.memory_bytes <= 1024 * MB);
        engine_admission_leave(&place);
    }
    return NULL;
}

Test(admission, many_threads_never_exceed_the_limits)
{
    admission *a = engine_admission_new(&two_slots);
    pthread_t threads[8];
    for (size_t i = 0; i < RT_COUNT(threads); i++)
        pthread_create(&threads[i], NULL, come_and_go, a);
    for (size_t i = 0; i < RT_COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    admission_counts c = engine_admission_counts(a);
    cr_assert(c.running == 0 && c.queued == 0 && c.memory_bytes == 0 && c.total == 2400);
    engine_admission_free(a);
}
