-- Statements of the leases file. Parameters are positional, in the order named.

-- name: get
-- key → owner, until, boot, token, revoked_from
SELECT owner, until, boot, token, revoked_from FROM oneturn_lease WHERE key = ?

-- name: put
-- key, owner, until, boot, token, revoked_from
INSERT INTO oneturn_lease (key, owner, until, boot, token, revoked_from) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET owner = excluded.owner, until = excluded.until, boot = excluded.boot,
    token = excluded.token, revoked_from = excluded.revoked_from

-- name: drop
-- key
DELETE FROM oneturn_lease WHERE key = ?

-- name: prune
-- boot, now: forget what has lapsed. Reads the whole table, so only once, when a process opens the file
DELETE FROM oneturn_lease WHERE boot <> ? OR until <= ?

-- name: next_token
-- → the next fencing token
UPDATE oneturn_token SET value = value + 1 RETURNING value

-- name: tell
-- process, topic, at (for people)
INSERT INTO oneturn_signal (process, topic, at) VALUES (?, ?, ?)

-- name: told
-- id, process → id, topic of newer signals of other processes
SELECT id, topic FROM oneturn_signal WHERE id > ? AND process <> ? ORDER BY id

-- name: newest_signal
-- → the greatest id
SELECT coalesce(max(id), 0) FROM oneturn_signal

-- name: prune_signals
-- id: forget what is older
DELETE FROM oneturn_signal WHERE id < ?
