-- Whether a runner delivers it, or whoever claims from the index. Those of earlier workers count as delivered.
ALTER TABLE {schema}.tickler_index ADD COLUMN has_target boolean NOT NULL DEFAULT true;

UPDATE {schema}.tickler_index i SET has_target = false WHERE NOT EXISTS (
    SELECT FROM {schema}.tickler_schedules s WHERE s.owner = i.owner AND s.key = i.key AND s.body::jsonb ? 'target'
);

CREATE INDEX tickler_index_delivered ON {schema}.tickler_index (next_fire_at) WHERE has_target;

-- Occurrences that are not settled yet. In `open` only while they may be delivered some time: not while they wait, nor when dead.
CREATE TABLE {schema}.tickler_fires (
    owner          text COLLATE "C" NOT NULL,
    key            text COLLATE "C" NOT NULL,
    id             text COLLATE "C" NOT NULL,
    nominal_at     bigint           NOT NULL,
    opened_at      bigint           NOT NULL,
    attempt        integer          NOT NULL,
    state          text             NOT NULL,
    deliver_after  bigint,
    worker         text,
    reason         text,
    PRIMARY KEY (owner, key, id)
);

CREATE INDEX tickler_fires_open ON {schema}.tickler_fires (deliver_after) WHERE deliver_after IS NOT NULL;

CREATE INDEX tickler_fires_held ON {schema}.tickler_fires (state, nominal_at, id) WHERE state <> 'open';

-- What happened, until it expires.
CREATE TABLE {schema}.tickler_history (
    number      bigint GENERATED ALWAYS AS IDENTITY,
    owner       text COLLATE "C" NOT NULL,
    key         text COLLATE "C" NOT NULL,
    at          bigint           NOT NULL,
    happened    text             NOT NULL,
    expires_at  bigint           NOT NULL,
    entry       text             NOT NULL,  -- JSON; as text, whatever codecs a caller's pool has
    PRIMARY KEY (owner, key, at, number)
);

CREATE INDEX tickler_history_expiring ON {schema}.tickler_history (expires_at);
