// ajv's side of the schema rows: for each case the time to compile, and to validate all instances
// with the compiled code. Formats are off on both sides.
//
//     node bench/schema/ajv.mjs build/schema-bench/*.json
import { readFileSync } from "node:fs";
import Ajv from "ajv";

const now = () => Number(process.hrtime.bigint());

// The best of so many rounds at least, and for so long. V8 takes hundreds to make the most of code as
// large as this; measured after a few, ajv would look five times slower than it is.
function best(work, rounds, milliseconds) {
    let least = Infinity;
    const end = now() + milliseconds * 1e6;
    for (let round = 0; round < rounds || now() < end; round++) {
        const began = now();
        work();
        least = Math.min(least, now() - began);
    }
    return least / 1000;
}

for (const file of process.argv.slice(2)) {
    const one = JSON.parse(readFileSync(file, "utf8"));
    const compile = () => {
        const ajv = new Ajv({ strict: false, validateFormats: false, logger: false });
        for (const schema of Object.values(one.remotes))
            ajv.addSchema(schema);
        return ajv.compile(one.schema);
    };
    const compileUs = best(compile, 2, 1000);
    const validate = compile();
    for (const instance of one.instances)
        if (!validate(instance))
            throw new Error(`${one.name}: ${JSON.stringify(validate.errors[0])}`);
    const all = () => { for (const instance of one.instances) validate(instance); };
    console.log(JSON.stringify({ name: one.name, compile_us: compileUs, validate_us: best(all, 500, 3000) }));
}
