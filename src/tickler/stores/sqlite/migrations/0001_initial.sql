-- What users declared: the source of truth.
CREATE TABLE tickler_schedules (
    owner       TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    when_text   TEXT    NOT NULL,
    tz          TEXT    NOT NULL,
    enabled     INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    body        TEXT    NOT NULL,  -- JSON: target, payload, policy, bounds
    PRIMARY KEY (owner, key)
);

CREATE INDEX tickler_schedules_paused ON tickler_schedules (owner, key) WHERE enabled = 0;

-- One row for each active schedule, none for any other.
CREATE TABLE tickler_index (
    id            INTEGER PRIMARY KEY,
    owner         TEXT    NOT NULL,
    key           TEXT    NOT NULL,
    when_text     TEXT    NOT NULL,
    tz            TEXT    NOT NULL,
    next_fire_at  INTEGER NOT NULL,
    ends_at       INTEGER,
    offset_ms     INTEGER NOT NULL DEFAULT 0,
    managed       INTEGER NOT NULL,
    format        INTEGER NOT NULL,
    UNIQUE (owner, key)
);

CREATE INDEX tickler_index_due ON tickler_index (next_fire_at);

-- Rows that left the index by a claim: finished, or set aside because they do not read.
CREATE TABLE tickler_aside (
    owner         TEXT    NOT NULL,
    key           TEXT    NOT NULL,
    state         TEXT    NOT NULL,
    reason        TEXT,
    when_text     TEXT    NOT NULL,
    tz            TEXT    NOT NULL,
    next_fire_at  INTEGER NOT NULL,
    ends_at       INTEGER,
    offset_ms     INTEGER NOT NULL,
    managed       INTEGER NOT NULL,
    format        INTEGER NOT NULL,
    PRIMARY KEY (owner, key)
) WITHOUT ROWID;

CREATE INDEX tickler_aside_by_state ON tickler_aside (state, owner, key);

-- Small named values with compare-and-set and expiry.
CREATE TABLE tickler_records (
    kind        TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    value       TEXT    NOT NULL,
    version     INTEGER NOT NULL,
    expires_at  INTEGER,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;

CREATE INDEX tickler_records_expiring ON tickler_records (expires_at) WHERE expires_at IS NOT NULL;
