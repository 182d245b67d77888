/* SPDX-License-Identifier: Apache-2.0 */
/* tools_view.h - tools as HTTP and MCP show them. */
#ifndef RT_SERVER_TOOLS_VIEW_H
#define RT_SERVER_TOOLS_VIEW_H

#include "server/server.h"

#define TOOLS_SEARCH_DEFAULT 10
#define TOOLS_SEARCH_MAX     50
#define TOOLS_CONTEXT_MAX    32
#define TOOLS_GATHER_MS      5000 /* how long servers that are just starting are waited for */

/* {"tools":[…],"meta":{query,count,alpha,edge_count}}: what a sentence may mean to
 * an organisation. */
void tools_write_search(rt_tools *tools, rt_str audience, rt_str query, const rt_str *context,
                        size_t context_count, size_t limit, bool has_related, rt_arena *arena,
                        rt_json_writer *w);

#endif
