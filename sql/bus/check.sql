-- check.sql - guards of arguments that several functions take.
-- Errors: QU001 an argument is out of range.

-- May this be the name of a domain (of at most 63 characters), a type or a response (100)? Written to be inlined.
create or replace function pawl.is_name (p_name text, p_most integer)
  returns boolean
  language sql immutable
as $$
  select (p_name ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]*$' and char_length(p_name) <= p_most) is true
$$;

create or replace function pawl.name_check (p_field text, p_name text, p_most integer, p_errcode text default 'QU001')
  returns void
  language plpgsql immutable
as $$
begin
  if not pawl.is_name(p_name, p_most) then
    raise exception '% must be 1 to % letters, digits, "_", ".", ":" or "-", beginning with a letter or digit, got %', p_field, p_most,
      coalesce('"' || left(p_name, 80) || '"', 'null') using errcode = p_errcode;
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

-- What retention deletes at once, and from which age on.
create or replace function pawl.prune_check (p_limit integer, p_older interval)
  returns void
  language plpgsql immutable
as $$
begin
  if (p_limit between 1 and 1000000 and p_older >= interval '0') is not true then
    raise exception 'limit must be from 1 to 1000000, and the age must not be negative' using errcode = 'QU001';
  end if;
end
$$;
