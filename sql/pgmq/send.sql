-- send.sql - messages in. The longest form does the work; the shorter ones fill in what is missing.
-- A message is visible from vt on: by default at once, by the wall clock, also inside the transaction that sends it.
-- Errors: P0001 for a batch that is empty or whose headers do not pair up; 42P01 for a queue that is not there.

create or replace function pgmq.send (queue_name text, msg jsonb, headers jsonb, delay timestamptz)
  returns setof bigint
  language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  return query execute format(
    'insert into pgmq.%I (vt, message, headers) values ($1, $2, $3) returning msg_id',
    pgmq.format_table_name(queue_name, 'q'))
    using delay, msg, headers;
end
$$;

create or replace function pgmq.send (queue_name text, msg jsonb)
  returns setof bigint
  language sql
begin atomic
  select pgmq.send(queue_name, msg, null::jsonb, clock_timestamp());
end;

create or replace function pgmq.send (queue_name text, msg jsonb, headers jsonb)
  returns setof bigint
  language sql
begin atomic
  select pgmq.send(queue_name, msg, headers, clock_timestamp());
end;

create or replace function pgmq.send (queue_name text, msg jsonb, delay integer)
  returns setof bigint
  language sql
begin atomic
  select pgmq.send(queue_name, msg, null::jsonb, clock_timestamp() + make_interval(secs => delay));
end;

create or replace function pgmq.send (queue_name text, msg jsonb, delay timestamptz)
  returns setof bigint
  language sql
begin atomic
  select pgmq.send(queue_name, msg, null::jsonb, delay);
end;

create or replace function pgmq.send (queue_name text, msg jsonb, headers jsonb, delay integer)
  returns setof bigint
  language sql
begin atomic
  select pgmq.send(queue_name, msg, headers, clock_timestamp() + make_interval(secs => delay));
end;

create or replace function pgmq._validate_batch_params (msgs jsonb[], headers jsonb[])
  returns void
  language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  if cardinality(msgs) > 0 is not true then
    raise exception 'msgs cannot be NULL or empty';
  end if;
  if cardinality(headers) <> cardinality(msgs) then
    raise exception 'headers array length (%) must match msgs array length (%)', cardinality(headers), cardinality(msgs);
  end if;
end
$$;

-- The order of the array is the order of the ids.
create or replace function pgmq._send_batch (queue_name text, msgs jsonb[], headers jsonb[], delay timestamptz)
  returns setof bigint
  language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  return query execute format(
    'insert into pgmq.%I (vt, message, headers)
     select $1, u.msg, u.header
     from unnest($2, $3) with ordinality as u (msg, header, place)
     order by u.place
     returning msg_id',
    pgmq.format_table_name(queue_name, 'q'))
    using delay, msgs, headers;
end
$$;

create or replace function pgmq.send_batch (queue_name text, msgs jsonb[], headers jsonb[], delay timestamptz)
  returns setof bigint
  language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  perform pgmq._validate_batch_params(msgs, headers);
  return query select s from pgmq._send_batch(queue_name, msgs, headers, delay) as s;
end
$$;

create or replace function pgmq.send_batch (queue_name text, msgs jsonb[])
  returns setof bigint
  language sql
begin atomic
  select pgmq.send_batch(queue_name, msgs, null::jsonb[], clock_timestamp());
end;

create or replace function pgmq.send_batch (queue_name text, msgs jsonb[], headers jsonb[])
  returns setof bigint
  language sql
begin atomic
  select pgmq.send_batch(queue_name, msgs, headers, clock_timestamp());
end;

create or replace function pgmq.send_batch (queue_name text, msgs jsonb[], delay integer)
  returns setof bigint
  language sql
begin atomic
  select pgmq.send_batch(queue_name, msgs, null::jsonb[], clock_timestamp() + make_interval(secs => delay));
end;

create or replace function pgmq.send_batch (queue_name text, msgs jsonb[], delay timestamptz)
  returns setof bigint
  language sql
begin atomic
  select pgmq.send_batch(queue_name, msgs, null::jsonb[], delay);
end;

create or replace function pgmq.send_batch (queue_name text, msgs jsonb[], headers jsonb[], delay integer)
  returns setof bigint
  language sql
begin atomic
  select pgmq.send_batch(queue_name, msgs, headers, clock_timestamp() + make_interval(secs => delay));
end;
