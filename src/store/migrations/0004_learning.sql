-- 0004_learning.sql - what is learned while tools are used: patterns with parameters, the shapes of
-- results, and which tool is called after which.

ALTER TABLE snippets ADD COLUMN IF NOT EXISTS parameters TEXT NOT NULL DEFAULT '{"type":"object"}';
ALTER TABLE snippets ADD COLUMN IF NOT EXISTS steps TEXT NOT NULL DEFAULT '[]';
ALTER TABLE snippets ADD COLUMN IF NOT EXISTS runs BIGINT NOT NULL DEFAULT 0;
ALTER TABLE snippets ADD COLUMN IF NOT EXISTS successes BIGINT NOT NULL DEFAULT 0;

-- Whether an organisation got the sample patterns: those it deletes do not come back.
CREATE TABLE IF NOT EXISTS snippet_samples (
    organisation_id TEXT PRIMARY KEY REFERENCES organisations (id) ON DELETE CASCADE,
    added_ms        BIGINT NOT NULL
);

-- What results of a tool look like, where its server does not say. No value of any result is here.
CREATE TABLE IF NOT EXISTS tool_shapes (
    name       TEXT PRIMARY KEY,
    version    TEXT NOT NULL,                -- the tool's: of another one, the results were others
    samples    BIGINT NOT NULL,
    shape      TEXT NOT NULL,                -- JSON Schema
    updated_ms BIGINT NOT NULL
);

-- In one run, `second` was called next after `first`.
CREATE TABLE IF NOT EXISTS tool_sequences (
    first   TEXT NOT NULL,
    second  TEXT NOT NULL,
    times   BIGINT NOT NULL DEFAULT 0,
    last_ms BIGINT NOT NULL,
    PRIMARY KEY (first, second)
);
