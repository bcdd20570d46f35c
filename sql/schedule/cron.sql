-- cron.sql - cron expressions: what they say, and the next time after a given one in a time zone.
--
-- Five fields as in Vixie's cron: minute, hour, day of month, month, weekday, each *, a value, a range or a list of
-- them, with a step behind * and ranges, and names of months and weekdays. If neither day field begins with *, a day
-- matches when one of them does, else when both do.
--
-- Daylight saving time. An expression that matches every hour follows the clocks: it fires whenever they show a time of
-- its own, so */30 fires each half hour that passes. Any other expression names times of a day, and each of them fires
-- once: the first time the clocks show it, or, if they skip it, at the first moment after the gap.
--
-- The time zones are PostgreSQL's. Times are computed by fields and days of whole months, never minute by minute.
-- Errors: QS001 the expression or the time zone is not valid.

-- One value of a field: a number, or the place of its name. Null: neither.
create or replace function pawl.cron_value (p_text text, p_names text[], p_min integer)
  returns integer
  language sql immutable
as $$
  select case when p_text ~ '^[0-9]{1,2}$' then p_text::integer else array_position(p_names, p_text) - 1 + p_min end
$$;

-- The values of one field, in order.
create or replace function pawl.cron_field (p_field text, p_text text, p_min integer, p_max integer, p_names text[])
  returns integer[]
  language plpgsql immutable
as $$
declare
  v_item text;
  v_part text[]; -- the whole, first, last, step
  v_first integer;
  v_last integer;
  v_step integer;
  v_all integer[] := '{}';
begin
  foreach v_item in array string_to_array(lower(p_text), ',') loop
    v_part := regexp_match(v_item, '^(?:(\*)|(\w+)(?:-(\w+))?)(?:/(\d{1,3}))?$');
    v_first := case when v_part[1] is null then pawl.cron_value(v_part[2], p_names, p_min) else p_min end;
    v_last := case when v_part[1] is not null then p_max
                   when v_part[3] is null then v_first
                   when v_part[3] = 'sun' then 7
                   else pawl.cron_value(v_part[3], p_names, p_min) end;
    if (v_first between p_min and p_max and v_last between p_min and p_max) is not true then
      raise exception '% of cron must be *, a value from % to %, a range or a list, got "%"', p_field, p_min, p_max,
        left(v_item, 40) using errcode = 'QS001';
    end if;
    if v_first > v_last then
      raise exception '% of cron has a range that ends before it begins: "%"', p_field, left(v_item, 40)
        using errcode = 'QS001';
    end if;
    if v_part[4] is not null and v_part[1] is null and v_part[3] is null then
      raise exception '% of cron has a step behind one value, "%": give a range, such as %-%/%', p_field,
        left(v_item, 40), v_first, p_max, v_part[4] using errcode = 'QS001';
    end if;
    v_step := coalesce(v_part[4], '1')::integer;
    if v_step not between 1 and p_max then
      raise exception '% of cron has a step that must be from 1 to %, got "%"', p_field, p_max, left(v_item, 40)
        using errcode = 'QS001';
    end if;
    v_all := v_all || array(select n from generate_series(v_first, v_last, v_step) n);
  end loop;
  return array(select distinct n from unnest(v_all) n order by n);
end
$$;

-- The expression that @daily and its like stand for; any other text as it is.
create or replace function pawl.cron_expand (p_cron text)
  returns text
  language sql immutable
as $$
  select case lower(p_cron) when '@yearly' then '0 0 1 1 *' when '@annually' then '0 0 1 1 *'
    when '@monthly' then '0 0 1 * *'
              when '@weekly' then '0 0 * * 0' when '@daily' then '0 0 * * *' when '@midnight' then '0 0 * * *'
              when '@hourly' then '0 * * * *' else p_cron end
$$;

-- An expression as the values of its fields; weekdays: 0 is Sunday. is_either: one matching day field is enough.
create or replace function pawl.cron_read (
  p_cron text, out minutes integer[], out hours integer[], out days integer[], out months integer[],
  out weekdays integer[], out is_either boolean)
  language plpgsql immutable
as $$
declare
  c_months constant text[] := '{jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec}';
  c_weekdays constant text[] := '{sun,mon,tue,wed,thu,fri,sat}';
  v_fields text[];
begin
  if (char_length(p_cron) between 1 and 200) is not true then
    raise exception 'cron must have 1 to 200 characters, got %', coalesce(char_length(p_cron)::text, 'null')
      using errcode = 'QS001';
  end if;
  v_fields := regexp_split_to_array(btrim(pawl.cron_expand(p_cron)), '\s+');
  if cardinality(v_fields) <> 5 then
    raise exception 'cron must have five fields or be @hourly, @daily or the like, got "%"',
      left(p_cron, 80) using errcode = 'QS001';
  end if;
  minutes := pawl.cron_field('minute', v_fields[1], 0, 59, null);
  hours := pawl.cron_field('hour', v_fields[2], 0, 23, null);
  days := pawl.cron_field('day', v_fields[3], 1, 31, null);
  months := pawl.cron_field('month', v_fields[4], 1, 12, c_months);
  weekdays := array(select distinct n % 7 from unnest(pawl.cron_field('weekday', v_fields[5], 0, 7,
    c_weekdays)) n order by 1);
  is_either := v_fields[3] !~ '^\*' and v_fields[5] !~ '^\*';
  if not is_either and not exists (
    select from unnest(months) m where days[1] <= case when m = 2 then 29 when m in (4, 6, 9, 11) then 30
      else 31 end) then
    raise exception 'cron "%" never fires: none of its months has a day %', left(p_cron, 80), days[1]
      using errcode = 'QS001';
  end if;
end
$$;

-- The first day from p_day on that matches; null: none within 50 years.
create or replace function pawl.cron_day (
  p_day date, p_days integer[], p_months integer[], p_weekdays integer[], p_is_either boolean)
  returns date
  language plpgsql immutable
as $$
declare
  c_months_max constant integer := 50 * 12;
  v_month date := date_trunc('month', p_day::timestamp);
  v_day integer := extract(day from p_day);
begin
  if (extract(month from p_day)::integer = any (p_months)
      and case when p_is_either then v_day = any (p_days) or extract(dow from p_day)::integer = any (p_weekdays)
               else v_day = any (p_days) and extract(dow from p_day)::integer = any (p_weekdays) end) then
    return p_day;
  end if;
  for v_try in 1 .. c_months_max loop
    if extract(month from v_month)::integer = any (p_months) then
      select min(d.day) into v_day
      from generate_series(case when v_try = 1 then extract(day from p_day)::integer else 1 end,
                           extract(day from v_month + interval '1 month' - interval '1 day')::integer) d (day)
      where case when p_is_either
              then d.day = any (p_days) or (extract(dow from v_month)::integer + d.day - 1) % 7 = any (p_weekdays)
              else d.day = any (p_days) and (extract(dow from v_month)::integer + d.day - 1) % 7 = any (p_weekdays) end;
      if v_day is not null then
        return v_month + v_day - 1;
      end if;
    end if;
    v_month := v_month + interval '1 month';
  end loop;
  return null;
end
$$;

-- The first minute from p_from on that matches, on clocks that are never changed.
create or replace function pawl.cron_local (p_cron record, p_from timestamp)
  returns timestamp
  language plpgsql immutable
as $$
declare
  v_from timestamp := date_trunc('minute', p_from + interval '59.999999 s');
  v_day date := pawl.cron_day(v_from::date, p_cron.days, p_cron.months, p_cron.weekdays, p_cron.is_either);
  v_hour integer := extract(hour from v_from);
  v_minute integer;
begin
  if v_day > v_from::date then
    return v_day + make_interval(hours => p_cron.hours[1], mins => p_cron.minutes[1]);
  end if;
  if v_hour = any (p_cron.hours) then
    v_minute := (select min(m) from unnest(p_cron.minutes) m where m >= extract(minute from v_from));
  end if;
  if v_minute is null then
    v_minute := p_cron.minutes[1];
    v_hour := (select min(h) from unnest(p_cron.hours) h where h > v_hour);
  end if;
  if v_hour is null then
    v_day := pawl.cron_day(v_day + 1, p_cron.days, p_cron.months, p_cron.weekdays, p_cron.is_either);
    v_hour := p_cron.hours[1];
  end if;
  return v_day + make_interval(hours => v_hour, mins => v_minute);
end
$$;

-- By how much clocks in the zone are ahead of UTC.
create or replace function pawl.zone_offset (p_at timestamptz, p_zone text)
  returns interval
  language sql stable
as $$
  select (p_at at time zone p_zone) - (p_at at time zone 'UTC')
$$;

-- When clocks in the zone show p_local. early and late differ if they show it twice. is_gap: they skip it; early and
-- late are then the first moment after the gap.
create or replace function pawl.zone_times (
  p_local timestamp, p_zone text, out early timestamptz, out late timestamptz, out is_gap boolean)
  language plpgsql stable
as $$
declare
  v_gap interval;
  v_offset interval;
  v_middle timestamptz;
begin
  late := p_local at time zone p_zone; -- the later one of two; of a skipped time, as if the clocks had not been changed
  v_gap := (late at time zone p_zone) - p_local;
  is_gap := v_gap > interval '0';
  if is_gap then
    early := late - v_gap; -- before the gap
    v_offset := pawl.zone_offset(late, p_zone);
    while late - early > interval '1 s' loop
      v_middle := date_trunc('second', early + (late - early) / 2);
      if pawl.zone_offset(v_middle, p_zone) = v_offset then
        late := v_middle;
      else
        early := v_middle;
      end if;
    end loop;
    early := late;
  else
    early := (p_local - pawl.zone_offset(late - interval '1 day', p_zone)) at time zone 'UTC';
    if early > late or (early at time zone p_zone) <> p_local then
      early := late;
    end if;
  end if;
end
$$;

-- The first time after p_after for an expression that follows the clocks, if they are set back soon after p_after:
-- they then show times again that lie before the one that they show at p_after. Null: they are not.
create or replace function pawl.cron_again (p_cron record, p_zone text, p_after timestamptz)
  returns timestamptz
  language plpgsql stable
as $$
declare
  v_shown timestamp := p_after at time zone p_zone;
  v_again timestamptz := (pawl.zone_times(v_shown, p_zone)).late; -- when they show it again
  v_local timestamp := v_shown - (v_again - p_after);
  v_late timestamptz;
begin
  while v_again > p_after loop
    v_local := pawl.cron_local(p_cron, v_local);
    exit when v_local is null or v_local > v_shown;
    v_late := (pawl.zone_times(v_local, p_zone)).late;
    if v_late > p_after then
      return v_late;
    end if;
    v_local := v_local + interval '1 min';
  end loop;
  return null;
end
$$;

-- The first time after p_after. p_cron: as pawl.cron_read has it. Null: none within 50 years.
create or replace function pawl.cron_next (p_cron record, p_zone text, p_after timestamptz)
  returns timestamptz
  language plpgsql stable
as $$
declare
  v_follows boolean := cardinality(p_cron.hours) = 24;
  v_local timestamp := date_trunc('minute', p_after at time zone p_zone);
  v_times record;
begin
  loop -- ends within the minutes that the clocks skip or show twice
    v_local := pawl.cron_local(p_cron, v_local + interval '1 min');
    if v_local is null then
      return null;
    end if;
    v_times := pawl.zone_times(v_local, p_zone);
    if not v_follows then
      exit when v_times.early > p_after;
    elsif not v_times.is_gap then
      v_times.early := case when v_times.early > p_after then v_times.early else v_times.late end;
      exit when v_times.early > p_after;
    end if;
  end loop;
  return case when v_follows then least(v_times.early, pawl.cron_again(p_cron, p_zone, p_after)) else v_times.early end;
end
$$;

-- A time zone as PostgreSQL writes its name. Abbreviations are refused: they have no daylight saving time.
create or replace function pawl.timezone_read (p_name text)
  returns text
  language plpgsql stable
as $$
declare
  v_name text;
begin
  if upper(p_name) in ('UTC', 'GMT') then
    return upper(p_name);
  end if;
  select z.name into v_name from pg_catalog.pg_timezone_names z
  where lower(z.name) = lower(p_name) and z.name !~ '^(posix|right)/' and z.name not in ('Factory', 'localtime',
    'posixrules');
  if v_name is null then
    raise exception 'timezone must be a name such as Europe/Berlin, got %', coalesce('"' || left(p_name, 80) || '"',
      'null')
      using errcode = 'QS001';
  end if;
  if exists (select from pg_catalog.pg_timezone_abbrevs a where lower(a.abbrev) = lower(p_name)) then
    raise exception 'timezone must be a name such as Europe/Berlin, got "%", which has no daylight saving time',
      left(p_name, 80) using errcode = 'QS001';
  end if;
  return v_name;
end
$$;

-- The next times of an expression after p_after, now if null: to see what it does before there is a schedule.
create or replace function pawl.cron_times (
  p_cron text, p_timezone text default 'UTC', p_count integer default 10, p_after timestamptz default null)
  returns setof timestamptz
  language plpgsql stable security definer set search_path = pawl, pg_temp
as $$
declare
  v_cron record := pawl.cron_read(p_cron);
  v_zone text := pawl.timezone_read(p_timezone);
  v_at timestamptz := coalesce(p_after, pawl.now());
begin
  if (p_count between 1 and 1000) is not true then
    raise exception 'count must be from 1 to 1000, got %', coalesce(p_count::text, 'null') using errcode = 'QS001';
  end if;
  if not isfinite(v_at) or extract(year from v_at) not between 1 and 9999 then
    raise exception 'after must be in the years 1 to 9999' using errcode = 'QS001';
  end if;
  for v_number in 1 .. p_count loop
    v_at := pawl.cron_next(v_cron, v_zone, v_at);
    exit when v_at is null;
    return next v_at;
  end loop;
end
$$;
