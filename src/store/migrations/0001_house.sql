-- 0001_house.sql - everything Retort remembers.
--
-- One text for SQLite and PostgreSQL. Times are milliseconds since 1970, sizes are bytes, lists and
-- objects are JSON in TEXT. A column that may say something about a person's data is NULL once it
-- is erased. On SQLite "BIGSERIAL PRIMARY KEY" is read as "INTEGER PRIMARY KEY"; see migrations.c.
-- Every statement may be run again and changes nothing then.

-- Who ----------------------------------------------------------------------------------------

CREATE TABLE IF NOT EXISTS organisations (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    salt       BYTEA,                -- for tombstones of erased users; made when first needed
    created_ms BIGINT NOT NULL
);

CREATE TABLE IF NOT EXISTS workspaces (
    organisation_id TEXT NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
    id              TEXT NOT NULL,
    name            TEXT NOT NULL,
    created_ms      BIGINT NOT NULL,
    PRIMARY KEY (organisation_id, id),
    UNIQUE (organisation_id, name)
);

CREATE TABLE IF NOT EXISTS users (
    organisation_id TEXT NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
    id              TEXT NOT NULL,
    name            TEXT NOT NULL,
    created_ms      BIGINT NOT NULL,
    PRIMARY KEY (organisation_id, id),
    UNIQUE (organisation_id, name)
);

CREATE TABLE IF NOT EXISTS api_keys (
    id               TEXT PRIMARY KEY,
    name             TEXT NOT NULL,
    prefix           TEXT NOT NULL,          -- the first characters, to tell keys apart
    secret_sha256    TEXT NOT NULL UNIQUE,   -- 64 hexadecimal digits
    organisation_id  TEXT NOT NULL,
    workspace_id     TEXT NOT NULL,
    user_id          TEXT NOT NULL,
    role             TEXT NOT NULL CHECK (role IN ('viewer', 'member', 'admin', 'owner')),
    created_ms       BIGINT NOT NULL,
    expires_ms       BIGINT NOT NULL DEFAULT 0,   -- 0: never
    revoked_ms       BIGINT NOT NULL DEFAULT 0,   -- 0: not revoked
    last_used_ms     BIGINT NOT NULL DEFAULT 0,
    rate_per_minute  BIGINT NOT NULL DEFAULT 0,
    max_body_bytes   BIGINT NOT NULL DEFAULT 0,
    budget_usd_month DOUBLE PRECISION NOT NULL DEFAULT 0,
    FOREIGN KEY (organisation_id, workspace_id) REFERENCES workspaces (organisation_id, id)
        ON DELETE CASCADE,
    FOREIGN KEY (organisation_id, user_id) REFERENCES users (organisation_id, id) ON DELETE CASCADE
);
CREATE INDEX IF NOT EXISTS api_keys_by_organisation ON api_keys (organisation_id, created_ms);

-- Tools, snippets, files -----------------------------------------------------------------------

CREATE TABLE IF NOT EXISTS tool_categories (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    description TEXT,
    icon        TEXT,
    created_ms  BIGINT NOT NULL,
    updated_ms  BIGINT NOT NULL
);

CREATE TABLE IF NOT EXISTS tools (
    id                TEXT PRIMARY KEY,
    name              TEXT NOT NULL UNIQUE,
    description       TEXT NOT NULL,
    version           TEXT NOT NULL DEFAULT '1.0.0',
    category_id       TEXT NOT NULL REFERENCES tool_categories (id) ON DELETE CASCADE,
    code_template     TEXT NOT NULL,
    language          TEXT NOT NULL,
    required_packages TEXT NOT NULL DEFAULT '[]',
    usage_count       BIGINT NOT NULL DEFAULT 0,
    last_used_ms      BIGINT,
    average_exec_ms   DOUBLE PRECISION,
    requires_sandbox  BOOLEAN NOT NULL DEFAULT TRUE,
    max_memory_mb     BIGINT NOT NULL DEFAULT 512,
    max_timeout_sec   BIGINT NOT NULL DEFAULT 30,
    is_active         BOOLEAN NOT NULL DEFAULT TRUE,
    is_deprecated     BOOLEAN NOT NULL DEFAULT FALSE,
    created_ms        BIGINT NOT NULL,
    updated_ms        BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS tools_by_category ON tools (category_id);
CREATE INDEX IF NOT EXISTS tools_by_active ON tools (is_active);

CREATE TABLE IF NOT EXISTS snippets (
    id              TEXT PRIMARY KEY,
    organisation_id TEXT NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
    user_id         TEXT,
    name            TEXT NOT NULL,
    description     TEXT,
    category        TEXT NOT NULL DEFAULT 'general',
    code            TEXT NOT NULL,
    language        TEXT NOT NULL,
    tags            TEXT NOT NULL DEFAULT '[]',
    usage_count     BIGINT NOT NULL DEFAULT 0,
    success_rate    DOUBLE PRECISION NOT NULL DEFAULT 100.0,
    last_used_ms    BIGINT,
    learned_from    TEXT,                    -- an execution's id
    average_exec_ms DOUBLE PRECISION,
    average_cost_usd DOUBLE PRECISION,
    created_ms      BIGINT NOT NULL,
    updated_ms      BIGINT NOT NULL,
    UNIQUE (organisation_id, name)
);
CREATE INDEX IF NOT EXISTS snippets_by_category ON snippets (organisation_id, category);
CREATE INDEX IF NOT EXISTS snippets_by_tags ON snippets (tags);
CREATE INDEX IF NOT EXISTS snippets_by_user ON snippets (organisation_id, user_id);

CREATE TABLE IF NOT EXISTS file_index (
    id              TEXT PRIMARY KEY,
    organisation_id TEXT NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
    user_id         TEXT,
    file_name       TEXT NOT NULL,
    display_name    TEXT,
    file_type       TEXT NOT NULL,
    file_size       BIGINT NOT NULL,
    file_path       TEXT,
    sha256          TEXT,
    gemini_file_id  TEXT NOT NULL UNIQUE,
    index_status    TEXT NOT NULL DEFAULT 'INDEXING'
        CHECK (index_status IN ('INDEXING', 'READY', 'FAILED')),
    query_count     BIGINT NOT NULL DEFAULT 0,
    last_queried_ms BIGINT,
    expires_ms      BIGINT,
    category        TEXT NOT NULL DEFAULT 'OTHER'
        CHECK (category IN ('PAYROLL', 'FINANCIAL', 'HRIS', 'ERP', 'CRM', 'COMPLIANCE', 'AI_LOGS',
                            'OTHER')),
    tags            TEXT NOT NULL DEFAULT '[]',
    created_ms      BIGINT NOT NULL,
    updated_ms      BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS file_index_by_status ON file_index (index_status);
CREATE INDEX IF NOT EXISTS file_index_by_category ON file_index (organisation_id, category);
CREATE INDEX IF NOT EXISTS file_index_by_user ON file_index (organisation_id, user_id);

-- Runs ---------------------------------------------------------------------------------------

CREATE TABLE IF NOT EXISTS executions (
    id                    TEXT PRIMARY KEY,
    organisation_id       TEXT NOT NULL REFERENCES organisations (id),
    workspace_id          TEXT,
    user_id               TEXT,              -- as the caller says: need not be in users
    key_id                TEXT,
    actor_type            TEXT,
    agent_type            TEXT,
    surface               TEXT,
    session_id            TEXT,
    tool_id               TEXT REFERENCES tools (id) ON DELETE SET NULL,
    code_agent_id         TEXT,
    workflow_execution_id TEXT,
    node_id               TEXT,
    skill_name            TEXT,
    skill_version         TEXT,
    idempotency_key       TEXT,
    request_hash          TEXT,
    host                  TEXT,
    trace_id              TEXT,
    language              TEXT NOT NULL,
    runtime               TEXT,
    sandbox_id            TEXT,
    policy_name           TEXT,
    status                TEXT NOT NULL
        CHECK (status IN ('QUEUED', 'RUNNING', 'SUCCESS', 'FAILED', 'TIMEOUT', 'MEMORY_ERROR',
                          'CANCELLED')),
    exit_code             BIGINT NOT NULL DEFAULT 0,
    error_type            TEXT,
    error_message         TEXT,
    code_hash             TEXT,
    input_hash            TEXT,
    output_hash           TEXT,
    transcript_hash       TEXT,
    code_bytes            BIGINT NOT NULL DEFAULT 0,
    input_bytes           BIGINT NOT NULL DEFAULT 0,
    output_bytes          BIGINT NOT NULL DEFAULT 0,
    memory_limit_bytes    BIGINT NOT NULL DEFAULT 0,
    timeout_ms            BIGINT NOT NULL DEFAULT 0,
    duration_us           BIGINT NOT NULL DEFAULT 0,
    cpu_us                BIGINT NOT NULL DEFAULT 0,
    memory_peak_bytes     BIGINT NOT NULL DEFAULT 0,
    is_timed_out          BOOLEAN NOT NULL DEFAULT FALSE,
    is_cached             BOOLEAN NOT NULL DEFAULT FALSE,
    is_validation_passed  BOOLEAN,           -- NULL: nothing was validated
    is_pii_in             BOOLEAN NOT NULL DEFAULT FALSE,
    is_pii_out            BOOLEAN NOT NULL DEFAULT FALSE,
    is_pii_masked         BOOLEAN NOT NULL DEFAULT FALSE,
    pii_types             TEXT NOT NULL DEFAULT '[]',
    tool_ids              TEXT NOT NULL DEFAULT '[]',
    attestation           TEXT NOT NULL DEFAULT '{}',
    denials               BIGINT NOT NULL DEFAULT 0,
    tokens                BIGINT NOT NULL DEFAULT 0,
    tokens_saved          BIGINT NOT NULL DEFAULT 0,
    tokens_cached         BIGINT NOT NULL DEFAULT 0,
    cost_usd              DOUBLE PRECISION NOT NULL DEFAULT 0,
    traditional_cost_usd  DOUBLE PRECISION NOT NULL DEFAULT 0,
    is_cost_tracked       BOOLEAN NOT NULL DEFAULT FALSE,
    kept_input            BYTEA,             -- these three only when the operator keeps them
    kept_output           BYTEA,
    kept_code             BYTEA,
    answer                BYTEA,             -- of a run with an idempotency key
    created_ms            BIGINT NOT NULL,
    started_ms            BIGINT NOT NULL DEFAULT 0,
    finished_ms           BIGINT NOT NULL DEFAULT 0
);
-- Every index is a page more to write for each run: those that most runs can do without are
-- partial. Lists are ordered by created_ms and id, so the indexes end with both.
CREATE UNIQUE INDEX IF NOT EXISTS executions_by_idempotency_key
    ON executions (organisation_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX IF NOT EXISTS executions_by_time ON executions (organisation_id, created_ms, id);
CREATE INDEX IF NOT EXISTS executions_by_time_of_all ON executions (created_ms, id);
CREATE INDEX IF NOT EXISTS executions_by_status
    ON executions (organisation_id, status, created_ms, id) WHERE status <> 'SUCCESS';
CREATE INDEX IF NOT EXISTS executions_by_session ON executions (session_id, created_ms, id)
    WHERE session_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS executions_by_user
    ON executions (organisation_id, user_id, created_ms, id) WHERE user_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS executions_by_agent_type
    ON executions (organisation_id, agent_type, created_ms, id) WHERE agent_type IS NOT NULL;
CREATE INDEX IF NOT EXISTS executions_by_tool ON executions (tool_id) WHERE tool_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS executions_by_code_agent ON executions (code_agent_id, created_ms, id)
    WHERE code_agent_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS executions_unfinished ON executions (host)
    WHERE status IN ('QUEUED', 'RUNNING');

-- The head of each organisation's chain; its row is what writers of a link lock.
CREATE TABLE IF NOT EXISTS chains (
    organisation_id TEXT PRIMARY KEY REFERENCES organisations (id),
    sequence        BIGINT NOT NULL DEFAULT 0,
    hash            TEXT NOT NULL DEFAULT ''
);

-- One link per run. Erasure takes actor_id, error_message and their salts; the commitments, which
-- are what the hash covers, stay.
CREATE TABLE IF NOT EXISTS provenance (
    organisation_id   TEXT NOT NULL REFERENCES organisations (id),
    sequence          BIGINT NOT NULL CHECK (sequence > 0),
    execution_id      TEXT NOT NULL UNIQUE,
    skill_name        TEXT,
    skill_version     TEXT,
    actor_id          TEXT,
    actor_salt        TEXT,
    actor_commitment  TEXT NOT NULL,
    actor_type        TEXT,
    code_hash         TEXT,
    inputs_hash       TEXT,
    outputs_hash      TEXT,
    transcript_hash   TEXT,
    tool_ids          TEXT NOT NULL DEFAULT '[]',
    attestation       TEXT NOT NULL DEFAULT '{}',
    timestamp         TEXT NOT NULL,         -- ISO 8601, Z
    execution_time_ms DOUBLE PRECISION NOT NULL,
    success           BOOLEAN NOT NULL,
    error_message     TEXT,
    error_salt        TEXT,
    error_commitment  TEXT NOT NULL,
    is_erased         BOOLEAN NOT NULL DEFAULT FALSE,
    removed_ms        BIGINT NOT NULL DEFAULT 0,  -- when retention or erasure took the run's row
    previous_hash     TEXT NOT NULL,
    hash              TEXT NOT NULL,
    PRIMARY KEY (organisation_id, sequence)
);
CREATE INDEX IF NOT EXISTS provenance_by_actor ON provenance (organisation_id, actor_id, sequence);
CREATE INDEX IF NOT EXISTS provenance_by_skill
    ON provenance (organisation_id, skill_name, sequence) WHERE skill_name IS NOT NULL;

CREATE TABLE IF NOT EXISTS audit_events (
    id              BIGSERIAL PRIMARY KEY,
    time_ms         BIGINT NOT NULL,
    organisation_id TEXT NOT NULL,           -- '' for what concerns the whole server
    actor_id        TEXT,
    actor_type      TEXT,
    action          TEXT NOT NULL,
    event_type      TEXT
        CHECK (event_type IN ('ROOM_CREATED', 'ACCESS_CODE_SENT', 'ACCESS_ATTEMPT_SUCCESS',
                              'ACCESS_ATTEMPT_FAILED', 'FILE_UPLOADED', 'FILE_DOWNLOADED',
                              'FILE_DELETED', 'ROOM_ACCESSED', 'MFA_ENABLED', 'MFA_VERIFIED',
                              'IP_WHITELIST_UPDATED', 'ROOM_EXPIRED', 'ROOM_CLOSED', 'ROOM_REVOKED',
                              'SUSPICIOUS_ACTIVITY')),
    subject         TEXT,
    outcome         TEXT NOT NULL CHECK (outcome IN ('ok', 'denied', 'failed')),
    detail          TEXT NOT NULL DEFAULT '{}',
    address         TEXT
);
CREATE INDEX IF NOT EXISTS audit_events_by_organisation ON audit_events (organisation_id, id);
CREATE INDEX IF NOT EXISTS audit_events_by_action ON audit_events (organisation_id, action, id)
    WHERE action <> 'execution.run';

-- Sums; averages and percentages are worked out when they are read.
CREATE TABLE IF NOT EXISTS costs (
    organisation_id      TEXT NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
    date                 TEXT NOT NULL,      -- '2026-11-15' or '2026-11'
    period               TEXT NOT NULL CHECK (period IN ('daily', 'monthly')),
    executions           BIGINT NOT NULL DEFAULT 0,
    succeeded            BIGINT NOT NULL DEFAULT 0,
    failed               BIGINT NOT NULL DEFAULT 0,
    cost_usd             DOUBLE PRECISION NOT NULL DEFAULT 0,
    tokens               BIGINT NOT NULL DEFAULT 0,
    prompt_tokens        BIGINT NOT NULL DEFAULT 0,
    completion_tokens    BIGINT NOT NULL DEFAULT 0,
    tokens_saved         BIGINT NOT NULL DEFAULT 0,
    tokens_cached        BIGINT NOT NULL DEFAULT 0,
    total_ms             DOUBLE PRECISION NOT NULL DEFAULT 0,
    traditional_cost_usd DOUBLE PRECISION NOT NULL DEFAULT 0,
    PRIMARY KEY (organisation_id, date, period)
);
CREATE INDEX IF NOT EXISTS costs_by_period ON costs (organisation_id, period, date);

-- What each key has spent in a month, for its budget.
CREATE TABLE IF NOT EXISTS key_costs (
    organisation_id TEXT NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
    key_id          TEXT NOT NULL,
    month           TEXT NOT NULL,           -- '2026-11'
    executions      BIGINT NOT NULL DEFAULT 0,
    cost_usd        DOUBLE PRECISION NOT NULL DEFAULT 0,
    PRIMARY KEY (organisation_id, key_id, month)
);

-- What stays around for a while ------------------------------------------------------------------

CREATE TABLE IF NOT EXISTS sessions (
    id              TEXT PRIMARY KEY,
    organisation_id TEXT NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
    workspace_id    TEXT,
    user_id         TEXT,
    key_id          TEXT,
    host            TEXT NOT NULL,
    host_url        TEXT,
    language        TEXT,
    policy          TEXT,
    parent_id       TEXT,
    name            TEXT,
    status          TEXT NOT NULL CHECK (status IN ('ACTIVE', 'ENDED', 'EXPIRED', 'LOST')),
    created_ms      BIGINT NOT NULL,
    expires_ms      BIGINT NOT NULL DEFAULT 0,
    ended_ms        BIGINT NOT NULL DEFAULT 0,
    last_used_ms    BIGINT NOT NULL DEFAULT 0,
    executions      BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS sessions_by_status ON sessions (organisation_id, status, created_ms);
CREATE INDEX IF NOT EXISTS sessions_by_host ON sessions (host) WHERE status = 'ACTIVE';
CREATE INDEX IF NOT EXISTS sessions_by_user ON sessions (organisation_id, user_id);

CREATE TABLE IF NOT EXISTS artifacts (
    id              TEXT PRIMARY KEY,
    organisation_id TEXT NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
    user_id         TEXT,
    execution_id    TEXT,
    session_id      TEXT,
    kind            TEXT NOT NULL CHECK (kind IN ('file', 'stdout', 'stderr', 'result')),
    name            TEXT NOT NULL,
    type            TEXT NOT NULL,
    size            BIGINT NOT NULL CHECK (size >= 0),
    sha256          TEXT NOT NULL,
    host            TEXT NOT NULL,           -- the node whose disk has the bytes
    created_ms      BIGINT NOT NULL,
    expires_ms      BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS artifacts_by_execution ON artifacts (organisation_id, execution_id);
CREATE INDEX IF NOT EXISTS artifacts_by_user ON artifacts (organisation_id, user_id);
CREATE INDEX IF NOT EXISTS artifacts_by_expiry ON artifacts (expires_ms);
CREATE INDEX IF NOT EXISTS artifacts_by_host ON artifacts (host, created_ms);

CREATE TABLE IF NOT EXISTS secrets (
    organisation_id TEXT NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
    name            TEXT NOT NULL,
    sealed          BYTEA NOT NULL,
    created_ms      BIGINT NOT NULL,
    updated_ms      BIGINT NOT NULL,
    PRIMARY KEY (organisation_id, name)
);

CREATE TABLE IF NOT EXISTS settings (
    key        TEXT PRIMARY KEY,
    value      TEXT NOT NULL,
    updated_ms BIGINT NOT NULL DEFAULT 0
);

-- Receipts of erasures; nothing in them names the person.
CREATE TABLE IF NOT EXISTS erasures (
    receipt_id      TEXT PRIMARY KEY,
    organisation_id TEXT NOT NULL REFERENCES organisations (id),
    user_hash       TEXT NOT NULL,
    actor_id        TEXT,
    executions      BIGINT NOT NULL DEFAULT 0,
    artifacts       BIGINT NOT NULL DEFAULT 0,
    sessions        BIGINT NOT NULL DEFAULT 0,
    audit_events    BIGINT NOT NULL DEFAULT 0,
    snippets        BIGINT NOT NULL DEFAULT 0,
    files           BIGINT NOT NULL DEFAULT 0,
    links           BIGINT NOT NULL DEFAULT 0,
    time_ms         BIGINT NOT NULL,
    receipt_hash    TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS erasures_by_user ON erasures (organisation_id, user_hash);

-- Who is here before anybody has made a key ------------------------------------------------------

INSERT INTO organisations (id, name, created_ms) VALUES ('local', 'local', 0)
    ON CONFLICT DO NOTHING;
INSERT INTO workspaces (organisation_id, id, name, created_ms) VALUES ('local', 'local', 'local', 0)
    ON CONFLICT DO NOTHING;
INSERT INTO users (organisation_id, id, name, created_ms) VALUES ('local', 'local', 'local', 0)
    ON CONFLICT DO NOTHING;
INSERT INTO chains (organisation_id) VALUES ('local') ON CONFLICT DO NOTHING;
