/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings_internal.h - what the files of the settings share.
 *
 * A layer (retort.yaml, .env, environment, flags) is first gathered as plain assignments, then all
 * are applied in the order of the layers. So the place to look for retort.yaml can depend on flags,
 * and each layer can be tested and fuzzed by itself.
 */
#ifndef RETORT_CLI_SETTINGS_INTERNAL_H
#define RETORT_CLI_SETTINGS_INTERNAL_H

#include "cli/settings.h"

#define CLI_FILE_MAX     (1u << 20) /* bytes of retort.yaml or .env */
#define CLI_VALUE_MAX    8192       /* bytes of one value */
#define CLI_KEY_MAX      64         /* bytes of a key, a name or a flag, terminator included */
#define CLI_WARNINGS_MAX 20

/* ---- the table ---- */

typedef enum cli_kind {
    CLI_COUNT,    /* uint64_t */
    CLI_BYTES,    /* uint64_t */
    CLI_DURATION, /* uint64_t, ms */
    CLI_NUMBER,   /* double */
    CLI_SWITCH,   /* bool */
    CLI_CHOICE,   /* an enum in the order of `choices` */
    CLI_TEXT,     /* rt_str; begins with one of `choices`, if there are any */
    CLI_PATH,     /* rt_str, absolute */
    CLI_LIST,     /* cli_words */
} cli_kind;

/* How the value of an environment variable differs from that of the key. */
typedef enum cli_convert {
    CLI_AS_IS,
    CLI_IN_MEGABYTES,  /* a bare number counts megabytes */
    CLI_INVERTED,      /* PML_NO_CACHE=1 is cache.enabled=false */
    CLI_PYTHON_LEVEL,  /* INFO, WARNING, CRITICAL */
    CLI_PYTHON_FORMAT, /* "%(asctime)s …" means text */
} cli_convert;

typedef struct cli_name {
    const char *name;
    cli_convert convert;
} cli_name;

typedef enum cli_secrecy { CLI_OPEN, CLI_HAS_PASSWORD, CLI_SECRET } cli_secrecy;

#define CLI_NAMES_MAX 5

typedef struct cli_setting {
    const char *key;
    cli_kind kind;
    size_t offset;                 /* in rt_settings */
    uint64_t min, max;             /* of an amount; min of a text or path: 1, it may not be empty */
    const char *choices;           /* "normal full" */
    const char *fallback;          /* the default, as text; NULL: it depends on the host */
    const char *computed;          /* then this says how */
    const char *flag;              /* "--port", beside "--server.port" */
    const char *off_flag;          /* "--no-cache" */
    cli_name names[CLI_NAMES_MAX]; /* of variables, beside RETORT_<KEY> */
    cli_secrecy secrecy;
    bool is_reserved; /* accepted; nothing reads it yet */
    const char *about;
} cli_setting;

const cli_setting *cli_setting_at(size_t i); /* NULL past the last */
const cli_setting *cli_setting_find(rt_str key);
size_t cli_setting_count(void);
size_t cli_setting_index(const cli_setting *setting);
bool cli_setting_is_section(rt_str name); /* "server", not "server.port" */

/* "server.port": "RETORT_SERVER_PORT". */
void cli_setting_variable(const cli_setting *setting, char out[CLI_KEY_MAX]);

/* ---- gathering ---- */

typedef enum cli_layer { CLI_DEFAULT, CLI_FILE, CLI_DOTENV, CLI_ENVIRONMENT, CLI_FLAG } cli_layer;

typedef struct cli_origin {
    cli_layer layer;
    rt_str source; /* "retort.yaml:12" */
} cli_origin;

typedef struct cli_assignment {
    const cli_setting *setting;
    rt_str text;
    cli_origin origin;
} cli_assignment;

typedef struct cli_gathered {
    rt_arena *arena;
    cli_assignment *items; /* in the order they were found */
    size_t count, cap;
    rt_str *warnings;
    size_t warning_count;
} cli_gathered;

void cli_gather(cli_gathered *to, const cli_setting *setting, rt_str text, cli_origin origin);
void cli_warn(cli_gathered *to, const char *fmt, ...) RT_PRINTF(2, 3);

/* Assignments from the text of a YAML file; `name` is what messages call it. */
bool cli_settings_yaml(rt_str text, const char *name, cli_gathered *to, rt_error *err);

typedef struct cli_variable {
    rt_str name, value, source;
} cli_variable;

typedef struct cli_variables {
    cli_variable *items;
    size_t count;
} cli_variables;

/* NAME=VALUE lines. A line that is none is warned about: the file may be another program's. */
cli_variables cli_dotenv_parse(rt_str text, const char *name, cli_gathered *to);
cli_variables cli_environment(char *const *environment, rt_arena *arena);
rt_str cli_variable_get(cli_variables from, const char *name); /* the last one; {NULL, 0}: none */

/* Assignments from variables; warns of names that are nearly ours. An empty value is no value. */
void cli_settings_variables(cli_variables from, cli_layer layer, cli_gathered *to);

/* Takes settings and --config out of argv. */
bool cli_settings_flags(int *argc, char **argv, cli_gathered *to, const char **config,
                        rt_error *err);

/* ---- values ---- */

/* What values depend on besides their text; and where files are looked for. */
typedef struct cli_world {
    char *const *environment;
    const char *directory; /* absolute: of ./retort.yaml, .env and relative paths */
    const char *etc;       /* /etc/retort */
    bool is_root;
    rt_str home; /* may be empty */
} cli_world;

bool cli_setting_set(rt_settings *settings, const cli_setting *setting, rt_str text,
                     const cli_world *world, rt_arena *arena, rt_error *err);

/* The value as it would be written in retort.yaml or a variable; secrets and all. */
void cli_setting_text(const rt_settings *settings, const cli_setting *setting, rt_buf *out);

/* The same for eyes: secrets as ***. */
void cli_setting_show(const rt_settings *settings, const cli_setting *setting, rt_buf *out);

/* "true", "yes", "on", "1" and their opposites, in either case. */
bool cli_switch_parse(rt_str text, bool *out);

/* cli_settings_load() for a given world. */
bool cli_settings_load_from(const cli_world *world, int *argc, char **argv, rt_arena *arena,
                            rt_settings *out, rt_error *err);

#endif
