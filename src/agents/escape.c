/* SPDX-License-Identifier: Apache-2.0 */
/*
 * escape.c - what in code looks like a way out of its cell.
 *
 * Two looks: the language's own parser, in a cell (rt_engine_validate), and a list of words that
 * have no business in ordinary code of any language. Both can be fooled, and neither is a wall;
 * they are for whoever decides whether to publish or to run something.
 */
#include "agents/agents_internal.h"

#include <string.h>

typedef enum severity { NONE, LOW, MEDIUM, HIGH, CRITICAL } severity;

static const char *const severities[] = { "", "low", "medium", "high", "critical" };

#define FINDINGS_MAX 100

/* Words of the text. */
static const struct {
    const char *category;
    severity severity;
    const char *word;
} words[] = {
    { "fileSystem", HIGH, "/etc/passwd" },
    { "fileSystem", HIGH, "/etc/shadow" },
    { "fileSystem", HIGH, "/proc/self" },
    { "fileSystem", HIGH, "/proc/1/" },
    { "fileSystem", HIGH, "/sys/fs/cgroup" },
    { "fileSystem", HIGH, "docker.sock" },
    { "fileSystem", HIGH, "rm -rf /" },
    { "process", HIGH, "os.system" },
    { "process", HIGH, "os.popen" },
    { "process", HIGH, "os.fork" },
    { "process", HIGH, "subprocess." },
    { "process", HIGH, "child_process" },
    { "process", HIGH, ":(){" },
    { "network", MEDIUM, "socket." },
    { "network", MEDIUM, "/dev/tcp/" },
    { "network", MEDIUM, "curl " },
    { "network", MEDIUM, "wget " },
    { "network", MEDIUM, "XMLHttpRequest" },
    { "network", MEDIUM, "169.254.169.254" },
    { "nodejs", MEDIUM, "process.binding" },
    { "nodejs", MEDIUM, "process.env" },
    { "nodejs", MEDIUM, "constructor.constructor" },
    { "python", MEDIUM, "__subclasses__" },
    { "python", MEDIUM, "__globals__" },
    { "python", MEDIUM, "__import__" },
    { "memory", CRITICAL, "/dev/mem" },
    { "memory", CRITICAL, "/proc/kcore" },
    { "memory", CRITICAL, "process_vm_writev" },
    { "memory", CRITICAL, "LD_PRELOAD" },
    { "syscalls", CRITICAL, "ptrace" },
    { "syscalls", CRITICAL, "unshare" },
    { "syscalls", CRITICAL, "nsenter" },
    { "syscalls", CRITICAL, "setns" },
    { "syscalls", CRITICAL, "pivot_root" },
    { "syscalls", CRITICAL, "init_module" },
    { "syscalls", CRITICAL, "ctypes.CDLL" },
};

/* What the parser's findings are about, by a word in their message; the first that fits. */
static const struct {
    const char *kind, *word;
    const char *category;
    severity severity;
} kinds[] = {
    { "import", "subprocess", "process", HIGH },
    { "import", "multiprocessing", "process", HIGH },
    { "import", "child_process", "process", HIGH },
    { "import", "cluster", "process", HIGH },
    { "import", "ctypes", "memory", CRITICAL },
    { "import", "socket", "network", MEDIUM },
    { "import", "urllib", "network", MEDIUM },
    { "import", "requests", "network", MEDIUM },
    { "import", "http", "network", MEDIUM },
    { "import", "ftplib", "network", MEDIUM },
    { "import", "smtplib", "network", MEDIUM },
    { "import", "telnetlib", "network", MEDIUM },
    { "import", "net'", "network", MEDIUM },
    { "import", "dns", "network", MEDIUM },
    { "import", "tls", "network", MEDIUM },
    { "import", "dgram", "network", MEDIUM },
    { "import", "fs", "fileSystem", MEDIUM },
    { "import", "shutil", "fileSystem", MEDIUM },
    { "import", "'os", "fileSystem", MEDIUM },
    { "import", "", "code", LOW },
    { "call", "open", "fileSystem", LOW },
    { "call", "", "python", MEDIUM },
    { "introspection", "", "python", MEDIUM },
    { "eval", "", "nodejs", MEDIUM },
    { "prototype", "", "nodejs", MEDIUM },
    { "process", "", "process", HIGH },
    { "network", "", "network", MEDIUM },
};

typedef struct look {
    rt_json_writer w;
    severity worst;
    size_t count;
} look;

static void add(look *l, const char *category, severity how, rt_str what, rt_arena *arena)
{
    if (l->count++ < FINDINGS_MAX)
        rt_jw_str(&l->w, rt_arena_printf(arena, "%s: %.*s", category, RT_FMT(what)));
    l->worst = RT_MAX(l->worst, how);
}

static void look_for_words(look *l, rt_str code, rt_arena *arena)
{
    for (size_t i = 0; i < RT_COUNT(words); i++)
        if (rt_str_find(code, rt_str_of(words[i].word)) >= 0)
            add(l, words[i].category, words[i].severity, rt_str_of(words[i].word), arena);
}

static void look_at_risk(look *l, rt_json risk, rt_arena *arena)
{
    rt_str kind = rt_json_str(rt_json_get_c(risk, "kind"));
    rt_str message = rt_json_str(rt_json_get_c(risk, "message"));
    int64_t line = 0;
    rt_json_i64(rt_json_get_c(risk, "line"), &line);
    for (size_t i = 0; i < RT_COUNT(kinds); i++) {
        if (!rt_str_eq_c(kind, kinds[i].kind) || rt_str_find(message, rt_str_of(kinds[i].word)) < 0)
            continue;
        add(l, kinds[i].category, kinds[i].severity,
            rt_arena_printf(arena, "%.*s on line %lld", RT_FMT(message), (long long)line), arena);
        return;
    }
}

static bool parse_severity(rt_str name, severity *out, rt_error *err)
{
    if (name.len == 0)
        name = RT_STR("high");
    for (size_t s = LOW; s <= CRITICAL; s++)
        if (rt_str_eq_c(name, severities[s])) {
            *out = (severity)s;
            return true;
        }
    return rt_fail(err, RT_INVALID, "'blockThreshold' must be low, medium, high or critical");
}

static const char *recommend(severity worst)
{
    switch (worst) {
    case CRITICAL:
    case HIGH:
        return "Read the code before it runs or is published. In a cell these attempts are refused "
               "and put on record; a grant in its policy would change that.";
    case MEDIUM:
        return "See that the policy grants no more than the code needs.";
    case LOW:
        return "Nothing unusual; a look does no harm.";
    default:
        return "Nothing was found that looks like a way out.";
    }
}

bool rt_agents_check_escape(rt_agents *a, const rt_caller *caller, rt_str language, rt_str code,
                            rt_str threshold, rt_arena *arena, rt_escape_report *out, rt_error *err)
{
    rt_buf patterns RT_CLEANUP(rt_buf_done) = { 0 };
    const rt_language *known = rt_language_find(language);
    severity blocked = HIGH;
    rt_verdict verdict = { 0 };
    rt_json risks = { 0 }, risk;
    look l = { 0 };
    if (!parse_severity(threshold, &blocked, err))
        return false;
    if (rt_str_trim(code).len == 0)
        return rt_fail(err, RT_INVALID, "MISSING_CODE: 'code' is empty");
    if (!known)
        return rt_language_unknown(language, err) || rt_wrap(err, "UNSUPPORTED_LANGUAGE");
    if (a->config.engine && !rt_engine_validate(a->config.engine, caller, rt_str_of(known->name),
                                                code, arena, &verdict, err))
        return rt_wrap(err, "look at the code");
    rt_json_begin(&l.w, &patterns);
    rt_jw_array(&l.w);
    look_for_words(&l, code, arena);
    agents_json_parse(verdict.risks, arena, &risks);
    rt_json_iter it = rt_json_each(risks);
    while (rt_json_next(&it, NULL, &risk))
        look_at_risk(&l, risk, arena);
    rt_jw_end(&l.w);
    *out = (rt_escape_report){
        .is_detected = l.worst > LOW,
        .severity = rt_str_of(severities[l.worst > LOW ? l.worst : LOW]),
        .patterns = rt_arena_str(arena, rt_buf_str(&patterns)),
        .description = l.count > 0 ? rt_arena_printf(arena,
                                                     "%zu places that look like a way out of "
                                                     "the sandbox",
                                                     l.count)
                                   : RT_STR("No way out of the sandbox was found"),
        .recommendation = rt_str_of(recommend(l.worst)),
        .should_block = l.worst >= blocked,
    };
    return true;
}
