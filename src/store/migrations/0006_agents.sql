-- 0006_agents.sql - code agents: code with a name, versions and schemas, found and called by others.

-- The content of the current version stands here too, so that looking at an agent is one row. What
-- decides who may see it comes first, and what may be large last: a row that is not shown costs as
-- much as one that is not there.
CREATE TABLE IF NOT EXISTS code_agents (
    id                TEXT PRIMARY KEY,
    organisation_id   TEXT NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
    workspace_id      TEXT NOT NULL DEFAULT '',  -- '': of the whole organisation
    is_public         BOOLEAN NOT NULL DEFAULT FALSE,
    is_deprecated     BOOLEAN NOT NULL DEFAULT FALSE,
    is_tool           BOOLEAN NOT NULL DEFAULT FALSE,
    user_id           TEXT,
    name              TEXT NOT NULL,
    tool_name         TEXT NOT NULL,             -- the name in lower case, other characters as '-'
    tool_version      TEXT,                      -- what the tool runs: a version, or 'latest'
    description       TEXT,
    deprecation       TEXT,                      -- what to use instead
    version           TEXT NOT NULL DEFAULT '1.0.0',
    language          TEXT NOT NULL,
    runtime           TEXT NOT NULL DEFAULT 'vm2',
    validation_type   TEXT NOT NULL DEFAULT 'zod' CHECK (validation_type IN ('zod', 'pydantic')),
    entry_point       TEXT,
    usage_count       BIGINT NOT NULL DEFAULT 0,
    created_ms        BIGINT NOT NULL,
    updated_ms        BIGINT NOT NULL,
    code_bytes        BIGINT NOT NULL DEFAULT 0,
    code_storage_path TEXT,                      -- in the object directory; then code is empty
    metadata          TEXT NOT NULL DEFAULT '{}',
    changelog         TEXT NOT NULL DEFAULT '[]',
    packages          TEXT NOT NULL DEFAULT '[]',
    tools             TEXT NOT NULL DEFAULT '[]',
    policy            TEXT,
    input_schema      TEXT,
    output_schema     TEXT,
    environment       BYTEA,                     -- sealed by the node's vault
    files             TEXT NOT NULL DEFAULT '{}',
    code              TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX IF NOT EXISTS code_agents_by_name
    ON code_agents (organisation_id, workspace_id, tool_name);
CREATE INDEX IF NOT EXISTS code_agents_by_time ON code_agents (organisation_id, created_ms, id);
CREATE INDEX IF NOT EXISTS code_agents_public ON code_agents (created_ms, id) WHERE is_public;

CREATE TABLE IF NOT EXISTS code_agent_versions (
    id                TEXT PRIMARY KEY,
    code_agent_id     TEXT NOT NULL REFERENCES code_agents (id) ON DELETE CASCADE,
    version           TEXT NOT NULL,
    user_id           TEXT,
    created_ms        BIGINT NOT NULL,
    changelog         TEXT,                      -- what this version changes, in words
    language          TEXT NOT NULL,
    runtime           TEXT NOT NULL DEFAULT 'vm2',
    validation_type   TEXT NOT NULL DEFAULT 'zod',
    entry_point       TEXT,
    code_bytes        BIGINT NOT NULL DEFAULT 0,
    code_storage_path TEXT,
    packages          TEXT NOT NULL DEFAULT '[]',
    tools             TEXT NOT NULL DEFAULT '[]',
    policy            TEXT,
    input_schema      TEXT,
    output_schema     TEXT,
    environment       BYTEA,
    files             TEXT NOT NULL DEFAULT '{}',
    code              TEXT NOT NULL DEFAULT '',
    UNIQUE (code_agent_id, version)
);
CREATE INDEX IF NOT EXISTS code_agent_versions_by_time
    ON code_agent_versions (code_agent_id, created_ms, id);

-- Agents that are served together, as an MCP server of their own.
CREATE TABLE IF NOT EXISTS code_agent_servers (
    organisation_id TEXT NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
    workspace_id    TEXT NOT NULL DEFAULT '',
    name            TEXT NOT NULL,
    protocol        TEXT NOT NULL DEFAULT 'http' CHECK (protocol IN ('stdio', 'http', 'sse')),
    agents          TEXT NOT NULL,               -- JSON: [{"id":…,"version":…}, …]
    created_ms      BIGINT NOT NULL,
    updated_ms      BIGINT NOT NULL,
    PRIMARY KEY (organisation_id, workspace_id, name)
);

ALTER TABLE executions ADD COLUMN IF NOT EXISTS code_agent_version TEXT;

-- What an organisation means to spend in a month, and that it was told when that was nearly spent.
CREATE TABLE IF NOT EXISTS budgets (
    organisation_id TEXT PRIMARY KEY REFERENCES organisations (id) ON DELETE CASCADE,
    usd_month       DOUBLE PRECISION NOT NULL CHECK (usd_month >= 0),
    alert_percent   DOUBLE PRECISION NOT NULL CHECK (alert_percent > 0),
    updated_ms      BIGINT NOT NULL
);

CREATE TABLE IF NOT EXISTS budget_alerts (
    organisation_id TEXT NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
    month           TEXT NOT NULL,               -- '2026-11'
    alert_percent   DOUBLE PRECISION NOT NULL,
    spent_usd       DOUBLE PRECISION NOT NULL,
    budget_usd      DOUBLE PRECISION NOT NULL,
    created_ms      BIGINT NOT NULL,
    PRIMARY KEY (organisation_id, month, alert_percent)
);

-- A GPU's time is charged apart from the rest.
ALTER TABLE executions ADD COLUMN IF NOT EXISTS gpu_us BIGINT NOT NULL DEFAULT 0;
ALTER TABLE costs ADD COLUMN IF NOT EXISTS gpu_minutes DOUBLE PRECISION NOT NULL DEFAULT 0;

-- The record of runs, and the schemas they are held to, as others look for them.
CREATE OR REPLACE VIEW code_exec_logs AS
    SELECT id, code_agent_id, workflow_execution_id, node_id, runtime, language,
           duration_us / 1000 AS duration_ms, memory_peak_bytes / 1048576 AS memory_mb, exit_code,
           status = 'SUCCESS' AS success, error_message, tokens AS tokens_used,
           is_validation_passed AS validation_passed, organisation_id, workspace_id, user_id,
           created_ms
      FROM executions;

CREATE OR REPLACE VIEW code_schemas AS
    SELECT id AS code_id, 'code_agent' AS code_type, input_schema, output_schema, validation_type,
           organisation_id, workspace_id, created_ms, updated_ms
      FROM code_agents;
