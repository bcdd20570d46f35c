-- topic.sql - one message to every queue whose pattern matches its routing key.
-- A key is words between dots. In a pattern * stands for one word and # for anything; topic_bindings keeps the regular
-- expression made of it. A queue gets one copy, however many of its patterns match; queues are served by name, in one
-- transaction.
-- bind_topic and unbind_topic run with the owner's rights, as no role writes topic_bindings: what may write a table may lock it.
-- Errors: P0001 with PGMQ's texts.

-- What keys and patterns have in common. p_word: a regular expression of what may stand in one; p_allowed: the same in words.
create or replace function pgmq._validate_words (p_what text, p_value text, p_word text, p_allowed text)
  returns void
  language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  if coalesce(p_value, '') = '' then
    raise exception '% cannot be NULL or empty', p_what;
  elsif length(p_value) > 255 then
    raise exception '% length cannot exceed 255 characters, got % characters', p_what, length(p_value);
  elsif p_value !~ p_word then
    raise exception '% contains invalid characters. Only alphanumeric, dots, hyphens, % are allowed. Got: %', p_what, p_allowed, p_value;
  elsif p_value like '.%' then
    raise exception '% cannot start with a dot. Got: %', p_what, p_value;
  elsif p_value like '%.' then
    raise exception '% cannot end with a dot. Got: %', p_what, p_value;
  elsif p_value like '%..%' then
    raise exception '% cannot contain consecutive dots. Got: %', p_what, p_value;
  end if;
end
$$;

create or replace function pgmq.validate_routing_key (routing_key text)
  returns boolean
  language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  perform pgmq._validate_words('routing_key', routing_key, '^[a-zA-Z0-9._-]+$', 'and underscores');
  return true;
end
$$;

create or replace function pgmq.validate_topic_pattern (pattern text)
  returns boolean
  language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  perform pgmq._validate_words('pattern', pattern, '^[a-zA-Z0-9._*#-]+$', 'underscores, *, and #');
  if pattern like '%**%' then
    raise exception 'pattern cannot contain consecutive stars (**). Use # for multi-segment matching. Got: %', pattern;
  elsif pattern like '%##%' then
    raise exception
      'pattern cannot contain consecutive hashes (##). A single # already matches zero or more segments. Got: %',
      pattern;
  elsif pattern like '%*#%' or pattern like '%#*%' then
    raise exception 'pattern cannot contain adjacent wildcards (*# or #*). Separate wildcards with dots. Got: %', pattern;
  end if;
  return true;
end
$$;

create or replace function pgmq.bind_topic (pattern text, queue_name text)
  returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
  perform pgmq.validate_topic_pattern(pattern);
  if coalesce(queue_name, '') = '' then
    raise exception 'queue_name cannot be NULL or empty';
  end if;
  if not exists (select from pgmq.meta m where m.queue_name = bind_topic.queue_name) then
    raise exception 'Queue "%" does not exist. Create the queue first using pgmq.create()', queue_name;
  end if;

  insert into pgmq.topic_bindings (pattern, queue_name)
  values (bind_topic.pattern, bind_topic.queue_name)
  on conflict on constraint topic_bindings_unique_pattern_queue do nothing;
end
$$;

create or replace function pgmq.unbind_topic (pattern text, queue_name text)
  returns boolean
  language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
  if coalesce(pattern, '') = '' then
    raise exception 'pattern cannot be NULL or empty';
  end if;
  if coalesce(queue_name, '') = '' then
    raise exception 'queue_name cannot be NULL or empty';
  end if;

  delete from pgmq.topic_bindings b
  where b.pattern = unbind_topic.pattern and b.queue_name = unbind_topic.queue_name;
  return found;
end
$$;

create or replace function pgmq.list_topic_bindings ()
  returns table (pattern text, queue_name text, bound_at timestamptz, compiled_regex text)
  language sql stable
begin atomic
  select b.pattern, b.queue_name, b.bound_at, b.compiled_regex
  from pgmq.topic_bindings b
  order by b.bound_at desc, b.pattern, b.queue_name;
end;

create or replace function pgmq.list_topic_bindings (queue_name text)
  returns table (pattern text, queue_name text, bound_at timestamptz, compiled_regex text)
  language sql stable
begin atomic
  select b.pattern, b.queue_name, b.bound_at, b.compiled_regex
  from pgmq.topic_bindings b
  where b.queue_name = $1
  order by b.bound_at desc, b.pattern, b.queue_name;
end;

create or replace function pgmq.test_routing (routing_key text)
  returns table (pattern text, queue_name text, compiled_regex text)
  language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
  perform pgmq.validate_routing_key(routing_key);
  return query
    select b.pattern, b.queue_name, b.compiled_regex
    from pgmq.topic_bindings b
    where routing_key ~ b.compiled_regex
    order by b.pattern, b.queue_name;
end
$$;

-- The queues that a key reaches, by name.
create or replace function pgmq._route (routing_key text)
  returns setof text
  language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
  perform pgmq.validate_routing_key(routing_key);
  return query
    select distinct b.queue_name
    from pgmq.topic_bindings b
    where routing_key ~ b.compiled_regex
    order by b.queue_name;
end
$$;

create or replace function pgmq.send_topic (routing_key text, msg jsonb, headers jsonb, delay integer)
  returns integer
  language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_count integer := 0;
  v_queue text;
begin
  perform pgmq.validate_routing_key(routing_key);
  if msg is null then
    raise exception 'msg cannot be NULL';
  end if;
  if delay < 0 then
    raise exception 'delay cannot be negative, got: %', delay;
  end if;

  for v_queue in select r from pgmq._route(routing_key) as r loop
    perform pgmq.send(v_queue, msg, headers, delay);
    v_count := v_count + 1;
  end loop;
  return v_count;
end
$$;

create or replace function pgmq.send_topic (routing_key text, msg jsonb)
  returns integer
  language sql
begin atomic
  select pgmq.send_topic(routing_key, msg, null::jsonb, 0);
end;

create or replace function pgmq.send_topic (routing_key text, msg jsonb, delay integer)
  returns integer
  language sql
begin atomic
  select pgmq.send_topic(routing_key, msg, null::jsonb, delay);
end;

create or replace function pgmq.send_batch_topic (routing_key text, msgs jsonb[], headers jsonb[], delay timestamptz)
  returns table (queue_name text, msg_id bigint)
  language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  perform pgmq.validate_routing_key(routing_key);
  perform pgmq._validate_batch_params(msgs, headers);
  for queue_name in select r from pgmq._route(routing_key) as r loop
    return query select send_batch_topic.queue_name, s from pgmq._send_batch(queue_name, msgs, headers, delay) as s;
  end loop;
end
$$;

create or replace function pgmq.send_batch_topic (routing_key text, msgs jsonb[])
  returns table (queue_name text, msg_id bigint)
  language sql
begin atomic
  select * from pgmq.send_batch_topic(routing_key, msgs, null::jsonb[], clock_timestamp());
end;

create or replace function pgmq.send_batch_topic (routing_key text, msgs jsonb[], headers jsonb[])
  returns table (queue_name text, msg_id bigint)
  language sql
begin atomic
  select * from pgmq.send_batch_topic(routing_key, msgs, headers, clock_timestamp());
end;

create or replace function pgmq.send_batch_topic (routing_key text, msgs jsonb[], delay integer)
  returns table (queue_name text, msg_id bigint)
  language sql
begin atomic
  select * from pgmq.send_batch_topic(routing_key, msgs, null::jsonb[], clock_timestamp() + make_interval(secs => delay));
end;

create or replace function pgmq.send_batch_topic (routing_key text, msgs jsonb[], delay timestamptz)
  returns table (queue_name text, msg_id bigint)
  language sql
begin atomic
  select * from pgmq.send_batch_topic(routing_key, msgs, null::jsonb[], delay);
end;

create or replace function pgmq.send_batch_topic (routing_key text, msgs jsonb[], headers jsonb[], delay integer)
  returns table (queue_name text, msg_id bigint)
  language sql
begin atomic
  select * from pgmq.send_batch_topic(routing_key, msgs, headers, clock_timestamp() + make_interval(secs => delay));
end;
