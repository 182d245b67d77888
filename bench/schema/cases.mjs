// Writes the cases of the schema rows, one JSON file each: {name, schema, remotes, instances}.
//
//     node bench/schema/cases.mjs build/schema-bench
//
// Three real schemas: GitHub's webhooks with GitHub's example payloads, CycloneDX 1.6 with a bill of
// materials made of the packages installed beside this file, Vega-Lite with charts.
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import Ajv from "ajv";
import { charts } from "./charts.mjs";

const modules = join(dirname(fileURLToPath(import.meta.url)), "node_modules");
const target = process.argv[2];
const read = (...path) => JSON.parse(readFileSync(join(modules, ...path), "utf8"));

function webhooks() {
    const folder = ["@octokit", "webhooks-examples", "api.github.com"];
    const schema = read("@octokit", "webhooks-schemas", "schema.json");
    // The schema has not kept up with all of the examples; those it refuses stay out.
    const ajv = new Ajv({ strict: false, validateFormats: false, logger: false });
    const isGood = ajv.compile(schema);
    return {
        name: "github-webhooks",
        schema,
        remotes: {},
        instances: read(...folder, "index.json").flatMap((event) => event.examples).filter((e) => isGood(e)),
    };
}

function packages() {
    return readdirSync(modules)
        .flatMap((name) => (name.startsWith("@")
            ? readdirSync(join(modules, name)).map((inner) => `${name}/${inner}`) : [name]))
        .filter((name) => existsSync(join(modules, name, "package.json")))
        .map((name) => read(name, "package.json"));
}

function component(pack) {
    const ref = `pkg:npm/${pack.name.replace("@", "%40")}@${pack.version}`;
    return {
        type: "library", "bom-ref": ref, name: pack.name, version: pack.version, scope: "required",
        ...(pack.description ? { description: pack.description } : {}),
        licenses: [{ license: { id: "MIT", url: "https://spdx.org/licenses/MIT.html" } }],
        hashes: [{ alg: "SHA-256", content: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" }],
        purl: ref,
        externalReferences: [
            { type: "website", url: `https://example.com/${pack.name}` },
            { type: "vcs", url: `git+https://example.com/${pack.name}.git` },
        ],
        properties: [{ name: "cdx:npm:package:path", value: `node_modules/${pack.name}` }],
    };
}

function cyclonedx() {
    const folder = ["@cyclonedx", "cyclonedx-library", "res", "schema"];
    const remotes = {};
    for (const file of ["spdx", "jsf-0.82", "cryptography-defs"]) {
        const name = `${file}.SNAPSHOT.schema.json`;
        const schema = read(...folder, name);
        schema.$id = `http://cyclonedx.org/schema/${name}`; // what the others call it in this package
        remotes[schema.$id] = schema;
    }
    const components = packages().map(component);
    return {
        name: "cyclonedx",
        schema: read(...folder, "bom-1.6.SNAPSHOT.schema.json"),
        remotes,
        instances: [{
            bomFormat: "CycloneDX", specVersion: "1.6", version: 1,
            serialNumber: "urn:uuid:3e671687-395b-41f5-a30f-a58921a69b79",
            metadata: {
                timestamp: "2024-05-17T08:14:22Z",
                tools: { components: [{ type: "application", name: "retort", version: "0.1.0" }] },
                component: { type: "application", "bom-ref": "app", name: "app", version: "1.0.0" },
            },
            components,
            dependencies: components.map((c, i) => ({
                ref: c["bom-ref"],
                dependsOn: components.slice(i + 1, i + 4).map((d) => d["bom-ref"]),
            })),
        }],
    };
}

function vegaLite() {
    return {
        name: "vega-lite",
        schema: read("vega-lite", "build", "vega-lite-schema.json"),
        remotes: {},
        instances: charts,
    };
}

mkdirSync(target, { recursive: true });
for (const one of [webhooks(), cyclonedx(), vegaLite()])
    writeFileSync(join(target, `${one.name}.json`), JSON.stringify(one));
