// SPDX-License-Identifier: Apache-2.0
// A real OTLP receiver, on a port of the system's choice. Prints one JSON object a line: first its
// address, then each request's headers and each trace as it was decoded; other lines are the
// receiver's own summary of the trace.
const { MockOtlpServer, normalizeTrace } = require("@elastic/mockotlpserver");
const { createLogger } = require("@elastic/mockotlpserver/lib/luggite");
const { TraceWaterfallPrinter } = require("@elastic/mockotlpserver/lib/waterfall");

const say = (what) => console.log(JSON.stringify(what));
const log = createLogger({ name: "receiver" });
log.level("error");
new TraceWaterfallPrinter(log).subscribe();
const server = new MockOtlpServer({
    log,
    services: ["http"],
    httpHostname: "127.0.0.1",
    httpPort: 0,
    onRequest: (request) => say({ request }),
    onTrace: (trace) => say({ trace: normalizeTrace(trace) }),
});
server.start().then(() => say({ url: server.httpUrl }));
process.stdin.resume().on("end", () => process.exit(0));
