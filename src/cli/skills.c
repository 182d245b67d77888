/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skills.c - `retort skills list|show|run|new`, and the skills of the service.
 */
#include "cli/service.h"
#include "skills/memory.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ARGS_MAX        ((size_t)64 << 20)
#define DIRECTORIES_MAX 3

static const char help[] =
    "Usage: retort skills list [--tag TAG] [--json]     the skills there are\n"
    "       retort skills show NAME                     all about a skill, or a guide's text\n"
    "       retort skills run NAME [JSON|-] [--actor A] call it with these arguments; - is stdin\n"
    "       retort skills new NAME [--language L] [--in DIR]\n"
    "                                                   a folder with a skill that works\n\n"
    "A skill is a folder with skill.yaml, schema.json and a handler; docs/skills.md says more.\n"
    "Settings (--data-dir, --skills-directory) as for 'retort serve'.";

typedef struct options {
    rt_str words[2];
    size_t word_count;
    rt_str tag, actor, language, directory;
    bool is_json;
} options;

static bool read_option(options *o, int argc, char **argv, int *i, rt_error *err)
{
    const struct {
        const char *name;
        rt_str *field;
    } texts[] = { { "--tag", &o->tag },
                  { "--actor", &o->actor },
                  { "--language", &o->language },
                  { "--in", &o->directory } };
    const char *value;
    if (strcmp(argv[*i], "--json") == 0)
        return o->is_json = true;
    for (size_t k = 0; k < RT_COUNT(texts); k++)
        if ((value = cli_option(argc, argv, i, texts[k].name, err))) {
            *texts[k].field = rt_str_of(value);
            return true;
        }
    return err->code ? false
                     : rt_fail(err, RT_INVALID,
                               "unknown option %.60s; 'retort skills --help' lists them", argv[*i]);
}

static bool read_options(options *o, int argc, char **argv, rt_error *err)
{
    for (int i = 2; i < argc; i++) {
        if (argv[i][0] == '-' && argv[i][1] == '-') {
            if (!read_option(o, argc, argv, &i, err))
                return false;
            continue;
        }
        if (o->word_count == RT_COUNT(o->words))
            return rt_fail(err, RT_INVALID, "'%.60s' is one word too many", argv[i]);
        o->words[o->word_count++] = rt_str_of(argv[i]);
    }
    return true;
}

static bool need(const options *o, size_t least, size_t most, const char *what, rt_error *err)
{
    return (o->word_count >= least && o->word_count <= most) ||
           rt_fail(err, RT_INVALID, "usage: retort skills %s", what);
}

/* ---- the service's skills ---- */

/* Beside the program, or beside the folder it was built in. */
static rt_str find_builtin(rt_arena *arena)
{
    static const char *const places[] = { "skills", "../skills" };
    char exe[PATH_MAX] = "", real[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    char *slash = n > 0 ? strrchr(exe, '/') : NULL;
    if (!slash)
        return (rt_str){ 0 };
    *slash = '\0';
    for (size_t i = 0; i < RT_COUNT(places); i++) {
        rt_str path = rt_arena_printf(arena, "%s/%s", exe, places[i]);
        if (realpath(path.ptr, real))
            return rt_arena_str(arena, rt_str_of(real));
    }
    return (rt_str){ 0 };
}

static size_t list_directories(cli_house *h, rt_str out[DIRECTORIES_MAX])
{
    rt_str builtin = find_builtin(&h->arena);
    size_t count = 0;
    if (builtin.len > 0)
        out[count++] = builtin;
    if (h->settings.skills.directory.len > 0)
        out[count++] = h->settings.skills.directory;
    out[count++] = rt_arena_printf(&h->arena, "%.*s/skills", RT_FMT(h->settings.data_dir));
    return count;
}

static void tell_problems(rt_skills *skills)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_skill_problem *problems;
    size_t count = rt_skills_problems(skills, &arena, &problems);
    for (size_t i = 0; i < count; i++)
        rt_log(RT_LOG_WARN, "a skill is left out: %.*s: %.*s", RT_FMT(problems[i].folder),
               RT_FMT(problems[i].reason));
}

static rt_caller local_caller(void)
{
    return (rt_caller){ .organisation_id = RT_STR(RT_LOCAL_ORGANISATION),
                        .workspace_id = RT_STR(RT_LOCAL_WORKSPACE),
                        .user_id = RT_STR(RT_LOCAL_USER),
                        .actor_type = RT_STR("user"),
                        .role = RT_ROLE_OWNER };
}

bool cli_skills_open(cli_service *s, rt_error *err)
{
    const rt_settings *set = &s->house.settings;
    rt_str directories[DIRECTORIES_MAX];
    rt_caller caller = local_caller();
    rt_provider *provider;
    s->models = rt_models_new(set->models.directory);
    rt_skill_native embedder = rt_skills_embedder(s->models);
    rt_skills_config config = { .engine = s->engine,
                                .natives = &embedder,
                                .native_count = 1,
                                .store = s->house.store,
                                .directories = directories,
                                .directory_count = list_directories(&s->house, directories),
                                .allowed = set->skills.allowed.items,
                                .allowed_count = set->skills.allowed.count,
                                .is_approval_off = !set->skills.is_approval_needed,
                                .privacy = (rt_privacy_mode)set->skills.privacy,
                                .timeout_ms = set->execution.timeout_ms };
    if (!rt_skills_open(&config, &s->skills, err))
        return rt_wrap(err, "skills");
    tell_problems(s->skills);
    rt_memory memory = { .store = s->house.store, .vault = s->house.vault, .skills = s->skills };
    return !s->tools || (rt_skills_provider(s->skills, &caller, &provider, err) &&
                         rt_tools_add(s->tools, provider, err) &&
                         rt_memory_provider(&memory, &caller, &provider, err) &&
                         rt_tools_add(s->tools, provider, err));
}

/* ---- list and show ---- */

static bool print_json(rt_buf *text, rt_error *err)
{
    rt_buf_addc(text, '\n');
    return rt_buf_ok(text, err) && rt_write_all(STDOUT_FILENO, rt_buf_str(text), err);
}

static bool print_pretty(rt_str json, rt_arena *arena, rt_error *err)
{
    rt_buf pretty RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json doc;
    if (!rt_json_parse(json, arena, &doc, err))
        return false;
    rt_json_print_pretty(doc, &pretty);
    return print_json(&pretty, err);
}

static bool list(cli_service *s, const options *o, rt_error *err)
{
    rt_arena *arena = &s->house.arena;
    rt_skill_filter filter = { .tags = &o->tag, .tag_count = o->tag.len > 0 };
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_skill *skills;
    rt_guide *guides;
    size_t count;
    if (!need(o, 0, 0, "list [--tag TAG] [--json]", err) ||
        !rt_skills_list(s->skills, &filter, arena, &skills, &count, err))
        return false;
    rt_json_begin(&w, &text);
    rt_jw_array(&w);
    for (size_t i = 0; i < count && o->is_json; i++)
        rt_skill_write(&skills[i], &w);
    rt_jw_end(&w);
    if (o->is_json)
        return print_json(&text, err);
    for (size_t i = 0; i < count; i++)
        printf("%-24.*s %-8.*s %.*s\n", RT_FMT(skills[i].name), RT_FMT(skills[i].version),
               (int)RT_MIN(skills[i].description.len, (size_t)100), skills[i].description.ptr);
    size_t guide_count = o->tag.len > 0 ? 0 : rt_skills_guides(s->skills, arena, &guides);
    for (size_t i = 0; i < guide_count; i++)
        printf("%-24.*s %-8s %.*s\n", RT_FMT(guides[i].name), "guide",
               (int)RT_MIN(guides[i].description.len, (size_t)100), guides[i].description.ptr);
    if (count + guide_count == 0)
        puts("There are no skills here. 'retort skills new NAME' makes one.");
    return true;
}

static bool show(cli_service *s, const options *o, rt_error *err)
{
    rt_arena *arena = &s->house.arena;
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_skill skill;
    rt_guide guide;
    if (!need(o, 1, 1, "show NAME", err))
        return false;
    if (!rt_skills_find(s->skills, (rt_str){ 0 }, o->words[0], arena, &skill, err)) {
        if (!rt_skills_guide(s->skills, o->words[0], arena, &guide, NULL))
            return false;
        *err = (rt_error){ 0 };
        return rt_write_all(STDOUT_FILENO, guide.body, err);
    }
    rt_json_begin(&w, &text);
    rt_skill_write(&skill, &w);
    return print_pretty(rt_buf_str(&text), arena, err);
}

/* ---- run ---- */

static bool run(cli_service *s, const options *o, rt_error *err)
{
    rt_arena *arena = &s->house.arena;
    rt_caller caller = local_caller();
    rt_str text = o->word_count > 1 ? o->words[1] : RT_STR("{}");
    rt_skill_result result;
    rt_json args;
    if (!need(o, 1, 2, "run NAME [JSON|-]", err))
        return false;
    if (rt_str_eq_c(text, "-") && !rt_read_fd(STDIN_FILENO, ARGS_MAX, arena, &text, err))
        return false;
    if (!rt_json_parse(text, arena, &args, err))
        return rt_wrap(err, "arguments");
    /* Who runs it by hand on the operator's machine is the person whose word is asked for. */
    rt_skill_call call = { .caller = &caller,
                           .surface = RT_STR("cli"),
                           .skill = o->words[0],
                           .args = args,
                           .actor_id = o->actor,
                           .is_approved = true };
    if (!rt_skills_execute(s->skills, &call, arena, &result, err))
        return false;
    if (o->is_json || result.is_success)
        return print_pretty(o->is_json ? result.json : result.value, arena, err) &&
               (result.is_success ||
                rt_fail(err, RT_INTERNAL, "%.*s", RT_FMT(result.error_message)));
    return rt_fail(err, RT_INTERNAL, "%.*s", (int)RT_MIN(result.error_message.len, (size_t)220),
                   result.error_message.ptr);
}

/* ---- new ---- */

static bool make(cli_service *s, const options *o, rt_error *err)
{
    rt_arena *arena = &s->house.arena;
    rt_str data = rt_arena_printf(arena, "%.*s/skills", RT_FMT(s->house.settings.data_dir)), folder;
    rt_str directory = o->directory.len                         ? o->directory
                       : s->house.settings.skills.directory.len ? s->house.settings.skills.directory
                                                                : data;
    if (!need(o, 1, 1, "new NAME [--language L] [--in DIR]", err) ||
        !rt_skill_skeleton(directory, o->words[0], o->language.len ? o->language : RT_STR("python"),
                           arena, &folder, err))
        return false;
    printf("%.*s\n\nTry it:  retort skills run %.*s '{\"text\": \"one two three\"}'%s%.*s\n",
           RT_FMT(folder), RT_FMT(o->words[0]), o->directory.len ? " --skills-directory " : "",
           RT_FMT(o->directory));
    return true;
}

/* ---- the command ---- */

typedef enum opening { OPEN_NOTHING, OPEN_STORE, OPEN_ALL } opening;

static const struct command {
    const char *name;
    opening needs;
    bool (*call)(cli_service *s, const options *o, rt_error *err);
} commands[] = {
    { "list", OPEN_STORE, list },
    { "show", OPEN_STORE, show },
    { "run", OPEN_ALL, run },
    { "new", OPEN_NOTHING, make },
};

static bool open_what_it_needs(cli_service *s, opening needs, rt_error *err)
{
    rt_error missing = { 0 };
    sigset_t signals;
    switch (needs) {
    case OPEN_NOTHING:
        return true;
    case OPEN_STORE: /* who only looks makes no new house */
        if (!cli_house_exists(&s->house, &missing))
            return cli_skills_open(s, err);
        return cli_house_open_store(&s->house, err) &&
               rt_store_migrate(s->house.store, NULL, NULL, err) && cli_skills_open(s, err);
    default:
        return cli_house_lock(&s->house, err) && cli_service_open(s, &signals, err);
    }
}

int cli_skills(int argc, char **argv)
{
    cli_service s = { 0 };
    options o = { 0 };
    rt_error err = { 0 };
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            puts(help);
            return EXIT_GOOD;
        }
    bool ok = cli_house_read(&s.house, &argc, argv, &err);
    const struct command *command = NULL;
    for (size_t i = 0; i < RT_COUNT(commands) && argc > 1; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            command = &commands[i];
    if (ok && !command)
        ok = rt_fail(&err, RT_INVALID, "usage: retort skills list|show|run|new; --help says more");
    ok = ok && read_options(&o, argc, argv, &err) && open_what_it_needs(&s, command->needs, &err) &&
         command->call(&s, &o, &err);
    cli_service_close(&s);
    return ok ? EXIT_GOOD : cli_complain(&err);
}
