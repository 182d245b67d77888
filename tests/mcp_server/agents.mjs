// SPDX-License-Identifier: Apache-2.0
// The official clients and a server of code agents: node agents.mjs v1|v2 http URL | stdio COMMAND ARG...
import * as v2 from "@modelcontextprotocol/client";
import { StdioClientTransport as StdioV2 } from "@modelcontextprotocol/client/stdio";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as StdioV1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as HttpV1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [kind, way, target, ...args] = process.argv.slice(2);
const info = { name: "retort-tests", version: "1" };
const isFirst = kind === "v1";
const client = isFirst ? new ClientV1(info) : new v2.Client(info, { versionNegotiation: { mode: "auto" } });
const Http = isFirst ? HttpV1 : v2.StreamableHTTPClientTransport;
const Stdio = isFirst ? StdioV1 : StdioV2;
await client.connect(way === "http" ? new Http(new URL(target))
    : new Stdio({ command: target, args, stderr: "ignore" }));
const { tools } = await client.listTools();
const answer = await client.callTool({ name: "adder", arguments: { a: 20, b: 22 } });
const wrong = await client.callTool({ name: "adder", arguments: { a: "x", b: 1 } });
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), answer: answer.structuredContent,
                             wrong: wrong.isError }));
await client.close();
