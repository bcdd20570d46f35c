-- match.sql - register matches, one or several. The caller reads, computes and writes in one transaction; the versions show that nothing changed in
-- between.
-- Invariants: a key is one match. Ratings change only together with the match and its two history rows. Match ids are allocated after the
-- versions were read; see migration rating. All matches of a call are written, or none.
-- Lock order: members by group_id and player_id.
-- Errors: RT001 a version has changed since it was read, or the key was just used: roll back and begin again; RT002 an argument is missing or
-- out of range.

-- Whole days from one match of a player to the next one; 0 if there is none before, or if its date is later.
create or replace function rating.days_away (p_from timestamptz, p_to timestamptz)
  returns integer
  language sql immutable parallel safe
as $$ select greatest(0, floor(extract(epoch from p_to - p_from) / 86400))::integer $$;

-- What registrations need to know, in one snapshot: the match that has the key already; whether the same result was registered within a minute
-- of p_ats (null, or a time that is yet to come: now), by the last 50 matches of the two; both members as they are now. A member without a match
-- has the group's start rating. played_at: what p_ats says, or now, in microseconds; days: since the match before. Two rows for each match, the first
-- player's first, or fewer if a member is unknown.
create or replace function rating.matches_read (
  p_groups bigint[], p_keys text[], p_players_a bigint[], p_players_b bigint[], p_scores_a integer[], p_scores_b integer[],
  p_ats timestamptz[])
  returns table (ord integer, player_id bigint, rating double precision, deviation double precision, volatility double precision, games integer,
                 version bigint, is_present boolean, is_bot boolean, match_id bigint, is_same boolean, played_at bigint, days integer)
  language plpgsql stable security definer set search_path = rating, pg_temp set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_count integer := cardinality(p_groups);
  v_now timestamptz := pawl.now();
begin
  perform pawl.array_check('groups', p_groups, v_count, 'RT002'), pawl.array_check('keys', p_keys, v_count, 'RT002'),
          pawl.array_check('players_a', p_players_a, v_count, 'RT002'), pawl.array_check('players_b', p_players_b, v_count, 'RT002'),
          pawl.array_check('scores_a', p_scores_a, v_count, 'RT002'), pawl.array_check('scores_b', p_scores_b, v_count, 'RT002'),
          pawl.array_check('ats', p_ats, v_count, 'RT002');
  return query
    select u.ord::integer, m.player_id, case when m.games = 0 then g.start_rating else m.rating end,
           case when m.games = 0 then 350 else m.deviation end, case when m.games = 0 then 0.06 else m.volatility end, m.games, m.version,
           m.is_present, p.is_bot, k.match_id, k.is_same, pawl.micros(k.played_at), rating.days_away(l.played_at, k.played_at)
    from unnest(p_groups, p_keys, p_players_a, p_players_b, p_scores_a, p_scores_b, p_ats)
      with ordinality u (group_id, key, a, b, score_a, score_b, at, ord)
    cross join lateral (
      select (select k.id from rating.match k where k.key = u.key) as match_id, least(u.at, v_now) as played_at,
             exists (
               select from (
                 select s.* from rating.match s
                 where s.group_id = u.group_id and s.undone_at is null
                   and least(s.player_a, s.player_b) = least(u.a, u.b) and greatest(s.player_a, s.player_b) = greatest(u.a, u.b)
                 order by s.id desc limit 50) s
               where s.played_at > least(u.at, v_now) - interval '1 minute' and s.played_at < least(u.at, v_now) + interval '1 minute'
                 and case when s.player_a = u.a then s.score_a = u.score_a and s.score_b = u.score_b
                          else s.score_a = u.score_b and s.score_b = u.score_a end) as is_same
      offset 0) k -- computed once for both players
    cross join lateral (values (u.a, 1), (u.b, 2)) s (player_id, side)
    join rating.member m on m.group_id = u.group_id and m.player_id = s.player_id
    join rating.player p on p.id = s.player_id
    join rating.groups g on g.id = u.group_id
    left join rating.match l on l.id = m.last_match_id
    order by u.ord, s.side;
end
$$;

-- The arguments of rating.matches_write.
create or replace function rating.matches_check (
  p_groups bigint[], p_keys text[], p_rules integer[], p_authors bigint[], p_scores_a integer[], p_scores_b integer[], p_players bigint[],
  p_versions bigint[], p_ratings_before double precision[], p_deviations_before double precision[], p_volatilities_before double precision[],
  p_ratings double precision[], p_deviations double precision[], p_volatilities double precision[], p_ats timestamptz[])
  returns void
  language plpgsql
as $$
declare
  v_count integer := cardinality(p_groups);
  v_sides integer := 2 * v_count;
begin
  perform pawl.array_check('groups', p_groups, v_count, 'RT002'), pawl.array_check('keys', p_keys, v_count, 'RT002'),
          pawl.array_check('rules', p_rules, v_count, 'RT002'), pawl.array_check('authors', p_authors, v_count, 'RT002'),
          pawl.array_check('scores_a', p_scores_a, v_count, 'RT002'), pawl.array_check('scores_b', p_scores_b, v_count, 'RT002'),
          pawl.array_check('players', p_players, v_sides, 'RT002'), pawl.array_check('versions', p_versions, v_sides, 'RT002'),
          pawl.array_check('ratings_before', p_ratings_before, v_sides, 'RT002'),
          pawl.array_check('deviations_before', p_deviations_before, v_sides, 'RT002'),
          pawl.array_check('volatilities_before', p_volatilities_before, v_sides, 'RT002'),
          pawl.array_check('ratings', p_ratings, v_sides, 'RT002'), pawl.array_check('deviations', p_deviations, v_sides, 'RT002'),
          pawl.array_check('volatilities', p_volatilities, v_sides, 'RT002'), pawl.array_check('ats', p_ats, v_count, 'RT002');
  if v_count not between 1 and 1000
     or 0 <= all (p_ratings || p_ratings_before) is not true or 10000 >= all (p_ratings || p_ratings_before) is not true
     or 0 < all (p_deviations || p_deviations_before) is not true or 'Infinity' > all (p_deviations || p_deviations_before) is not true
     or 0 < all (p_volatilities || p_volatilities_before) is not true or 'Infinity' > all (p_volatilities || p_volatilities_before) is not true
     or 0 < all (p_versions) is not true
     or exists (
       select from generate_series(1, v_count) i
       where (length(p_keys[i]) between 1 and 200 and p_groups[i] is not null and p_players[2 * i - 1] <> p_players[2 * i]
              and p_scores_a[i] between 0 and 1000 and p_scores_b[i] between 0 and 1000 and p_scores_a[i] + p_scores_b[i] > 0
              and exists (select from rating.rules r where r.id = p_rules[i])) is not true) then
    raise exception 'a match needs a key, two players with their versions, scores from 0 to 1000 that are not both 0, and ratings from 0 to 10000'
      using errcode = 'RT002';
  end if;
end
$$;

-- Give the members of the matches of p_ids, two for each, their new ratings, if their versions are the given ones.
-- By lateral and tid, because a join could read all members first. The version decides: a row that another transaction has changed
-- meanwhile has another one.
create or replace function rating.members_write (
  p_ids bigint[], p_groups bigint[], p_players bigint[], p_versions bigint[], p_ratings_before double precision[],
  p_ratings double precision[], p_deviations double precision[], p_volatilities double precision[])
  returns void
  language plpgsql
as $$
declare
  v_done bigint[];
begin
  with side as (
    select s.*, o.tid
    from (select p_groups[(u.n + 1) / 2] as group_id, p_ids[(u.n + 1) / 2] as match_id, u.*
          from unnest(p_players, p_versions, p_ratings_before, p_ratings, p_deviations, p_volatilities)
            with ordinality u (player_id, version, rating_before, rating, deviation, volatility, n)
          order by 1, u.player_id) s
    cross join lateral (
      select m.ctid as tid from rating.member m
      where m.group_id = s.group_id and m.player_id = s.player_id and m.version = s.version limit 1) o
  ), written as (
    update rating.member m
    set rating = s.rating, deviation = s.deviation, volatility = s.volatility, version = m.version + 1, last_match_id = s.match_id,
        start_rating = case when m.games = 0 then s.rating_before else m.start_rating end,
        games = 1 + (select count(*) from rating.history h
                     where h.group_id = s.group_id and h.player_id = s.player_id and not h.is_undone)
    from side s
    where m.ctid = s.tid and m.version = s.version
    returning s.n
  )
  select array_agg(w.n) into v_done from written w;
  if cardinality(v_done) is distinct from cardinality(p_players) then
    raise exception 'the rating of player % has changed since it was read',
      (select p_players[n] from generate_series(1, cardinality(p_players)) n where n <> all (coalesce(v_done, '{}')) order by n limit 1)
      using errcode = 'RT001';
  end if;
end
$$;

-- Write what was computed. The arrays from p_players on have two elements for each match: the first player, then the second one. Returns the
-- ids of the matches. p_ats: when they were played, as rating.matches_read says, because the days since the match before are computed from it; null: now.
create or replace function rating.matches_write (
  p_groups bigint[], p_keys text[], p_rules integer[], p_authors bigint[], p_scores_a integer[], p_scores_b integer[], p_players bigint[],
  p_versions bigint[], p_ratings_before double precision[], p_deviations_before double precision[], p_volatilities_before double precision[],
  p_ratings double precision[], p_deviations double precision[], p_volatilities double precision[], p_ats timestamptz[])
  returns table (ord integer, id bigint)
  language plpgsql security definer set search_path = rating, pg_temp set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_now timestamptz := pawl.now();
  v_count integer := cardinality(p_groups);
  v_sequence regclass := pg_get_serial_sequence('rating.match', 'id');
  v_ids bigint[];
  v_written bigint;
begin
  perform rating.matches_check(p_groups, p_keys, p_rules, p_authors, p_scores_a, p_scores_b, p_players, p_versions, p_ratings_before,
                               p_deviations_before, p_volatilities_before, p_ratings, p_deviations, p_volatilities, p_ats);
  if v_now < any (p_ats) then
    raise exception 'a match must not be played later than now' using errcode = 'RT001'; -- the clock was set back since they were read
  end if;
  v_ids := array(select nextval(v_sequence) from generate_series(1, v_count));
  perform rating.members_write(v_ids, p_groups, p_players, p_versions, p_ratings_before, p_ratings, p_deviations, p_volatilities);
  insert into rating.match (id, group_id, key, player_a, player_b, score_a, score_b, rules_id, author_id, played_at)
  overriding system value
  select v_ids[i], p_groups[i], p_keys[i], p_players[2 * i - 1], p_players[2 * i], p_scores_a[i], p_scores_b[i], p_rules[i], p_authors[i],
         coalesce(p_ats[i], v_now)
  from generate_series(1, v_count) i
  on conflict on constraint match_key do nothing;
  get diagnostics v_written = row_count;
  if v_written <> v_count then
    raise exception 'the key was just used' using errcode = 'RT001';
  end if;
  insert into rating.history (match_id, player_id, group_id, opponent_id, outcome, rating_before, deviation_before, volatility_before,
                              rating_after, deviation_after, volatility_after, played_at)
  select v_ids[s.i], u.player_id, p_groups[s.i], p_players[u.n + s.sign], sign((p_scores_a[s.i] - p_scores_b[s.i]) * s.sign), u.rating_before,
         u.deviation_before, u.volatility_before, u.rating, u.deviation, u.volatility, coalesce(p_ats[s.i], v_now)
  from unnest(p_players, p_ratings_before, p_deviations_before, p_volatilities_before, p_ratings, p_deviations, p_volatilities)
    with ordinality u (player_id, rating_before, deviation_before, volatility_before, rating, deviation, volatility, n)
  cross join lateral (select (u.n + 1) / 2, case when u.n % 2 = 1 then 1 else -1 end) s (i, sign);
  return query select i, v_ids[i] from generate_series(1, v_count) i order by i;
end
$$;
