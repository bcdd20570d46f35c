-- player.sql - players, usernames and members of groups.
-- Invariant: a username is one player's, the one who was seen with it last; a player has one username.
-- Lock order: players by user_id, usernames by name, members by group_id and player_id, each over all messages of a call. Rows that do not change
-- are not written.
-- Errors: RT002 an argument is missing or out of range.

-- What messages show: these users exist, with these names. p_groups and p_ats: the group and the time of the message of each. p_presents: true,
-- false: seen in the group, or leaving it; null: named by another member, which adds a member but does not return one who left.
-- A user in several messages has the name of the last one. No message waits for a name: what another transaction has just written, which may take long,
-- stays as it is, and the next message settles it.
create or replace function rating.players_put (
  p_groups bigint[], p_ats timestamptz[], p_users bigint[], p_names text[], p_usernames text[], p_bots boolean[], p_presents boolean[])
  returns void
  language plpgsql set search_path = rating, pg_temp set plan = keyed_cached
as $$
declare
  v_renamed bigint[];
begin
  if exists (select from unnest(p_groups, p_ats, p_users, p_names, p_bots) u (group_id, at, id, name, bot)
             where (u.id <> 0) is not true or u.group_id is null or u.at is null or u.name is null or u.bot is null) then
    raise exception 'users must have an id other than 0, a group, a name, a time and whether they are bots' using errcode = 'RT002';
  end if;
  insert into rating.player (user_id, name, is_bot, seen_at)
  select distinct on (u.id) u.id, left(u.name, 128), u.bot, u.at
  from unnest(p_users, p_names, p_bots, p_ats) u (id, name, bot, at)
  left join rating.player p on p.user_id = u.id
  where p.id is null
  order by u.id, u.at desc
  on conflict on constraint player_user do nothing;
  v_renamed := array(
    select u.id from unnest(p_users, p_names, p_bots, p_ats) u (id, name, bot, at)
    join rating.player p on p.user_id = u.id
    where p.seen_at <= u.at and (p.name <> left(u.name, 128) or p.is_bot <> u.bot));
  if cardinality(v_renamed) > 0 then
    v_renamed := array(
      select p.user_id from rating.player p where p.user_id = any (v_renamed) order by p.user_id for no key update skip locked);
    update rating.player p set name = left(u.name, 128), is_bot = u.bot, seen_at = u.at
    from (select distinct on (u.id) u.id, u.name, u.bot, u.at from unnest(p_users, p_names, p_bots, p_ats) u (id, name, bot, at)
          where u.id = any (v_renamed) order by u.id, u.at desc) u
    where p.user_id = u.id and p.seen_at <= u.at;
  end if;

  if exists (select from unnest(p_users, p_usernames) u (id, username)
             join rating.player p on p.user_id = u.id
             left join rating.username n on n.player_id = p.id
             where n.shown is distinct from left(u.username, 64)) then
    perform rating.usernames_put(p_ats, p_users, p_usernames);
  end if;

  insert into rating.member as old (group_id, player_id, is_present, rating, deviation, volatility)
  select u.group_id, u.id, coalesce(u.present, true), g.start_rating, 350, 0.06
  from (select distinct on (u.group_id, p.id) u.group_id, p.id, u.present from unnest(p_groups, p_users, p_presents) u (group_id, user_id, present)
        join rating.player p on p.user_id = u.user_id order by u.group_id, p.id, u.present) u
  join rating.groups g on g.id = u.group_id
  left join rating.member m on m.group_id = u.group_id and m.player_id = u.id
  where m.player_id is null or m.is_present <> u.present
  order by u.group_id, u.id
  on conflict (group_id, player_id) do update set is_present = excluded.is_present where old.is_present <> excluded.is_present;
end
$$;

-- The same for one message. Returns a row per user.
create or replace function rating.players_seen (
  p_group_id bigint, p_at timestamptz, p_users bigint[], p_names text[], p_usernames text[], p_bots boolean[], p_presents boolean[])
  returns table (ord integer, player_id bigint)
  language plpgsql security definer set search_path = rating, pg_temp set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_count integer := cardinality(p_users);
begin
  perform pawl.array_check('users', p_users, v_count, 'RT002'), pawl.array_check('names', p_names, v_count, 'RT002'),
          pawl.array_check('usernames', p_usernames, v_count, 'RT002'), pawl.array_check('bots', p_bots, v_count, 'RT002'),
          pawl.array_check('presents', p_presents, v_count, 'RT002');
  if p_at is null or v_count > 200 then
    raise exception 'users must be at most 200, with a time' using errcode = 'RT002';
  end if;
  perform rating.players_put(array_fill(p_group_id, array[v_count]), array_fill(p_at, array[v_count]), p_users, p_names, p_usernames, p_bots,
                             p_presents);
  return query select u.ord::integer, p.id from unnest(p_users) with ordinality u (id, ord) join rating.player p on p.user_id = u.id;
end
$$;

-- Who has which username since p_ats, as far as nothing newer is known. Another transaction may give the same player another name at the same
-- moment: then one of them is kept, and the next message settles it.
create or replace function rating.usernames_put (p_ats timestamptz[], p_users bigint[], p_usernames text[])
  returns void
  language plpgsql set search_path = rating, pg_temp
as $$
declare
  v_players bigint[];
  v_names text[];
  v_shown text[];
  v_ats timestamptz[];
  v_taken text[];
  v_busy text[];
begin
  select array_agg(q.id), array_agg(lower(q.shown)), array_agg(q.shown), array_agg(q.at) into v_players, v_names, v_shown, v_ats
  from (select distinct on (p.id) p.id, nullif(left(u.username, 64), '') as shown, u.at
        from unnest(p_users, p_usernames, p_ats) u (user_id, username, at) join rating.player p on p.user_id = u.user_id
        order by p.id, u.at desc) q;
  v_taken := array(select n.name from rating.username n where n.name = any (v_names) or n.player_id = any (v_players));
  v_busy := array(
    select t from unnest(v_taken) t
    except
    select l.name from (select n.name from rating.username n where n.name = any (v_taken) order by n.name for update skip locked) l);
  if cardinality(v_busy) > 0 then
    select array_agg(u.id), array_agg(u.name), array_agg(u.shown), array_agg(u.at) into v_players, v_names, v_shown, v_ats
    from unnest(v_players, v_names, v_shown, v_ats) u (id, name, shown, at)
    where not coalesce(u.name = any (v_busy), false)
      and not exists (select from rating.username o where o.player_id = u.id and o.name = any (v_busy));
  end if;
  delete from rating.username n
  using unnest(v_players, v_names, v_ats) u (id, name, at)
  where n.player_id = u.id and n.seen_at <= u.at and n.name is distinct from u.name;
  insert into rating.username as old (name, shown, player_id, seen_at)
  select distinct on (u.name) u.name, u.shown, u.id, u.at
  from unnest(v_players, v_names, v_shown, v_ats) u (id, name, shown, at)
  where u.name is not null and not exists (select from rating.username n where n.player_id = u.id and n.name <> u.name)
  order by u.name, u.at desc, u.id
  on conflict (name) do update set shown = excluded.shown, player_id = excluded.player_id, seen_at = excluded.seen_at
  where old.seen_at <= excluded.seen_at and (old.player_id <> excluded.player_id or old.shown <> excluded.shown);
exception when unique_violation then
  null;
end
$$;

-- A player, as one of a group. is_member: seen in this group. is_present: and has not left. One statement, so that it is inlined.
create or replace function rating.player_in_group (p_group_id bigint, p_player_id bigint)
  returns table (player_id bigint, user_id bigint, name text, username text, is_bot boolean, is_member boolean, is_present boolean)
  language sql stable
as $$
  select p.id, p.user_id, p.name, n.shown, p.is_bot, m.player_id is not null, coalesce(m.is_present, false)
  from rating.player p
  left join rating.username n on n.player_id = p.id
  left join rating.member m on m.group_id = p_group_id and m.player_id = p.id
  where p.id = p_player_id
$$;

-- Players by username, in any case; a row for each that is known.
create or replace function rating.players_named (p_group_id bigint, p_names text[])
  returns table (ord integer, player_id bigint, user_id bigint, name text, username text, is_bot boolean, is_member boolean, is_present boolean)
  language sql stable security definer set search_path = rating, pg_temp
as $$
  select u.ord::integer, p.*
  from unnest(p_names) with ordinality u (name, ord)
  join rating.username n on n.name = lower(u.name)
  cross join lateral rating.player_in_group(p_group_id, n.player_id) p
$$;

-- The same by player id.
create or replace function rating.players_get (p_group_id bigint, p_players bigint[])
  returns table (ord integer, player_id bigint, user_id bigint, name text, username text, is_bot boolean, is_member boolean, is_present boolean)
  language sql stable security definer set search_path = rating, pg_temp
as $$
  select u.ord::integer, p.*
  from unnest(p_players) with ordinality u (id, ord)
  cross join lateral rating.player_in_group(p_group_id, u.id) p
$$;

-- The same by outside id.
create or replace function rating.players_of_users (p_group_id bigint, p_users bigint[])
  returns table (ord integer, player_id bigint, user_id bigint, name text, username text, is_bot boolean, is_member boolean, is_present boolean)
  language sql stable security definer set search_path = rating, pg_temp
as $$
  select u.ord::integer, p.*
  from unnest(p_users) with ordinality u (id, ord)
  join rating.player o on o.user_id = u.id
  cross join lateral rating.player_in_group(p_group_id, o.id) p
$$;

-- Which of these users, each in its group, has the name of another player who has played there: the numbers of their elements.
create or replace function rating.namesakes (p_groups bigint[], p_users bigint[])
  returns table (ord integer)
  language plpgsql stable security definer set search_path = rating, pg_temp set plan = keyed_cached
as $$
#variable_conflict use_column
begin
  perform pawl.array_check('groups', p_groups, cardinality(p_groups), 'RT002'),
          pawl.array_check('users', p_users, cardinality(p_groups), 'RT002');
  return query
    select u.ord::integer
    from unnest(p_groups, p_users) with ordinality u (group_id, user_id, ord)
    join rating.player p on p.user_id = u.user_id
    where exists (select from rating.member o join rating.player q on q.id = o.player_id
                  where o.group_id = u.group_id and o.games > 0 and q.id <> p.id and q.name = p.name)
    order by u.ord;
end
$$;

-- One more command of each of these players at p_ats (null, or a time that is yet to come: now), in a group, or in a private chat, which has the
-- negative outside id of its user instead. Returns how many there were in the minute before, this one included. What is beyond p_per_player is
-- not counted, except the first, so that a flood of one player leaves the group its limit. Rows that are more than two minutes older are
-- deleted on the way, at most 50 of a group.
create or replace function rating.usage_add (p_groups bigint[], p_players bigint[], p_ats timestamptz[], p_per_player integer)
  returns table (ord integer, by_player bigint, by_group bigint)
  language plpgsql security definer set search_path = rating, pg_temp set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_now timestamptz := pawl.now();
begin
  perform pawl.array_check('groups', p_groups, cardinality(p_groups), 'RT002'),
          pawl.array_check('players', p_players, cardinality(p_groups), 'RT002'),
          pawl.array_check('ats', p_ats, cardinality(p_groups), 'RT002');
  if array_position(p_groups, null) is not null or array_position(p_players, null) is not null or (p_per_player > 0) is not true then
    raise exception 'groups and players must not be null, and a player must have one command at least' using errcode = 'RT002';
  end if;
  delete from rating.usage u
  where u.ctid = any (array(
    select o.tid from unnest(p_groups, p_ats) g (id, at)
    cross join lateral (
      select o.ctid as tid from rating.usage o where o.group_id = g.id and o.at < least(g.at, v_now) - interval '2 minutes'
      order by o.at limit 50 for update skip locked) o));
  return query
    with item as (
      select u.*, c.by_player, c.by_group
      from (select u.ord, u.group_id, u.player_id, least(u.at, v_now) as at
            from unnest(p_groups, p_players, p_ats) with ordinality u (group_id, player_id, at, ord)) u
      cross join lateral (
        select count(*) filter (where o.player_id = u.player_id) as by_player, count(*) as by_group
        from rating.usage o where o.group_id = u.group_id and o.at > u.at - interval '1 minute' and o.at <= u.at) c
    ), added as (
      insert into rating.usage (group_id, player_id, at)
      select i.group_id, i.player_id, i.at from item i where i.by_player <= p_per_player
    )
    select i.ord::integer, i.by_player + 1, i.by_group + 1 from item i;
end
$$;

-- Would one more command of an author be within the limits? p_author: the outside id of a user, or the negative one of a chat in whose name it is
-- written; 0: unknown. p_at: as in rating.usage_add. Counts nothing: rating.turns_open decides.
create or replace function rating.usage_is_left (p_group_id bigint, p_author bigint, p_at timestamptz, p_per_player integer, p_per_group integer)
  returns boolean
  language plpgsql stable security definer set search_path = rating, pg_temp set plan = keyed_cached
as $$
declare
  v_at timestamptz := least(p_at, pawl.now());
  v_player bigint;
begin
  if p_author = -9223372036854775808 or p_at < '1970-01-01 00:00:00+00' then
    raise exception 'author must have a negative, and the time must be from 1970 on' using errcode = 'RT002';
  end if;
  v_player := coalesce((select p.id from rating.player p where p.user_id = p_author), -abs(p_author));
  return coalesce(count(*) < p_per_group and count(*) filter (where o.player_id = v_player) < p_per_player, false)
  from rating.usage o where o.group_id = p_group_id and o.at > v_at - interval '1 minute' and o.at <= v_at;
end
$$;
