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
