-- Schema of the records, version 1. Lives beside an application's own tables; everything begins with oneturn_.

CREATE TABLE oneturn_scope (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    epoch INTEGER NOT NULL DEFAULT 0,
    sequence INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, name)
) WITHOUT ROWID;

CREATE TABLE oneturn_execution (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    subject TEXT NOT NULL,
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    handler TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    payload BLOB,
    claims TEXT NOT NULL,
    recovery TEXT NOT NULL,
    run_limit REAL NOT NULL,
    message TEXT NOT NULL,
    replaces TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    status TEXT NOT NULL,
    reason TEXT,
    body BLOB NOT NULL,
    owner TEXT NOT NULL,
    epoch INTEGER,
    attempt INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    alive_until REAL NOT NULL,
    alive_boot TEXT NOT NULL,
    created_at REAL NOT NULL,
    started_at REAL,
    ended_at REAL,
    expired INTEGER NOT NULL DEFAULT 0,
    folded INTEGER NOT NULL DEFAULT 0,
    UNIQUE (tenant, scope, subject, key)
);

CREATE INDEX oneturn_execution_place ON oneturn_execution (tenant, scope, sequence, created_at);

CREATE INDEX oneturn_execution_epoch ON oneturn_execution (tenant, scope, epoch);

CREATE UNIQUE INDEX oneturn_execution_running ON oneturn_execution (tenant, scope) WHERE status = 'running';

CREATE INDEX oneturn_execution_queued ON oneturn_execution (tenant, scope, sequence, created_at) WHERE status = 'queued';

-- Queued records by age: the oldest that can start are found without looking at all that wait.
CREATE INDEX oneturn_execution_waiting ON oneturn_execution (created_at) WHERE status = 'queued';

-- A record that has passed a stage of retention leaves that stage's index, so that a sweep reads only what is due.
CREATE INDEX oneturn_execution_unfolded ON oneturn_execution (ended_at) WHERE folded = 0 AND ended_at IS NOT NULL;

CREATE INDEX oneturn_execution_unexpired ON oneturn_execution (ended_at) WHERE expired = 0 AND ended_at IS NOT NULL;

CREATE INDEX oneturn_execution_ended ON oneturn_execution (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE oneturn_event (
    execution TEXT NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (execution, seq)
) WITHOUT ROWID;

CREATE TABLE oneturn_answer (
    message TEXT PRIMARY KEY,
    execution TEXT NOT NULL,
    tenant TEXT NOT NULL,
    scope TEXT NOT NULL,
    epoch INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX oneturn_answer_order ON oneturn_answer (tenant, scope, epoch);

CREATE INDEX oneturn_answer_execution ON oneturn_answer (execution);
