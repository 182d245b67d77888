-- 0003_tools.sql - tools that came by a file, how often each is used, and what a toolbox tool takes.

-- Names are as they came: two tools of one file may have the same one, and differ by variant.
CREATE TABLE IF NOT EXISTS tool_imports (
    name          TEXT NOT NULL,
    variant       BIGINT NOT NULL DEFAULT 0,
    title         TEXT NOT NULL DEFAULT '',
    description   TEXT NOT NULL,
    category      TEXT NOT NULL,
    server        TEXT NOT NULL,
    input_schema  TEXT NOT NULL DEFAULT '',
    output_schema TEXT NOT NULL DEFAULT '',
    imported_ms   BIGINT NOT NULL,
    PRIMARY KEY (name, variant)
);

-- By the tool's full name, "server:tool", whoever provides it; averages are worked out when read.
CREATE TABLE IF NOT EXISTS tool_usage (
    name         TEXT PRIMARY KEY,
    uses         BIGINT NOT NULL DEFAULT 0,
    failures     BIGINT NOT NULL DEFAULT 0,
    total_us     BIGINT NOT NULL DEFAULT 0,
    last_used_ms BIGINT NOT NULL
);

ALTER TABLE tools ADD COLUMN IF NOT EXISTS input_schema TEXT NOT NULL DEFAULT '{"type":"object"}';
ALTER TABLE tools ADD COLUMN IF NOT EXISTS sample_input TEXT NOT NULL DEFAULT '{}';
ALTER TABLE tools ADD COLUMN IF NOT EXISTS allowed_hosts TEXT NOT NULL DEFAULT '[]';
