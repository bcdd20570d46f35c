-- undo.sql - undo a match and compute again what follows it. The caller reads versions, begins, replays in its own code, rewrites history rows
-- and ends, in one transaction.
-- Invariants: a key undoes one match, a match is undone once. Afterwards ratings are those that a replay of the remaining matches gives.
-- Lock order: match and its history rows, later history rows by match id, members by player_id.
-- Errors: RT001 something has changed since it was read: roll back and begin again; RT002 an argument is missing or out of range.

-- The versions of those whose ratings may depend on a match: its players if they have not played since, else all who
-- played. last_at: when they played before it, in microseconds; null: they did not.
create or replace function rating.undo_versions (p_group_id bigint, p_match_id bigint)
  returns table (player_id bigint, version bigint, rating double precision, last_at bigint)
  language plpgsql stable security definer set search_path = rating, pg_temp
as $$
#variable_conflict use_column
declare
  v_players bigint[];
  v_played_since boolean;
begin
  select array[t.player_a, t.player_b], exists (
    select from rating.member l
    where l.group_id = t.group_id and l.player_id in (t.player_a, t.player_b) and l.last_match_id > p_match_id)
  into v_players, v_played_since
  from rating.match t where t.id = p_match_id and t.group_id = p_group_id;
  return query
    select m.player_id, m.version, m.rating, (
      select pawl.micros(b.played_at)
      from rating.history h join rating.match b on b.id = h.match_id
      where h.group_id = any (array[p_group_id]) and h.player_id = m.player_id and h.match_id < p_match_id
        and not h.is_undone
      order by h.group_id desc, h.match_id desc limit 1)
    from rating.member m
    where m.group_id = p_group_id and m.games > 0 and (v_played_since is not false or m.player_id = any (v_players));
end
$$;

-- Mark it. Before anything that follows is read, so that locks are taken in the order of match ids.
create or replace function rating.undo_begin (p_group_id bigint, p_match_id bigint)
  returns void
  language plpgsql security definer set search_path = rating, pg_temp
as $$
begin
  update rating.match m set undone_at = pawl.now() where m.id = p_match_id and m.group_id = p_group_id and m.undone_at is null;
  if not found then
    raise exception 'match % was just undone', p_match_id using errcode = 'RT001';
  end if;
  update rating.history h set is_undone = true where h.match_id = p_match_id;
end
$$;

-- Matches of a group after one, in order, with the states of both players before and after; also for verification. history_rows: those of
-- the two players, of this group and of this date. outcome: of the first player; 2 if the second one's is not the opposite.
create or replace function rating.replay_chunk (p_group_id bigint, p_after bigint, p_limit integer)
  returns table (id bigint, player_a bigint, player_b bigint, score_a integer, score_b integer, formula integer, system text, k_factor integer, margin boolean,
                 a_rating_before double precision, a_deviation_before double precision, a_volatility_before double precision,
                 a_rating double precision, a_deviation double precision, a_volatility double precision,
                 b_rating_before double precision, b_deviation_before double precision, b_volatility_before double precision,
                 b_rating double precision, b_deviation double precision, b_volatility double precision, history_rows integer, outcome integer,
                 played_at bigint)
  language sql stable security definer set search_path = rating, pg_temp set plan = keyed
as $$
  select m.id, m.player_a, m.player_b, m.score_a, m.score_b, r.formula, r.system, r.k_factor, r.margin,
         a.rating_before, a.deviation_before, a.volatility_before, a.rating_after, a.deviation_after, a.volatility_after,
         b.rating_before, b.deviation_before, b.volatility_before, b.rating_after, b.deviation_after, b.volatility_after,
         (select count(*)::integer from rating.history h where h.match_id = m.id and h.group_id = m.group_id and not h.is_undone
            and h.played_at = m.played_at and h.opponent_id = case h.player_id when m.player_a then m.player_b when m.player_b then m.player_a end),
         case when a.outcome = -b.outcome then a.outcome else 2 end::integer, pawl.micros(m.played_at)
  from (select m.* from rating.match m where m.group_id = any (array[p_group_id]) and m.undone_at is null and m.id > p_after
        order by m.group_id, m.id limit least(greatest(p_limit, 0), 10000)) m
  join rating.rules r on r.id = m.rules_id
  left join rating.history a on a.match_id = m.id and a.player_id = m.player_a
  left join rating.history b on b.match_id = m.id and b.player_id = m.player_b
  order by m.id
$$;

-- New states in history rows, whose values the table checks. Returns how many changed.
create or replace function rating.history_rewrite (
  p_matches bigint[], p_players bigint[], p_ratings_before double precision[], p_deviations_before double precision[],
  p_volatilities_before double precision[], p_ratings double precision[], p_deviations double precision[], p_volatilities double precision[])
  returns bigint
  language plpgsql security definer set search_path = rating, pg_temp
as $$
declare
  v_count integer := cardinality(p_matches);
  v_changed bigint;
begin
  perform pawl.array_check('matches', p_matches, v_count, 'RT002'), pawl.array_check('players', p_players, v_count, 'RT002'),
          pawl.array_check('ratings_before', p_ratings_before, v_count, 'RT002'),
          pawl.array_check('deviations_before', p_deviations_before, v_count, 'RT002'),
          pawl.array_check('volatilities_before', p_volatilities_before, v_count, 'RT002'),
          pawl.array_check('ratings', p_ratings, v_count, 'RT002'), pawl.array_check('deviations', p_deviations, v_count, 'RT002'),
          pawl.array_check('volatilities', p_volatilities, v_count, 'RT002');
  perform from rating.history h join unnest(p_matches, p_players) u (match, player) on h.match_id = u.match and h.player_id = u.player
  order by h.match_id, h.player_id for no key update of h;
  update rating.history h
  set rating_before = u.rb, deviation_before = u.db, volatility_before = u.vb, rating_after = u.r, deviation_after = u.d, volatility_after = u.v
  from unnest(p_matches, p_players, p_ratings_before, p_deviations_before, p_volatilities_before, p_ratings, p_deviations, p_volatilities)
    u (match, player, rb, db, vb, r, d, v)
  where h.match_id = u.match and h.player_id = u.player and not h.is_undone;
  get diagnostics v_changed = row_count;
  if v_changed <> v_count then
    raise exception 'a match that follows was just undone' using errcode = 'RT001';
  end if;
  return v_changed;
end
$$;

-- Write the members whose ratings changed, and that it is done.
create or replace function rating.undo_end (
  p_group_id bigint, p_key text, p_match_id bigint, p_player_id bigint, p_replayed integer, p_changes jsonb, p_players bigint[],
  p_versions bigint[], p_ratings double precision[], p_deviations double precision[], p_volatilities double precision[])
  returns void
  language plpgsql security definer set search_path = rating, pg_temp
as $$
declare
  v_count integer := cardinality(p_players);
  v_changed record;
begin
  perform pawl.array_check('players', p_players, v_count, 'RT002'), pawl.array_check('versions', p_versions, v_count, 'RT002'),
          pawl.array_check('ratings', p_ratings, v_count, 'RT002'), pawl.array_check('deviations', p_deviations, v_count, 'RT002'),
          pawl.array_check('volatilities', p_volatilities, v_count, 'RT002');
  if (length(p_key) between 1 and 200 and p_group_id is not null and p_match_id is not null and p_replayed >= 0
      and jsonb_typeof(p_changes) = 'object' and array_position(p_players, null) is null and array_position(p_versions, null) is null
      and 0 <= all (p_ratings) and 10000 >= all (p_ratings) and 0 < all (p_deviations) and 'Infinity' > all (p_deviations)
      and 0 < all (p_volatilities) and 'Infinity' > all (p_volatilities)) is not true then
    raise exception 'an undo needs a key, a match, and players with their versions and ratings from 0 to 10000' using errcode = 'RT002';
  end if;
  for v_changed in
    select u.* from unnest(p_players, p_versions, p_ratings, p_deviations, p_volatilities) u (player_id, version, rating, deviation, volatility)
    order by u.player_id
  loop
    update rating.member m
    set rating = v_changed.rating, deviation = v_changed.deviation, volatility = v_changed.volatility, version = m.version + 1,
        games = n.games, last_match_id = n.last, start_rating = case when n.games > 0 then m.start_rating end
    from (select count(*) as games, max(h.match_id) as last from rating.history h
          where h.group_id = p_group_id and h.player_id = v_changed.player_id and not h.is_undone) n
    where m.group_id = p_group_id and m.player_id = v_changed.player_id and m.version = v_changed.version;
    if not found then
      raise exception 'the rating of player % has changed since it was read', v_changed.player_id using errcode = 'RT001';
    end if;
  end loop;
  insert into rating.undo (key, match_id, group_id, player_id, at, replayed, changes)
  values (p_key, p_match_id, p_group_id, p_player_id, pawl.now(), p_replayed, p_changes)
  on conflict do nothing;
  if not found then
    raise exception 'the key was just used' using errcode = 'RT001';
  end if;
end
$$;

-- A match that is undone has its row in rating.undo when the transaction commits, so no part of an undo can be done alone.
create or replace function rating.undo_recorded ()
  returns trigger
  language plpgsql security definer set search_path = rating, pg_temp
as $$
begin
  if not exists (select from rating.undo u where u.match_id = new.id) then
    raise exception 'match % cannot be marked as undone without rating.undo_end', new.id using errcode = 'RT002';
  end if;
  return null;
end
$$;

-- What a key has undone; no row: nothing.
create or replace function rating.undo_find (p_key text)
  returns table (match_id bigint, replayed integer, changes jsonb)
  language sql stable security definer set search_path = rating, pg_temp
as $$
  select u.match_id, u.replayed, u.changes from rating.undo u where u.key = p_key
$$;

-- How many matches follow one in its group, counted up to p_limit.
create or replace function rating.matches_after (p_group_id bigint, p_match_id bigint, p_limit integer)
  returns bigint
  language sql stable security definer set search_path = rating, pg_temp
as $$
  select count(*) from (
    select from rating.match m where m.group_id = any (array[p_group_id]) and m.undone_at is null and m.id > p_match_id
    order by m.group_id, m.id limit greatest(p_limit, 0)) m
$$;
