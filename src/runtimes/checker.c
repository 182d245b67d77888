/*
 * checker.c - which program looks for risks in code of a language.
 *
 * They use a real parse, not a search in the text, and run in cells like any other code: a parser
 * is as exposed as what it reads. A risk is not a refusal; it is advice for whoever decides whether
 * to run the code at all.
 */
#include "runtimes/runtimes_internal.h"

static const checker checkers[] = {
    { "python", "python", "python/check.py" },
    { "javascript", "javascript", "node/check.js" },
    { "typescript", "javascript", "node/check.js" },
    { "bash", "python", "python/check_bash.py" },
};

const checker *runtimes_checker(rt_str language)
{
    for (size_t i = 0; i < RT_COUNT(checkers); i++)
        if (rt_str_eq_c(language, checkers[i].language))
            return &checkers[i];
    return NULL;
}
