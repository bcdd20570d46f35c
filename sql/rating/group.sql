-- group.sql - groups and their settings.
-- Lock order: the group's row; a move locks the old group, the new one, then the members of the new one by player_id.
-- Errors: RT002 an argument is missing or out of range; RT003 there is no such group.

-- A group with its rules, by its chat id or one that it had before; no row: unknown.
create or replace function rating.group_get (p_chat_id bigint)
  returns table (id bigint, chat_id bigint, title text, is_active boolean, is_published boolean, language text, rules_id integer, formula integer, system text,
                 k_factor integer, margin boolean, start_rating integer, draws boolean, undo_hours integer, min_games integer,
                 match_topic text, ranking_topic text)
  language plpgsql stable security definer set search_path = rating, pg_temp
  set plan = keyed_cached
as $$
#variable_conflict use_column
begin
  return query
    select g.id, g.chat_id, g.title, g.is_active, g.is_published, g.language, g.rules_id, r.formula, r.system, r.k_factor, r.margin, g.start_rating,
           g.draws, g.undo_hours, g.min_games, g.match_topic::text, g.ranking_topic::text
    from rating.groups g join rating.rules r on r.id = g.rules_id
    where g.id = coalesce((select o.id from rating.groups o where o.chat_id = p_chat_id),
                          (select a.group_id from rating.group_alias a where a.chat_id = p_chat_id));
end
$$;

-- The same, created on first sight. A title that is given and differs is stored.
create or replace function rating.group_open (p_chat_id bigint, p_title text, p_language text)
  returns table (id bigint, chat_id bigint, title text, is_active boolean, is_published boolean, language text, rules_id integer, formula integer, system text,
                 k_factor integer, margin boolean, start_rating integer, draws boolean, undo_hours integer, min_games integer,
                 match_topic text, ranking_topic text)
  language plpgsql security definer set search_path = rating, pg_temp
as $$
declare
  v_title text := left(p_title, 255);
  v_old text;
begin
  if (p_chat_id <> 0) is not true then
    raise exception 'chat_id must be a number other than 0' using errcode = 'RT002';
  end if;
  select g.title into v_old from rating.groups g where g.chat_id = p_chat_id;
  if not found and not exists (select from rating.group_alias a where a.chat_id = p_chat_id) then
    insert into rating.groups (chat_id, title, language, created_at)
    values (p_chat_id, coalesce(v_title, ''), case when p_language = 'ru' then 'ru' else 'en' end, pawl.now())
    on conflict on constraint groups_chat do nothing;
  elsif v_old is distinct from v_title and v_title is not null then
    update rating.groups g set title = v_title where g.chat_id = p_chat_id;
  end if;
  return query select * from rating.group_get(p_chat_id);
end
$$;

-- The time zone that PostgreSQL knows by this name, or by its city; null: none.
create or replace function rating.timezone_find (p_name text)
  returns text
  language sql stable security definer set search_path = rating, pg_temp
as $$
  select n.name from pg_timezone_names n
  where lower(p_name) in (lower(n.name), lower(split_part(n.name, '/', -1))) and n.name !~ '^(posix|right)/' and n.name not in ('Factory', 'localtime')
  order by lower(n.name) = lower(p_name) desc, length(n.name), n.name limit 1
$$;

create or replace function rating.group_timezone (p_group_id bigint)
  returns text
  language sql stable security definer set search_path = rating, pg_temp
as $$
  select g.timezone from rating.groups g where g.id = p_group_id
$$;

-- What clocks in the group's time zone show at these times, as microseconds of UTC. In UTC if the server does not know the zone, as after a
-- restore on another one.
create or replace function rating.group_times (p_group_id bigint, p_times bigint[])
  returns table (ord integer, at bigint)
  language plpgsql stable security definer set search_path = rating, pg_temp
as $$
#variable_conflict use_column
declare
  v_timezone text := rating.group_timezone(p_group_id);
begin
  if 0 > any (p_times) or 253402300799999999 < any (p_times) then -- the end of the year 9999
    raise exception 'times must be from 0 to 253402300799999999' using errcode = 'RT002';
  end if;
  begin
    return query
      select u.ord::integer, pawl.micros((timestamptz 'epoch' + u.at * interval '1 microsecond') at time zone v_timezone at time zone 'UTC')
      from unnest(p_times) with ordinality u (at, ord) order by u.ord;
    return;
  exception when invalid_parameter_value then
    null;
  end;
  return query select u.ord::integer, u.at from unnest(p_times) with ordinality u (at, ord) order by u.ord;
end
$$;

-- One setting of a group, as text; null for a topic: anywhere.
create or replace function rating.group_set (p_group_id bigint, p_name text, p_value text)
  returns void
  language plpgsql security definer set search_path = rating, pg_temp
as $$
declare
  v_rules rating.rules;
begin
  if p_value is null and coalesce(p_name, '') not in ('match_topic', 'ranking_topic') then
    raise exception 'the value of % must not be null', coalesce(p_name, 'null') using errcode = 'RT002';
  end if;
  perform from rating.groups g where g.id = p_group_id for no key update;
  if not found then
    raise exception 'there is no group %', coalesce(p_group_id::text, 'null') using errcode = 'RT003';
  end if;
  begin
    case p_name
      when 'system', 'k_factor', 'margin' then
        select r.* into strict v_rules from rating.rules r join rating.groups g on g.rules_id = r.id where g.id = p_group_id;
        v_rules.system := case when p_name = 'system' then p_value else v_rules.system end;
        v_rules.k_factor := case when p_name = 'k_factor' then p_value::integer else v_rules.k_factor end;
        v_rules.margin := case when p_name = 'margin' then p_value::boolean else v_rules.margin end;
        insert into rating.rules (formula, system, k_factor, margin)
        values (v_rules.formula, v_rules.system, v_rules.k_factor, v_rules.margin)
        on conflict on constraint rules_key do nothing;
        update rating.groups g
        set rules_id = (select r.id from rating.rules r
                        where r.formula = v_rules.formula and r.system = v_rules.system and r.k_factor = v_rules.k_factor
                          and r.margin = v_rules.margin)
        where g.id = p_group_id;
      when 'start_rating' then update rating.groups g set start_rating = p_value::integer where g.id = p_group_id;
      when 'draws' then update rating.groups g set draws = p_value::boolean where g.id = p_group_id;
      when 'undo_hours' then update rating.groups g set undo_hours = p_value::integer where g.id = p_group_id;
      when 'min_games' then update rating.groups g set min_games = p_value::integer where g.id = p_group_id;
      when 'match_topic' then update rating.groups g set match_topic = p_value::bigint where g.id = p_group_id;
      when 'ranking_topic' then update rating.groups g set ranking_topic = p_value::bigint where g.id = p_group_id;
      when 'language' then update rating.groups g set language = p_value, is_language_set = true where g.id = p_group_id;
      when 'timezone' then
        if p_value is distinct from rating.timezone_find(p_value) then
          raise invalid_parameter_value;
        end if;
        update rating.groups g set timezone = p_value where g.id = p_group_id;
      when 'is_published' then update rating.groups g set is_published = p_value::boolean where g.id = p_group_id;
      when 'is_active' then update rating.groups g set is_active = p_value::boolean where g.id = p_group_id;
      else raise exception 'there is no setting "%"', left(p_name, 60) using errcode = 'RT002';
    end case;
  exception when check_violation or invalid_text_representation or invalid_parameter_value or numeric_value_out_of_range then
    raise exception '% must not be "%"', p_name, left(p_value, 60) using errcode = 'RT002';
  end;
end
$$;

-- A group has a new outside id; the old one stays its alias, because messages that were sent there may come later. Returns whether
-- something moved: not if the old id is unknown or moved before, and not if the new id has matches of its own. A group that was already
-- seen under the new id and has no matches gives way: its members are locked first, so that a match there is either seen or meets no members.
create or replace function rating.group_move (p_from bigint, p_to bigint)
  returns boolean
  language plpgsql security definer set search_path = rating, pg_temp
as $$
declare
  v_id bigint;
  v_new bigint;
begin
  if (p_from <> 0 and p_to <> 0 and p_from <> p_to) is not true then
    raise exception 'a group must move from one id to another' using errcode = 'RT002';
  end if;
  select g.id into v_id from rating.groups g where g.chat_id = p_from for update;
  if not found then
    return false;
  end if;
  select g.id into v_new from rating.groups g where g.chat_id = p_to for update;
  if found then
    perform from rating.member m where m.group_id = v_new order by m.player_id for update;
    if exists (select from rating.match m where m.group_id = v_new) then
      return false;
    end if;
    delete from rating.member m where m.group_id = v_new;
    delete from rating.question q where q.group_id = v_new;
    update rating.group_alias a set group_id = v_id where a.group_id = v_new;
    delete from rating.groups g where g.id = v_new;
  end if;
  delete from rating.group_alias a where a.chat_id = p_to;
  insert into rating.group_alias (chat_id, group_id) values (p_from, v_id) on conflict (chat_id) do update set group_id = excluded.group_id;
  update rating.groups g set chat_id = p_to, is_active = true where g.id = v_id;
  return true;
end
$$;

-- Groups after p_after, for verification.
create or replace function rating.group_list (p_after bigint, p_limit integer)
  returns table (id bigint, chat_id bigint, title text)
  language sql stable security definer set search_path = rating, pg_temp
as $$
  select g.id, g.chat_id, g.title from rating.groups g where g.id > p_after order by g.id limit least(greatest(p_limit, 0), 1000)
$$;
