-- Statements of the records file. Parameters are positional, in the order named.

-- name: lock_scope
-- tenant, name → epoch, sequence. A write: it takes the lock before anything is read.
INSERT INTO oneturn_scope (tenant, name) VALUES (?, ?)
ON CONFLICT (tenant, name) DO UPDATE SET epoch = epoch RETURNING epoch, sequence

-- name: lock_scope_of
-- tenant, id → epoch of the scope of that execution. A write, as above.
UPDATE oneturn_scope SET epoch = epoch
WHERE (tenant, name) IN (SELECT tenant, scope FROM oneturn_execution WHERE tenant = ? AND id = ?) RETURNING epoch

-- name: raise_epoch
-- tenant, name → the new epoch
UPDATE oneturn_scope SET epoch = epoch + 1 WHERE tenant = ? AND name = ? RETURNING epoch

-- name: next_sequence
-- tenant, name → the new sequence number
UPDATE oneturn_scope SET sequence = sequence + 1 WHERE tenant = ? AND name = ? RETURNING sequence

-- name: epoch
-- tenant, name → epoch
SELECT epoch FROM oneturn_scope WHERE tenant = ? AND name = ?

-- name: find
-- tenant, scope, subject, key → a record
SELECT {columns} FROM oneturn_execution WHERE tenant = ? AND scope = ? AND subject = ? AND key = ?

-- name: read
-- tenant, id → a record
SELECT {columns} FROM oneturn_execution WHERE tenant = ? AND id = ?

-- name: running
-- tenant, scope → the running record
SELECT {columns} FROM oneturn_execution WHERE tenant = ? AND scope = ? AND status = 'running'

-- name: queued
-- tenant, scope → queued records, oldest first
SELECT {columns} FROM oneturn_execution WHERE tenant = ? AND scope = ? AND status = 'queued' ORDER BY sequence, created_at

-- name: insert
-- every column of a record, in order
INSERT INTO oneturn_execution ({columns}) VALUES ({marks})

-- name: begin
-- owner, epoch, attempt, alive_until, alive_boot, started_at, id
UPDATE oneturn_execution SET status = 'running', owner = ?, epoch = ?, attempt = ?, alive_until = ?, alive_boot = ?,
    started_at = ? WHERE id = ?

-- name: requeue
-- id
UPDATE oneturn_execution SET status = 'queued', owner = '', epoch = NULL WHERE id = ?

-- name: end
-- status, reason, body, ended_at, last_seq, id
UPDATE oneturn_execution SET status = ?, reason = ?, body = ?, ended_at = ?, last_seq = ?, owner = '' WHERE id = ?

-- name: logged_up_to
-- last_seq, id
UPDATE oneturn_execution SET last_seq = ? WHERE id = ?

-- name: touch
-- alive_until, alive_boot, tenant, id, epoch → id, if it runs with that epoch
UPDATE oneturn_execution SET alive_until = ?, alive_boot = ?
WHERE tenant = ? AND id = ? AND epoch = ? AND status = 'running' RETURNING id

-- name: log
-- execution, seq, kind, data
INSERT INTO oneturn_event (execution, seq, kind, data) VALUES (?, ?, ?, ?)

-- name: events
-- execution, after, limit → seq, kind, data
SELECT seq, kind, data FROM oneturn_event WHERE execution = ? AND seq > ? ORDER BY seq LIMIT ?

-- name: events_of
-- tenant, id, execution (the id again), after, limit → seq, kind, data, if that tenant has such a record
SELECT seq, kind, data FROM oneturn_event
WHERE EXISTS (SELECT 1 FROM oneturn_execution WHERE tenant = ? AND id = ?) AND execution = ? AND seq > ?
ORDER BY seq LIMIT ?

-- name: scope_events
-- tenant, scope, epoch, epoch, seq, limit → id, epoch, seq, kind, data
SELECT x.id, x.epoch, e.seq, e.kind, e.data
FROM oneturn_execution AS x JOIN oneturn_event AS e ON e.execution = x.id
WHERE x.tenant = ? AND x.scope = ? AND x.epoch >= ? AND (x.epoch, e.seq) > (?, ?)
ORDER BY x.epoch, e.seq LIMIT ?

-- name: answer_of
-- message → execution
SELECT execution FROM oneturn_answer WHERE message = ?

-- name: answer
-- message, execution, tenant, scope, epoch
INSERT INTO oneturn_answer (message, execution, tenant, scope, epoch) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (message) DO UPDATE SET execution = excluded.execution, epoch = excluded.epoch

-- name: newest_answered
-- tenant, scope → message
SELECT message FROM oneturn_answer WHERE tenant = ? AND scope = ? ORDER BY epoch DESC LIMIT 1

-- name: history
-- tenant, scope, epoch, without, limit → message, sequence, payload, execution, body; newest first
SELECT m.id, m.sequence, m.payload, a.execution, x.body
FROM oneturn_answer AS a
JOIN oneturn_execution AS m ON m.id = a.message
JOIN oneturn_execution AS x ON x.id = a.execution
WHERE a.tenant = ? AND a.scope = ? AND a.epoch < ? AND a.message <> ?
ORDER BY a.epoch DESC, m.sequence DESC LIMIT ?

-- name: turns
-- tenant, scope, sequence, limit → records below that sequence, newest first
SELECT {columns} FROM oneturn_execution WHERE tenant = ? AND scope = ? AND sequence < ?
ORDER BY sequence DESC, created_at DESC LIMIT ?

-- name: lapsed
-- boot, now, limit → running records that nobody vouches for
SELECT {columns} FROM oneturn_execution INDEXED BY oneturn_execution_running
WHERE status = 'running' AND (alive_boot <> ? OR alive_until <= ?) ORDER BY alive_until LIMIT ?

-- name: startable
-- boot, now, long_ago, handlers (a JSON list), limit → the oldest queued record of each scope that nothing alive holds up
SELECT {columns} FROM oneturn_execution AS q INDEXED BY oneturn_execution_waiting
WHERE q.status = 'queued'
  AND NOT EXISTS (
    SELECT 1 FROM oneturn_execution AS r
    WHERE r.tenant = q.tenant AND r.scope = q.scope AND r.status = 'running' AND r.alive_boot = ? AND r.alive_until > ?)
  AND NOT EXISTS (
    SELECT 1 FROM oneturn_execution AS o
    WHERE o.tenant = q.tenant AND o.scope = q.scope AND o.status = 'queued'
      AND (o.sequence, o.created_at, o.rowid) < (q.sequence, q.created_at, q.rowid))
  AND (q.created_at < ? OR q.handler IN (SELECT value FROM json_each(?)))
ORDER BY q.created_at LIMIT ?

-- name: drop_payload
-- message, execution
UPDATE oneturn_execution SET payload = NULL WHERE id IN (?, ?)

-- name: ended_before
-- ended_at, limit → id of what ended before, oldest first
SELECT id FROM oneturn_execution INDEXED BY oneturn_execution_ended
WHERE ended_at IS NOT NULL AND ended_at <= ? ORDER BY ended_at LIMIT ?

-- name: unexpired_before
-- ended_at, limit → id of what ended before and still has its content
SELECT id FROM oneturn_execution INDEXED BY oneturn_execution_unexpired
WHERE expired = 0 AND ended_at IS NOT NULL AND ended_at <= ? ORDER BY ended_at LIMIT ?

-- name: unfolded_before
-- ended_at, limit → id, last_seq of what ended before and still has all of its events
SELECT id, last_seq FROM oneturn_execution INDEXED BY oneturn_execution_unfolded
WHERE folded = 0 AND ended_at IS NOT NULL AND ended_at <= ? ORDER BY ended_at LIMIT ?

-- name: folded
-- id: its events are one snapshot
UPDATE oneturn_execution SET folded = 1 WHERE id = ?

-- name: final_of
-- tenant, scope → ids of final records that still have content
SELECT id FROM oneturn_execution
WHERE tenant = ? AND scope = ? AND expired = 0 AND status NOT IN ('queued', 'running')

-- name: empty
-- id: a tombstone is left
UPDATE oneturn_execution SET payload = NULL, body = x'', claims = '{}', expired = 1, folded = 1 WHERE id = ?

-- name: drop_events
-- execution, seq: all up to that number
DELETE FROM oneturn_event WHERE execution = ? AND seq <= ?

-- name: drop_log
-- execution: all of its events
DELETE FROM oneturn_event WHERE execution = ?

-- name: drop_answers
-- id, id: those that it gave or was given
DELETE FROM oneturn_answer WHERE message = ? OR execution = ?

-- name: delete
-- id
DELETE FROM oneturn_execution WHERE id = ?
