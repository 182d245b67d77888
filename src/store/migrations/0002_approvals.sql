-- What waits for a person's word, and what the word was.

CREATE TABLE IF NOT EXISTS approvals (
    id              TEXT PRIMARY KEY,
    organisation_id TEXT NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
    workspace_id    TEXT,
    user_id         TEXT,
    key_id          TEXT,
    execution_id    TEXT,
    session_id      TEXT,
    host            TEXT NOT NULL DEFAULT '',
    operation       TEXT NOT NULL,           -- "github:delete_repository"
    reason          TEXT,                    -- why it needs approval
    arguments       BYTEA,                   -- sealed by the node's vault
    arguments_hash  TEXT,
    priority        TEXT NOT NULL DEFAULT 'normal' CHECK (priority IN ('low', 'normal', 'high', 'urgent')),
    status          TEXT NOT NULL CHECK (status IN ('pending', 'approved', 'rejected', 'expired', 'cancelled')),
    created_ms      BIGINT NOT NULL,
    expires_ms      BIGINT NOT NULL,
    decided_ms      BIGINT NOT NULL DEFAULT 0,
    decided_by      TEXT,
    comment         TEXT
);
CREATE INDEX IF NOT EXISTS approvals_by_status ON approvals (organisation_id, status, created_ms);
CREATE INDEX IF NOT EXISTS approvals_by_execution ON approvals (execution_id);
