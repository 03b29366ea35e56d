-- Schema of the leases file, version 1: leases and signals, nothing that must last.

CREATE TABLE oneturn_lease (
    key TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    until REAL NOT NULL,
    boot TEXT NOT NULL,
    token INTEGER NOT NULL,
    revoked_from TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE oneturn_token (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    value INTEGER NOT NULL
);

INSERT INTO oneturn_token (one, value) VALUES (1, 0);

CREATE TABLE oneturn_signal (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    process TEXT NOT NULL,
    topic TEXT NOT NULL,
    at REAL NOT NULL
);
