-- QueryData's own tables: who may sign in, who has, and whose conversations are whose.
-- No parameters; may be run again at any time. Times are seconds of this database's clock.
CREATE TABLE IF NOT EXISTS accounts (
    name TEXT PRIMARY KEY,
    role TEXT NOT NULL,
    password_hash TEXT NOT NULL
) STRICT;

-- Whose rows an account may ask about: a department's id, a student's.
CREATE TABLE IF NOT EXISTS account_claims (
    account TEXT NOT NULL REFERENCES accounts (name) ON DELETE CASCADE,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (account, name)
) STRICT;

CREATE TABLE IF NOT EXISTS sign_ins (
    token_hash TEXT PRIMARY KEY,
    account TEXT NOT NULL REFERENCES accounts (name) ON DELETE CASCADE,
    expires INTEGER NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS attempts (
    address TEXT NOT NULL,
    account TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;

CREATE INDEX IF NOT EXISTS attempts_by_time ON attempts (at);

CREATE TABLE IF NOT EXISTS conversations (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    title TEXT NOT NULL,
    created INTEGER NOT NULL
) STRICT;

CREATE INDEX IF NOT EXISTS conversations_by_owner ON conversations (owner, created);
