-- A reader dies. What it had comes back: after its visibility timeout, or at once if it had not committed.
select pgmq.create('q');
select pgmq.send('q', '"work"');

-- It read, committed, and is gone.
select msg_id, read_ct, vt as until from pgmq.read('q', 1, 1) \gset
\c -
select :msg_id as msg_id, :read_ct as read_ct;
select msg_id, read_ct, last_read_at >= :'until' as not_before, last_read_at < :'until'::timestamptz + interval '20 s' as soon
from pgmq.read_with_poll('q', 100, 1, 30, 20);

-- It dies in its transaction, after reading, deleting and sending: nothing of it happened.
select msg_id from pgmq.set_vt('q', 1, 0);
begin;
select msg_id, read_ct from pgmq.read('q', 100, 1);
select pgmq.delete('q', 1);
select pgmq.send('q', '"answer"');
\c -
select msg_id, read_ct, message from pgmq.read_with_poll('q', 100, 10, 30, 20);

-- Its successor ends it; nothing comes back any more.
select pgmq.archive('q', 1);
select count(*) from pgmq.q_q;
select msg_id, read_ct from pgmq.a_q;
