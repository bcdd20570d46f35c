-- player.sql - who is who: players, usernames, members of groups.
-- Invariant: a username is one player's, the one who was seen with it last; a player has one username.
-- Lock order: players by user_id, usernames by name, members by player_id. Rows that do not change are not written.
-- Errors: RT002 an argument is missing or out of range.

-- What a message of p_at shows: these users exist, with these names. p_presents: true, false: seen in the group, or leaving it; null: named by
-- another member, which adds a member but does not return one who left. Returns a row per user.
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
  if p_at is null or v_count > 200 or exists (
       select from unnest(p_users, p_names, p_bots) u (id, name, bot) where (u.id <> 0) is not true or u.name is null or u.bot is null) then
    raise exception 'users must be at most 200, with an id other than 0, a name, a time and whether they are bots' using errcode = 'RT002';
  end if;
  insert into rating.player (user_id, name, is_bot, seen_at)
  select u.id, left(u.name, 128), u.bot, p_at
  from (select distinct on (u.id) u.id, u.name, u.bot from unnest(p_users, p_names, p_bots) u (id, name, bot) order by u.id) u
  left join rating.player p on p.user_id = u.id
  where p.id is null or p.seen_at <= p_at and (p.name <> left(u.name, 128) or p.is_bot <> u.bot)
  order by u.id
  on conflict on constraint player_user do update set name = excluded.name, is_bot = excluded.is_bot, seen_at = excluded.seen_at;

  if exists (select from unnest(p_users, p_usernames) u (id, username)
             join rating.player p on p.user_id = u.id
             left join rating.username n on n.player_id = p.id
             where n.shown is distinct from left(u.username, 64)) then
    perform rating.usernames_seen(p_at, p_users, p_usernames);
  end if;

  insert into rating.member as old (group_id, player_id, is_present, rating, deviation, volatility)
  select p_group_id, u.id, coalesce(u.present, true), g.start_rating, 350, 0.06
  from (select distinct on (p.id) p.id, u.present from unnest(p_users, p_presents) u (user_id, present)
        join rating.player p on p.user_id = u.user_id order by p.id, u.present) u
  join rating.groups g on g.id = p_group_id
  left join rating.member m on m.group_id = p_group_id and m.player_id = u.id
  where m.player_id is null or m.is_present <> u.present
  order by u.id
  on conflict (group_id, player_id) do update set is_present = excluded.is_present where old.is_present <> excluded.is_present;

  return query select u.ord::integer, p.id from unnest(p_users) with ordinality u (id, ord) join rating.player p on p.user_id = u.id;
end
$$;

-- Who has which username since p_at, as far as nothing newer is known. Another transaction may give the same player another name at the same
-- moment: then one of them is kept, and the next message settles it.
create or replace function rating.usernames_seen (p_at timestamptz, p_users bigint[], p_usernames text[])
  returns void
  language plpgsql set search_path = rating, pg_temp
as $$
begin
  delete from rating.username n
  using unnest(p_users, p_usernames) u (id, username) join rating.player p on p.user_id = u.id
  where n.player_id = p.id and n.seen_at <= p_at and n.name is distinct from lower(left(u.username, 64));
  insert into rating.username as old (name, shown, player_id, seen_at)
  select distinct on (lower(left(u.username, 64))) lower(left(u.username, 64)), left(u.username, 64), p.id, p_at
  from unnest(p_users, p_usernames) u (id, username) join rating.player p on p.user_id = u.id
  where u.username <> '' and not exists (select from rating.username n where n.player_id = p.id and n.name <> lower(left(u.username, 64)))
  order by 1, p.id
  on conflict (name) do update set shown = excluded.shown, player_id = excluded.player_id, seen_at = excluded.seen_at
  where old.seen_at <= excluded.seen_at and (old.player_id <> excluded.player_id or old.shown <> excluded.shown);
exception when unique_violation then
  null;
end
$$;

-- Players by username, in any case; a row for each that is known. is_member: seen in this group. is_present: and has not left.
create or replace function rating.players_named (p_group_id bigint, p_names text[])
  returns table (ord integer, player_id bigint, user_id bigint, name text, username text, is_bot boolean, is_member boolean, is_present boolean)
  language sql stable security definer set search_path = rating, pg_temp
as $$
  select u.ord::integer, p.id, p.user_id, p.name, n.shown, p.is_bot, m.player_id is not null, coalesce(m.is_present, false)
  from unnest(p_names) with ordinality u (name, ord)
  join rating.username n on n.name = lower(u.name)
  join rating.player p on p.id = n.player_id
  left join rating.member m on m.group_id = p_group_id and m.player_id = p.id
$$;

-- The same by player id.
create or replace function rating.players_get (p_group_id bigint, p_players bigint[])
  returns table (ord integer, player_id bigint, user_id bigint, name text, username text, is_bot boolean, is_member boolean, is_present boolean)
  language sql stable security definer set search_path = rating, pg_temp
as $$
  select u.ord::integer, p.id, p.user_id, p.name, n.shown, p.is_bot, m.player_id is not null, coalesce(m.is_present, false)
  from unnest(p_players) with ordinality u (id, ord)
  join rating.player p on p.id = u.id
  left join rating.username n on n.player_id = p.id
  left join rating.member m on m.group_id = p_group_id and m.player_id = p.id
$$;

-- One more command of this player in this group, or in a private chat, which has the negative outside id of its user instead of a group; how many there were in the last minute, this one included. Rows that are older than two
-- minutes are deleted on the way, at most 50 of the group.
create or replace function rating.usage_add (p_group_id bigint, p_player_id bigint)
  returns table (by_player bigint, by_group bigint)
  language plpgsql security definer set search_path = rating, pg_temp set plan = keyed_cached
as $$
declare
  v_now timestamptz := pawl.now();
begin
  if p_group_id is null or p_player_id is null then
    raise exception 'group and player must not be null' using errcode = 'RT002';
  end if;
  delete from rating.usage u
  where u.ctid in (select o.ctid from rating.usage o where o.group_id = p_group_id and o.at < v_now - interval '2 minutes'
                   order by o.at limit 50 for update skip locked);
  insert into rating.usage (group_id, player_id, at) values (p_group_id, p_player_id, v_now);
  return query
    select count(*) filter (where u.player_id = p_player_id), count(*)
    from rating.usage u where u.group_id = p_group_id and u.at > v_now - interval '1 minute';
end
$$;

-- The same by outside id.
create or replace function rating.players_of_users (p_group_id bigint, p_users bigint[])
  returns table (ord integer, player_id bigint, user_id bigint, name text, username text, is_bot boolean, is_member boolean, is_present boolean)
  language sql stable security definer set search_path = rating, pg_temp
as $$
  select u.ord::integer, p.id, p.user_id, p.name, n.shown, p.is_bot, m.player_id is not null, coalesce(m.is_present, false)
  from unnest(p_users) with ordinality u (id, ord)
  join rating.player p on p.user_id = u.id
  left join rating.username n on n.player_id = p.id
  left join rating.member m on m.group_id = p_group_id and m.player_id = p.id
$$;
