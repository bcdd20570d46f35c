-- turn.sql - one call for what every message and every button press needs: its group, who was seen, who is meant, the limits.
-- Lock order: groups; players, usernames and members as rating.players_seen; usage. A message that shows nothing new writes the row of
-- usage at most.
-- Errors: RT002 an argument is missing or out of range.

-- p_at: of the message; null, or a time that is yet to come: now. p_users and the four arrays with it: who was seen, as rating.players_seen takes it. p_author: the outside id of who wrote or pressed; null:
-- an anonymous administrator or a channel. p_counted: it is a command or a press, which counts towards the limits and sets the language
-- of a group that has none. p_asked_users, p_asked_names: who else is asked for, by outside id or username.
-- Returns one row with ord 0 for the group and the limits, and one for each known player: first those of p_asked_users, then those of
-- p_asked_names.
create or replace function rating.turn_open (
  p_chat_id bigint, p_title text, p_language text, p_at timestamptz, p_users bigint[], p_names text[], p_usernames text[], p_bots boolean[],
  p_presents boolean[], p_author bigint, p_counted boolean, p_asked_users bigint[], p_asked_names text[])
  returns table (id bigint, chat_id bigint, title text, is_active boolean, is_published boolean, language text, rules_id integer, system text,
                 k_factor integer, margin boolean, start_rating integer, draws boolean, undo_hours integer, min_games integer,
                 match_topic text, ranking_topic text, by_player bigint, by_group bigint, ord integer, player_id bigint, user_id bigint,
                 name text, username text, is_bot boolean, is_member boolean, is_present boolean)
  language plpgsql security definer set search_path = rating, pg_temp set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_count integer := cardinality(p_users);
  v_at timestamptz := least(p_at, pawl.now());
  v_id bigint;
  v_title text;
  v_language text;
  v_set boolean;
  v_usage record;
begin
  perform pawl.array_check('users', p_users, v_count, 'RT002'), pawl.array_check('names', p_names, v_count, 'RT002'),
          pawl.array_check('usernames', p_usernames, v_count, 'RT002'), pawl.array_check('bots', p_bots, v_count, 'RT002'),
          pawl.array_check('presents', p_presents, v_count, 'RT002'),
          pawl.array_check('asked_users', p_asked_users, cardinality(p_asked_users), 'RT002'),
          pawl.array_check('asked_names', p_asked_names, cardinality(p_asked_names), 'RT002');
  if (p_chat_id <> 0 and p_counted is not null and cardinality(p_asked_users) <= 200
      and cardinality(p_asked_names) <= 200) is not true then
    raise exception 'chat_id must be a number other than 0, with at most 200 users and 200 names' using errcode = 'RT002';
  end if;
  select g.id, g.title, g.language, g.is_language_set into v_id, v_title, v_language, v_set from rating.groups g where g.chat_id = p_chat_id;
  if not found then
    select g.id, g.title, g.language, g.is_language_set into v_id, v_title, v_language, v_set
    from rating.group_alias a join rating.groups g on g.id = a.group_id where a.chat_id = p_chat_id;
    v_title := coalesce(left(p_title, 255), v_title); -- an old name of the group is no news
  end if;
  if v_id is null then
    insert into rating.groups (chat_id, title, language, created_at)
    values (p_chat_id, coalesce(left(p_title, 255), ''), case when p_language = 'ru' then 'ru' else 'en' end, pawl.now())
    on conflict on constraint groups_chat do nothing;
    select g.id, g.title, g.language, g.is_language_set into strict v_id, v_title, v_language, v_set from rating.groups g where g.chat_id = p_chat_id;
  end if;
  if v_title <> left(p_title, 255) or not v_set and (p_counted or v_language <> p_language) then
    update rating.groups g
    set title = coalesce(left(p_title, 255), g.title), is_language_set = g.is_language_set or p_counted,
        language = case when g.is_language_set or p_language is null then g.language when p_language = 'ru' then 'ru' else 'en' end
    where g.id = v_id;
  end if;

  if v_count > 0 and exists (
       select from unnest(p_users, p_names, p_usernames, p_bots, p_presents) u (id, name, username, bot, present)
       left join rating.player p on p.user_id = u.id
       left join rating.username n on n.player_id = p.id
       left join rating.member m on m.group_id = v_id and m.player_id = p.id
       where p.id is null or p.seen_at <= v_at and (p.name <> left(u.name, 128) or p.is_bot <> u.bot) or n.shown is distinct from left(u.username, 64)
         or m.player_id is null or m.is_present <> u.present or (u.id <> 0) is not true or u.name is null or u.bot is null) then
    perform rating.players_seen(v_id, v_at, p_users, p_names, p_usernames, p_bots, p_presents);
  end if;

  if p_counted then
    select l.by_player, l.by_group into v_usage
    from rating.usage_add(v_id, coalesce((select p.id from rating.player p where p.user_id = p_author), -p_author, 0)) l;
  else
    select 0::bigint as by_player, 0::bigint as by_group into v_usage;
  end if;

  return query
    select g.id, g.chat_id, g.title, g.is_active, g.is_published, g.language, g.rules_id, r.system, r.k_factor, r.margin, g.start_rating,
           g.draws, g.undo_hours, g.min_games, g.match_topic::text, g.ranking_topic::text, v_usage.by_player, v_usage.by_group,
           0, null::bigint, null::bigint, null::text, null::text, null::boolean, null::boolean, null::boolean
    from rating.groups g join rating.rules r on r.id = g.rules_id
    where g.id = v_id;
  return query
    select v_id, null::bigint, null::text, null::boolean, null::boolean, null::text, null::integer, null::text, null::integer, null::boolean,
           null::integer, null::boolean, null::integer, null::integer, null::text, null::text, null::bigint, null::bigint,
           q.ord, p.id, p.user_id, p.name, n.shown, p.is_bot, m.player_id is not null, coalesce(m.is_present, false)
    from (select u.ord::integer as ord, p.id from unnest(p_asked_users) with ordinality u (id, ord) join rating.player p on p.user_id = u.id
          union all
          select (cardinality(p_asked_users) + u.ord)::integer, n.player_id
          from unnest(p_asked_names) with ordinality u (name, ord) join rating.username n on n.name = lower(u.name)) q
    join rating.player p on p.id = q.id
    left join rating.username n on n.player_id = p.id
    left join rating.member m on m.group_id = v_id and m.player_id = p.id;
end
$$;

-- A match that is asked back. Returns the number that its button has. Questions of the group that are older than a day are deleted on the
-- way, at most 50.
create or replace function rating.question_put (
  p_group_id bigint, p_key text, p_player_a bigint, p_player_b bigint, p_score_a integer, p_score_b integer, p_author_id bigint)
  returns bigint
  language plpgsql security definer set search_path = rating, pg_temp
as $$
declare
  v_id bigint;
begin
  if (length(p_key) between 1 and 200 and p_group_id is not null and p_player_a <> p_player_b and p_score_a between 0 and 1000
      and p_score_b between 0 and 1000) is not true then
    raise exception 'a question needs a key, a group, two players and scores from 0 to 1000' using errcode = 'RT002';
  end if;
  delete from rating.question q
  where q.id in (select o.id from rating.question o where o.group_id = p_group_id and o.asked_at < pawl.now() - interval '1 day'
                 order by o.asked_at limit 50 for update skip locked);
  insert into rating.question (group_id, key, player_a, player_b, score_a, score_b, author_id, asked_at)
  values (p_group_id, p_key, p_player_a, p_player_b, p_score_a, p_score_b, p_author_id, pawl.now())
  returning id into v_id;
  return v_id;
end
$$;

-- Answer a question of this group, which ends it. Who asked and the two players may; if an anonymous administrator asked, every member. is_allowed:
-- p_player_id is one of them. No row: there is no such question, it has been answered, or it is older than a day.
create or replace function rating.question_take (p_group_id bigint, p_id bigint, p_player_id bigint)
  returns table (is_allowed boolean, key text, player_a bigint, player_b bigint, score_a integer, score_b integer)
  language plpgsql security definer set search_path = rating, pg_temp
as $$
#variable_conflict use_column
begin
  return query
    select coalesce(p_player_id <> 0 and (q.author_id is null or p_player_id in (q.author_id, q.player_a, q.player_b)), false),
           q.key, q.player_a, q.player_b, q.score_a, q.score_b
    from rating.question q
    where q.id = p_id and q.group_id = p_group_id and q.asked_at >= pawl.now() - interval '1 day'
    for update;
  delete from rating.question q
  where q.id = p_id and q.group_id = p_group_id
    and p_player_id <> 0 and (q.author_id is null or p_player_id in (q.author_id, q.player_a, q.player_b));
end
$$;
