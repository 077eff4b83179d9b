-- What users declared: the source of truth. Names sort by their bytes, as they do in the other stores.
CREATE TABLE {schema}.tickler_schedules (
    owner       text COLLATE "C" NOT NULL,
    key         text COLLATE "C" NOT NULL,
    when_text   text             NOT NULL,
    tz          text             NOT NULL,
    enabled     boolean          NOT NULL,
    version     bigint           NOT NULL,
    created_at  bigint           NOT NULL,
    updated_at  bigint           NOT NULL,
    body        text             NOT NULL,  -- JSON: target, payload, policy, bounds; as text, whatever codecs a caller's pool has
    PRIMARY KEY (owner, key)
);

CREATE INDEX tickler_schedules_paused ON {schema}.tickler_schedules (owner, key) WHERE NOT enabled;

-- One row for each active schedule, none for any other.
CREATE TABLE {schema}.tickler_index (
    owner         text COLLATE "C" NOT NULL,
    key           text COLLATE "C" NOT NULL,
    when_text     text             NOT NULL,
    tz            text             NOT NULL,
    next_fire_at  bigint           NOT NULL,
    ends_at       bigint,
    offset_ms     bigint           NOT NULL DEFAULT 0,
    managed       boolean          NOT NULL,
    format        smallint         NOT NULL,
    PRIMARY KEY (owner, key)
);

CREATE INDEX tickler_index_due ON {schema}.tickler_index (next_fire_at);

-- Rows that left the index by a claim: finished, or set aside because they do not read.
CREATE TABLE {schema}.tickler_aside (
    owner         text COLLATE "C" NOT NULL,
    key           text COLLATE "C" NOT NULL,
    state         text             NOT NULL,
    reason        text,
    when_text     text             NOT NULL,
    tz            text             NOT NULL,
    next_fire_at  bigint           NOT NULL,
    ends_at       bigint,
    offset_ms     bigint           NOT NULL,
    managed       boolean          NOT NULL,
    format        smallint         NOT NULL,
    PRIMARY KEY (owner, key)
);

CREATE INDEX tickler_aside_by_state ON {schema}.tickler_aside (state, owner, key);

-- Small named values with compare-and-set and expiry.
CREATE TABLE {schema}.tickler_records (
    kind        text COLLATE "C" NOT NULL,
    name        text COLLATE "C" NOT NULL,
    value       text             NOT NULL,
    version     bigint           NOT NULL,
    expires_at  bigint,
    PRIMARY KEY (kind, name)
);

CREATE INDEX tickler_records_expiring ON {schema}.tickler_records (expires_at) WHERE expires_at IS NOT NULL;
