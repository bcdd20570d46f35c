-- turn.sql - one call for what every message and every button press needs: its group, who was seen, who is meant, the limits. Of one, or of
-- several at once.
-- Lock order: groups by chat_id; players, usernames and members as rating.players_put; usage. A message that shows nothing new writes the row of
-- usage at most.
-- Errors: RT002 an argument is missing or out of range.

-- The arguments of rating.turns_open.
create or replace function rating.turns_check (
  p_chats bigint[], p_titles text[], p_languages text[], p_ats timestamptz[], p_authors bigint[], p_counted boolean[],
  p_seen_turns integer[], p_users bigint[], p_names text[], p_usernames text[], p_bots boolean[], p_presents boolean[],
  p_asked_turns integer[], p_asked_ords integer[], p_asked_users bigint[], p_asked_names text[])
  returns void
  language plpgsql
as $$
declare
  v_count integer := cardinality(p_chats);
  v_seen integer := cardinality(p_seen_turns);
  v_asked integer := cardinality(p_asked_turns);
begin
  perform pawl.array_check('chats', p_chats, v_count, 'RT002'), pawl.array_check('titles', p_titles, v_count, 'RT002'),
          pawl.array_check('languages', p_languages, v_count, 'RT002'), pawl.array_check('ats', p_ats, v_count, 'RT002'),
          pawl.array_check('authors', p_authors, v_count, 'RT002'), pawl.array_check('counted', p_counted, v_count, 'RT002'),
          pawl.array_check('seen_turns', p_seen_turns, v_seen, 'RT002'), pawl.array_check('users', p_users, v_seen, 'RT002'),
          pawl.array_check('names', p_names, v_seen, 'RT002'), pawl.array_check('usernames', p_usernames, v_seen, 'RT002'),
          pawl.array_check('bots', p_bots, v_seen, 'RT002'), pawl.array_check('presents', p_presents, v_seen, 'RT002'),
          pawl.array_check('asked_turns', p_asked_turns, v_asked, 'RT002'), pawl.array_check('asked_ords', p_asked_ords, v_asked, 'RT002'),
          pawl.array_check('asked_users', p_asked_users, v_asked, 'RT002'), pawl.array_check('asked_names', p_asked_names, v_asked, 'RT002');
  if v_count not between 1 and 1000 or v_seen > 200 * v_count or v_asked > 400 * v_count
     or 0 <> all (p_chats) is not true or array_position(p_counted, null) is not null
     or -9223372036854775808 = any (p_authors) -- has no positive counterpart
     or (1 <= all (p_seen_turns || p_asked_turns) and v_count >= all (p_seen_turns || p_asked_turns)) is not true then
    raise exception 'chats must be 1 to 1000 numbers other than 0, each with at most 200 users who were seen and 400 who are asked for'
      using errcode = 'RT002';
  end if;
end
$$;

-- The groups of the turns: created on first sight, with the title and language that they have now. Returns their ids.
create or replace function rating.turns_groups (
  p_chats bigint[], p_titles text[], p_languages text[], p_counted boolean[], p_now timestamptz, out ids bigint[])
  language plpgsql
as $$
declare
  v_changed integer[]; -- turns whose group is new, or has another title or language now
  v_turn integer;
  v_id bigint;
begin
  select array_agg(g.id order by u.ord),
         array_agg(u.ord::integer order by u.chat_id) filter (
           where g.id is null or not g.is_alias and g.title <> left(u.title, 255) -- an old name of the group is no news
             or not g.is_language_set and (u.counted or g.language <> u.language))
  into ids, v_changed
  from unnest(p_chats, p_titles, p_languages, p_counted) with ordinality u (chat_id, title, language, counted, ord)
  left join lateral (
    select g.id, g.title, g.language, g.is_language_set, false as is_alias from rating.groups g where g.chat_id = u.chat_id
    union all
    select g.id, g.title, g.language, g.is_language_set, true
    from rating.group_alias a join rating.groups g on g.id = a.group_id where a.chat_id = u.chat_id
    limit 1) g on true;
  foreach v_turn in array coalesce(v_changed, '{}') loop
    if ids[v_turn] is null then
      insert into rating.groups (chat_id, title, language, created_at)
      values (p_chats[v_turn], coalesce(left(p_titles[v_turn], 255), ''), case when p_languages[v_turn] = 'ru' then 'ru' else 'en' end, p_now)
      on conflict on constraint groups_chat do nothing;
      select g.id into strict v_id from rating.groups g where g.chat_id = p_chats[v_turn];
      ids[v_turn] := v_id;
    end if;
    update rating.groups g
    set title = coalesce(left(p_titles[v_turn], 255), g.title), is_language_set = g.is_language_set or p_counted[v_turn],
        language = case when g.is_language_set or p_languages[v_turn] is null then g.language when p_languages[v_turn] = 'ru' then 'ru' else 'en' end
    where g.id = ids[v_turn]
      and (g.title <> left(p_titles[v_turn], 255) or not g.is_language_set and (p_counted[v_turn] or g.language <> p_languages[v_turn]));
  end loop;
end
$$;

-- Store what is new of the users who were seen. p_ids: the groups of the turns.
create or replace function rating.turns_seen (
  p_ids bigint[], p_ats timestamptz[], p_now timestamptz, p_seen_turns integer[], p_users bigint[], p_names text[], p_usernames text[],
  p_bots boolean[], p_presents boolean[])
  returns void
  language plpgsql
as $$
declare
  v_new bigint[]; -- positions in p_users of whom something is new
begin
  v_new := array(
    select u.ord
    from unnest(p_seen_turns, p_users, p_names, p_usernames, p_bots, p_presents)
      with ordinality u (turn, id, name, username, bot, present, ord)
    left join rating.player p on p.user_id = u.id
    left join rating.username n on n.player_id = p.id
    left join rating.member m on m.group_id = p_ids[u.turn] and m.player_id = p.id
    where p.id is null or p.seen_at <= least(p_ats[u.turn], p_now) and (p.name <> left(u.name, 128) or p.is_bot <> u.bot)
      or n.shown is distinct from left(u.username, 64) or m.player_id is null or m.is_present <> u.present
      or (u.id <> 0) is not true or u.name is null or u.bot is null);
  if cardinality(v_new) > 0 then
    perform rating.players_put(
      array_agg(p_ids[p_seen_turns[i]]), array_agg(least(p_ats[p_seen_turns[i]], p_now)), array_agg(p_users[i]), array_agg(p_names[i]),
      array_agg(p_usernames[i]), array_agg(p_bots[i]), array_agg(p_presents[i]))
    from unnest(v_new) i;
  end if;
end
$$;

-- Count the turns towards the limits. Returns for each turn how many its author and its group have had, as rating.usage_add says; 0 for one that
-- does not count.
create or replace function rating.turns_usage (
  p_ids bigint[], p_ats timestamptz[], p_authors bigint[], p_counted boolean[], p_per_player integer, out by_player bigint[], out by_group bigint[])
  language plpgsql
as $$
declare
  v_counted integer[];
  v_places bigint[]; -- groups, or what stands for a private chat
  v_players bigint[];
  v_usage record;
begin
  by_player := array_fill(0::bigint, array[cardinality(p_ids)]);
  by_group := by_player;
  select array_agg(u.ord::integer), array_agg(case when u.author > 0 and m.player_id is null then -u.author else p_ids[u.ord] end),
         array_agg(coalesce(p.id, -abs(u.author), 0))
  into v_counted, v_places, v_players
  from unnest(p_authors, p_counted) with ordinality u (author, counted, ord)
  left join rating.player p on p.user_id = u.author
  left join rating.member m on m.group_id = p_ids[u.ord] and m.player_id = p.id and m.is_present
  where u.counted;
  if v_counted is not null then
    for v_usage in
      select l.* from rating.usage_add(v_places, v_players, array(select p_ats[t] from unnest(v_counted) t), p_per_player) l
    loop
      by_player[v_counted[v_usage.ord]] := v_usage.by_player;
      by_group[v_counted[v_usage.ord]] := v_usage.by_group;
    end loop;
  end if;
end
$$;

-- The arrays up to p_counted have an element for each turn. p_ats: of the message; null, or a time that is yet to come: now. p_authors: the outside
-- id of who wrote or pressed, or the negative one of the chat in whose name; null: unknown. p_counted: it is a command or a press, which counts towards the
-- limits and sets the language of a group that has none.
-- p_seen_turns and the five arrays after it: who was seen in which turn, as rating.players_put takes it. p_asked_turns and the three after it: who is
-- asked for in which turn, under which number, by outside id (0: by username). p_per_player: see rating.usage_add; presses of users who are not in
-- the group count for themselves alone.
-- Returns for each turn one row with ord 0 for the group and the limits, and one for each known player who was asked for.
create or replace function rating.turns_open (
  p_chats bigint[], p_titles text[], p_languages text[], p_ats timestamptz[], p_authors bigint[], p_counted boolean[],
  p_seen_turns integer[], p_users bigint[], p_names text[], p_usernames text[], p_bots boolean[], p_presents boolean[],
  p_asked_turns integer[], p_asked_ords integer[], p_asked_users bigint[], p_asked_names text[], p_per_player integer)
  returns table (turn integer, id bigint, chat_id bigint, title text, is_active boolean, is_published boolean, language text, rules_id integer,
                 formula integer, system text, k_factor integer, margin boolean, start_rating integer, draws boolean, undo_hours integer, min_games integer,
                 match_topic text, ranking_topic text, by_player bigint, by_group bigint, ord integer, player_id bigint, user_id bigint,
                 name text, username text, is_bot boolean, is_member boolean, is_present boolean)
  language plpgsql security definer set search_path = rating, pg_temp set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_now timestamptz := pawl.now();
  v_ids bigint[]; -- of the groups
  v_by_player bigint[];
  v_by_group bigint[];
begin
  perform rating.turns_check(p_chats, p_titles, p_languages, p_ats, p_authors, p_counted, p_seen_turns, p_users, p_names, p_usernames, p_bots,
                             p_presents, p_asked_turns, p_asked_ords, p_asked_users, p_asked_names);
  v_ids := rating.turns_groups(p_chats, p_titles, p_languages, p_counted, v_now);
  perform rating.turns_seen(v_ids, p_ats, v_now, p_seen_turns, p_users, p_names, p_usernames, p_bots, p_presents);
  select u.by_player, u.by_group into v_by_player, v_by_group from rating.turns_usage(v_ids, p_ats, p_authors, p_counted, p_per_player) u;
  return query
    select u.turn::integer, g.id, g.chat_id, g.title, g.is_active, g.is_published, g.language, g.rules_id, r.formula, r.system, r.k_factor, r.margin,
           g.start_rating, g.draws, g.undo_hours, g.min_games, g.match_topic::text, g.ranking_topic::text, v_by_player[u.turn],
           v_by_group[u.turn], 0, null::bigint, null::bigint, null::text, null::text, null::boolean, null::boolean, null::boolean
    from unnest(v_ids) with ordinality u (id, turn)
    join rating.groups g on g.id = u.id
    join rating.rules r on r.id = g.rules_id;
  return query
    select u.turn, v_ids[u.turn], null::bigint, null::text, null::boolean, null::boolean, null::text, null::integer,
           null::integer, null::text, null::integer, null::boolean, null::integer, null::boolean, null::integer, null::integer, null::text, null::text, null::bigint, null::bigint,
           u.ord, p.*
    from unnest(p_asked_turns, p_asked_ords, p_asked_users, p_asked_names) u (turn, ord, user_id, name)
    cross join lateral (
      select p.id from rating.player p where u.user_id <> 0 and p.user_id = u.user_id
      union all
      select n.player_id from rating.username n where u.user_id = 0 and n.name = lower(u.name)) q
    cross join lateral rating.player_in_group(v_ids[u.turn], q.id) p;
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

-- Delete at most p_limit rows of usage, and as many questions, that are older than a day: chats that have gone quiet delete none on the way. Returns
-- how many rows. A server keeps an update for a day, so older usage counts towards no limit.
create or replace function rating.prune (p_limit integer)
  returns bigint
  language plpgsql security definer set search_path = rating, pg_temp
as $$
declare
  v_usage bigint;
  v_questions bigint;
begin
  if (p_limit between 1 and 100000) is not true then
    raise exception 'limit must be from 1 to 100000' using errcode = 'RT002';
  end if;
  delete from rating.usage u where u.ctid = any (array(
    select o.ctid from rating.usage o where o.at < pawl.now() - interval '1 day' order by o.at limit p_limit for update skip locked));
  get diagnostics v_usage = row_count;
  delete from rating.question q where q.id = any (array(
    select o.id from rating.question o where o.asked_at < pawl.now() - interval '1 day' order by o.asked_at limit p_limit for update skip locked));
  get diagnostics v_questions = row_count;
  return v_usage + v_questions;
end
$$;
