// SPDX-License-Identifier: Apache-2.0
// The official clients: node clients.mjs v1|v2-legacy|v2-auto|v2-modern http URL | stdio COMMAND ARG...
// Lists the tools, calls one, watches another, lets one fail; tells what it saw as one JSON object.
import * as v2 from "@modelcontextprotocol/client";
import { StdioClientTransport as StdioV2 } from "@modelcontextprotocol/client/stdio";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as StdioV1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as HttpV1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [kind, way, target, ...args] = process.argv.slice(2);
const info = { name: "retort-tests", version: "1" };
const isFirst = kind === "v1";
const mode = { "v2-auto": "auto", "v2-legacy": "legacy", "v2-modern": { pin: "2026-07-28" } }[kind];
const client = isFirst ? new ClientV1(info) : new v2.Client(info, { versionNegotiation: { mode } });
const Http = isFirst ? HttpV1 : v2.StreamableHTTPClientTransport;
const Stdio = isFirst ? StdioV1 : StdioV2;
const transport = way === "http" ? new Http(new URL(target))
    : new Stdio({ command: target, args, stderr: "ignore" });

const call = (params, options) =>
    isFirst ? client.callTool(params, undefined, options) : client.callTool(params, options);

await client.connect(transport);
const { tools } = await client.listTools();
const run = await call({ name: "pml_execute_code", arguments: { code: "return 6 * 7" } });
const progress = [];
// The clients forget who listens when the answer comes in the same breath, so it waits a little.
await call({ name: "pml_execute_code",
             arguments: { language: "python", sandbox_config: { piiProtection: false },
                          code: `import time\nprint('one')\nprint('two', flush=True)\n`
                                + `time.sleep(0.3) # ${process.pid}` } },
           { onprogress: (step) => progress.push(step.message) });
const failed = await call({ name: "pml_execute_code", arguments: { code: "nope(" } })
    .then(() => null, (error) => ({ code: error.code, message: error.message }));
const resources = await client.listResourceTemplates();
console.log(JSON.stringify({
    tools: tools.map((tool) => tool.name),
    result: run.structuredContent.result,
    progress, failed,
    templates: resources.resourceTemplates.map((one) => one.uriTemplate),
    server: client.getServerVersion?.()?.name,
}));
await client.close();
