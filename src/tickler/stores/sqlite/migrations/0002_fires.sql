-- Whether a runner delivers it, or whoever claims from the index. Those of earlier workers count as delivered.
ALTER TABLE tickler_index ADD COLUMN has_target INTEGER NOT NULL DEFAULT 1;

UPDATE tickler_index SET has_target = EXISTS (
    SELECT 1 FROM tickler_schedules s
    WHERE s.owner = tickler_index.owner AND s.key = tickler_index.key AND json_type(s.body, '$.target') IS NOT NULL
);

CREATE INDEX tickler_index_delivered ON tickler_index (next_fire_at) WHERE has_target = 1;

-- Occurrences that are not settled yet. In `open` only while they may be delivered some time: not while they wait, nor when dead.
CREATE TABLE tickler_fires (
    owner          TEXT    NOT NULL,
    key            TEXT    NOT NULL,
    id             TEXT    NOT NULL,
    nominal_at     INTEGER NOT NULL,
    opened_at      INTEGER NOT NULL,
    attempt        INTEGER NOT NULL,
    state          TEXT    NOT NULL,
    deliver_after  INTEGER,
    worker         TEXT,
    reason         TEXT,
    PRIMARY KEY (owner, key, id)
) WITHOUT ROWID;

CREATE INDEX tickler_fires_open ON tickler_fires (deliver_after) WHERE deliver_after IS NOT NULL;

CREATE INDEX tickler_fires_held ON tickler_fires (state, nominal_at, id) WHERE state <> 'open';

-- What happened, until it expires.
CREATE TABLE tickler_history (
    number      INTEGER PRIMARY KEY,
    owner       TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    happened    TEXT    NOT NULL,
    expires_at  INTEGER NOT NULL,
    entry       TEXT    NOT NULL   -- JSON
);

CREATE INDEX tickler_history_by_schedule ON tickler_history (owner, key, at);

CREATE INDEX tickler_history_expiring ON tickler_history (expires_at);
