// SPDX-License-Identifier: Apache-2.0
// A server made with the official SDK (v2), which speaks both eras.
//
//     node modern.mjs stdio|http [reject]       reject: the modern era only
//
// Over HTTP it writes its URL as the first line.
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { serve } from '@hono/node-server';
import { z } from 'zod';

const legacy = process.argv[3] ?? 'serve';
let extra = false;

function makeServer() {
    const server = new McpServer({ name: 'modern', version: '2.0.0' }, { capabilities: { tools: { listChanged: true } } });
    server.registerTool(
        'add',
        {
            title: 'Add', description: 'Adds two numbers',
            inputSchema: z.object({ a: z.number(), b: z.number() }), outputSchema: z.object({ sum: z.number() }),
            annotations: { readOnlyHint: true, idempotentHint: true }
        },
        async ({ a, b }) => ({ content: [{ type: 'text', text: String(a + b) }], structuredContent: { sum: a + b } })
    );
    server.registerTool('fail', { description: 'Fails', inputSchema: z.object({}) }, async () => {
        throw new Error('on purpose');
    });
    server.registerTool('grow', { description: 'Gets another tool', inputSchema: z.object({}) }, async () => {
        extra = true;
        if (handler) handler.notify.toolsChanged();
        else server.registerTool('more', { description: 'More', inputSchema: z.object({}) }, async () => ({ content: [] }));
        return { content: [{ type: 'text', text: 'grown' }] };
    });
    if (extra) server.registerTool('more', { description: 'More', inputSchema: z.object({}) }, async () => ({ content: [] }));
    server.registerResource('note', 'note://one', { mimeType: 'text/plain' }, async uri => ({ contents: [{ uri: uri.href, text: 'a note' }] }));
    return server;
}

let handler;
if (process.argv[2] === 'http') {
    handler = createMcpHandler(makeServer, { legacy });
    serve({ fetch: request => handler.fetch(request), port: 0, hostname: '127.0.0.1' }, info =>
        console.log(`http://127.0.0.1:${info.port}/mcp`));
    process.stdin.resume();
    process.stdin.on('end', () => process.exit(0));
} else {
    serveStdio(makeServer, { legacy });
}
