-- 0005_skills.sql - skills that were registered over the API; those of folders are not here.

CREATE TABLE IF NOT EXISTS skills (
    organisation_id TEXT NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
    name            TEXT NOT NULL,
    version         TEXT NOT NULL,           -- three numbers; a new version is a new row
    metadata        TEXT NOT NULL,           -- JSON: what skill.yaml would say
    input_schema    TEXT NOT NULL,
    output_schema   TEXT NOT NULL,
    handler_file    TEXT NOT NULL,           -- "handler.py": its ending tells the language
    code            TEXT NOT NULL,
    created_by      TEXT,
    created_ms      BIGINT NOT NULL,
    PRIMARY KEY (organisation_id, name, version)
);

-- What skills and agents keep for later. A row that was compacted away loses its content and stays a
-- link of what came from it.
CREATE TABLE IF NOT EXISTS memories (
    number          BIGSERIAL PRIMARY KEY,
    id              TEXT NOT NULL,
    organisation_id TEXT NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
    user_id         TEXT,                    -- whose data it is
    session_id      TEXT,
    type            TEXT NOT NULL,
    safety_class    TEXT NOT NULL,
    actor_id        TEXT NOT NULL,
    actor_type      TEXT NOT NULL,
    content         BYTEA,                   -- sealed by the node's vault
    content_hash    TEXT NOT NULL,
    inputs_hash     TEXT NOT NULL,
    embedding       BYTEA,
    tokens          BIGINT NOT NULL DEFAULT 0,
    metadata        TEXT NOT NULL DEFAULT '{}',
    tags            TEXT NOT NULL DEFAULT '[]',
    tool_ids        TEXT NOT NULL DEFAULT '[]',
    parents         TEXT NOT NULL DEFAULT '[]',
    created_ms      BIGINT NOT NULL,
    removed_ms      BIGINT NOT NULL DEFAULT 0,
    UNIQUE (organisation_id, id)
);
CREATE INDEX IF NOT EXISTS memories_by_session ON memories (organisation_id, session_id, number);
