/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metaschemas.c - the schemas of schemas, as json-schema.org publishes them.
 *
 * They are here so that a schema may refer to them; what a schema must look like is told by the
 * rows of keywords.c. The files are part of the program; the Makefile knows that this object
 * depends on them.
 */
#include "schema/schema_internal.h"

#define EMBED(symbol, file)                                                                        \
    __asm__(".section .rodata\n" #symbol ":\n"                                                     \
            ".incbin \"src/schema/metaschemas/" file "\"\n" #symbol "_end:\n"                      \
            ".byte 0\n"                                                                            \
            ".previous\n");                                                                        \
    extern const char symbol[], symbol##_end[];

/* clang-format off */
EMBED(schema_meta_2019_09_applicator, "2019-09-applicator.json")
EMBED(schema_meta_2019_09_content, "2019-09-content.json")
EMBED(schema_meta_2019_09_core, "2019-09-core.json")
EMBED(schema_meta_2019_09_format, "2019-09-format.json")
EMBED(schema_meta_2019_09_meta_data, "2019-09-meta-data.json")
EMBED(schema_meta_2019_09_validation, "2019-09-validation.json")
EMBED(schema_meta_2019_09, "2019-09.json")
EMBED(schema_meta_2020_12_applicator, "2020-12-applicator.json")
EMBED(schema_meta_2020_12_content, "2020-12-content.json")
EMBED(schema_meta_2020_12_core, "2020-12-core.json")
EMBED(schema_meta_2020_12_format_annotation, "2020-12-format-annotation.json")
EMBED(schema_meta_2020_12_format_assertion, "2020-12-format-assertion.json")
EMBED(schema_meta_2020_12_meta_data, "2020-12-meta-data.json")
EMBED(schema_meta_2020_12_unevaluated, "2020-12-unevaluated.json")
EMBED(schema_meta_2020_12_validation, "2020-12-validation.json")
EMBED(schema_meta_2020_12, "2020-12.json")
EMBED(schema_meta_draft_04, "draft-04.json")
EMBED(schema_meta_draft_06, "draft-06.json")
EMBED(schema_meta_draft_07, "draft-07.json")
/* clang-format on */

static const struct {
    const char *uri, *text, *end;
} metaschemas[] = {
    { "https://json-schema.org/draft/2019-09/meta/applicator", schema_meta_2019_09_applicator,
      schema_meta_2019_09_applicator_end },
    { "https://json-schema.org/draft/2019-09/meta/content", schema_meta_2019_09_content,
      schema_meta_2019_09_content_end },
    { "https://json-schema.org/draft/2019-09/meta/core", schema_meta_2019_09_core,
      schema_meta_2019_09_core_end },
    { "https://json-schema.org/draft/2019-09/meta/format", schema_meta_2019_09_format,
      schema_meta_2019_09_format_end },
    { "https://json-schema.org/draft/2019-09/meta/meta-data", schema_meta_2019_09_meta_data,
      schema_meta_2019_09_meta_data_end },
    { "https://json-schema.org/draft/2019-09/meta/validation", schema_meta_2019_09_validation,
      schema_meta_2019_09_validation_end },
    { "https://json-schema.org/draft/2019-09/schema", schema_meta_2019_09,
      schema_meta_2019_09_end },
    { "https://json-schema.org/draft/2020-12/meta/applicator", schema_meta_2020_12_applicator,
      schema_meta_2020_12_applicator_end },
    { "https://json-schema.org/draft/2020-12/meta/content", schema_meta_2020_12_content,
      schema_meta_2020_12_content_end },
    { "https://json-schema.org/draft/2020-12/meta/core", schema_meta_2020_12_core,
      schema_meta_2020_12_core_end },
    { "https://json-schema.org/draft/2020-12/meta/format-annotation",
      schema_meta_2020_12_format_annotation, schema_meta_2020_12_format_annotation_end },
    { "https://json-schema.org/draft/2020-12/meta/format-assertion",
      schema_meta_2020_12_format_assertion, schema_meta_2020_12_format_assertion_end },
    { "https://json-schema.org/draft/2020-12/meta/meta-data", schema_meta_2020_12_meta_data,
      schema_meta_2020_12_meta_data_end },
    { "https://json-schema.org/draft/2020-12/meta/unevaluated", schema_meta_2020_12_unevaluated,
      schema_meta_2020_12_unevaluated_end },
    { "https://json-schema.org/draft/2020-12/meta/validation", schema_meta_2020_12_validation,
      schema_meta_2020_12_validation_end },
    { "https://json-schema.org/draft/2020-12/schema", schema_meta_2020_12,
      schema_meta_2020_12_end },
    { "http://json-schema.org/draft-04/schema", schema_meta_draft_04, schema_meta_draft_04_end },
    { "http://json-schema.org/draft-06/schema", schema_meta_draft_06, schema_meta_draft_06_end },
    { "http://json-schema.org/draft-07/schema", schema_meta_draft_07, schema_meta_draft_07_end },
};

rt_str schema_metaschema_text(rt_str uri)
{
    for (size_t i = 0; i < RT_COUNT(metaschemas); i++)
        if (rt_str_eq_c(uri, metaschemas[i].uri))
            return (rt_str){ metaschemas[i].text,
                             (size_t)(metaschemas[i].end - metaschemas[i].text) };
    return RT_STR("");
}
