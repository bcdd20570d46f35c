-- check.sql - guards of arguments that several functions take.
-- Errors: QU001 an argument is out of range.

-- May this be the name of a domain (of at most 63 characters), a type or a response (100)? Written to be inlined.
create or replace function pawl.is_name (p_name text, p_most integer)
  returns boolean
  language sql immutable
as $$
  select (p_name ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]*$' and char_length(p_name) <= p_most) is true
$$;

-- p_errcode: an SQLSTATE of a module of pawl, else QU001.
create or replace function pawl.name_check (p_field text, p_name text, p_most integer, p_errcode text default 'QU001')
  returns void
  language plpgsql immutable
as $$
begin
  if not pawl.is_name(p_name, p_most) then
    raise exception '% must be 1 to % letters, digits, "_", ".", ":" or "-", beginning with a letter or digit, got %', p_field, p_most,
      coalesce('"' || left(p_name, 80) || '"', 'null')
      using errcode = case when p_errcode ~ '^(QU|QW|QP|PW|RT|TG)[0-9]{3}$' then p_errcode else 'QU001' end;
  end if;
end
$$;

-- Who did something, as it is shown: the name of a worker behind that of its key, an author. Not null.
create or replace function pawl.actor_check (p_field text, p_actor text, p_errcode text default 'QU001')
  returns void
  language plpgsql immutable
as $$
begin
  if (octet_length(p_actor) between 1 and 400) is not true then
    raise exception '% must be text of 1 to 400 bytes, got %', p_field, coalesce(octet_length(p_actor) || ' bytes', 'null')
      using errcode = case when p_errcode ~ '^QP[0-9]{3}$' then p_errcode else 'QU001' end;
  end if;
end
$$;

-- Up to 10 years. p_optional: null stands for a default.
create or replace function pawl.delays_check (p_delays_ms bigint[], p_optional boolean)
  returns void
  language plpgsql immutable
as $$
begin
  if 0 > any (p_delays_ms) or 315360000000 < any (p_delays_ms) or not p_optional and array_position(p_delays_ms, null) is not null then
    raise exception 'delay must be from 0 to 315360000000 ms' using errcode = 'QU001';
  end if;
end
$$;

-- What retention deletes at once, and from which age on: at least the one in pawl.least_age, so that a monitor cannot delete what is new.
-- Returns the time before which it deletes. That time is compared, and not only the age: two intervals are compared with months of 30 days, but
-- subtracted with those of the calendar, so that `-120 months 3610 days` is an age of 10 days and a time in the future.
create or replace function pawl.prune_check (p_what text, p_limit integer, p_older interval)
  returns timestamptz
  language plpgsql security definer set search_path = pawl, pg_temp set timezone = 'UTC'
as $$
declare
  v_now timestamptz := pawl.now();
  v_least interval := (select l.age from pawl.least_age l where l.what = p_what);
  v_cutoff timestamptz;
begin
  if (p_limit between 1 and 1000000) is not true then
    raise exception 'limit must be from 1 to 1000000, got %', coalesce(p_limit::text, 'null') using errcode = 'QU001';
  end if;
  if (p_older between v_least and interval '36500 days') is true then
    v_cutoff := v_now - p_older;
  end if;
  if (v_cutoff <= least(v_now, v_now - v_least)) is not true then
    raise exception 'age of % must be from % (pawl.least_age) to 36500 days, got %', p_what, v_least, coalesce(p_older::text, 'null')
      using errcode = 'QU001';
  end if;
  return v_cutoff;
end
$$;

-- The least age at which retention may delete this.
create or replace function pawl.least_age_set (p_what text, p_age interval)
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp set timezone = 'UTC'
as $$
begin
  -- Also by the calendar: see pawl.prune_check.
  if (p_age between interval '0' and interval '36500 days' and pawl.now() - p_age <= pawl.now()) is not true then
    raise exception 'age must be from 0 to 36500 days, got %', coalesce(p_age::text, 'null') using errcode = 'QU001';
  end if;
  update pawl.least_age l set age = p_age where l.what = p_what;
  if not found then
    raise exception 'what must be one of %, got %', (select string_agg(l.what, ', ' order by l.what) from pawl.least_age l),
      coalesce('"' || left(p_what, 80) || '"', 'null') using errcode = 'QU001';
  end if;
end
$$;
