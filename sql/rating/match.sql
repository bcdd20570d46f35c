-- match.sql - register a match. The caller reads, computes and writes in one transaction; the versions show that nothing changed in between.
-- Invariants: a key is one match. Ratings change only together with the match and its two history rows. Match ids are allocated after the
-- versions were read; see migration rating.
-- Lock order: members by player_id.
-- Errors: RT001 a version has changed since it was read, or the key was just used: roll back and begin again; RT002 an argument is missing or
-- out of range.

-- What a registration needs to know, in one snapshot: the match that has the key already; whether the same result was registered within a
-- minute, by the last 50 matches of the two; both members as they are now. A member without a match has the group's start rating. Two rows, or fewer if a member is unknown.
create or replace function rating.match_read (
  p_group_id bigint, p_key text, p_player_a bigint, p_player_b bigint, p_score_a integer, p_score_b integer)
  returns table (player_id bigint, rating double precision, deviation double precision, volatility double precision, games integer,
                 version bigint, is_present boolean, is_bot boolean, match_id bigint, is_same boolean)
  language plpgsql stable security definer set search_path = rating, pg_temp set plan = keyed_cached
as $$
#variable_conflict use_column
begin
  return query
    select m.player_id, case when m.games = 0 then g.start_rating else m.rating end, case when m.games = 0 then 350 else m.deviation end,
           case when m.games = 0 then 0.06 else m.volatility end, m.games, m.version, m.is_present, p.is_bot,
           (select k.id from rating.match k where k.key = p_key),
           exists (
             select from (
               select s.* from rating.match s
               where s.group_id = p_group_id and s.undone_at is null
                 and least(s.player_a, s.player_b) = least(p_player_a, p_player_b)
                 and greatest(s.player_a, s.player_b) = greatest(p_player_a, p_player_b)
               order by s.id desc limit 50) s
             where s.played_at > pawl.now() - interval '1 minute'
               and case when s.player_a = p_player_a then s.score_a = p_score_a and s.score_b = p_score_b
                        else s.score_a = p_score_b and s.score_b = p_score_a end)
    from (values (p_player_a, 1), (p_player_b, 2)) u (id, ord)
    join rating.member m on m.group_id = p_group_id and m.player_id = u.id
    join rating.player p on p.id = u.id
    join rating.groups g on g.id = p_group_id
    order by u.ord;
end
$$;

-- Write what was computed. Arrays have the first player, then the second one. Returns the match's id.
create or replace function rating.match_write (
  p_group_id bigint, p_key text, p_rules_id integer, p_author_id bigint, p_score_a integer, p_score_b integer, p_players bigint[],
  p_versions bigint[], p_ratings_before double precision[], p_deviations_before double precision[], p_volatilities_before double precision[],
  p_ratings double precision[], p_deviations double precision[], p_volatilities double precision[])
  returns bigint
  language plpgsql security definer set search_path = rating, pg_temp set plan = keyed_cached
as $$
declare
  v_now timestamptz := pawl.now();
  v_id bigint;
  v_side record;
begin
  perform pawl.array_check('players', p_players, 2, 'RT002'), pawl.array_check('versions', p_versions, 2, 'RT002'),
          pawl.array_check('ratings_before', p_ratings_before, 2, 'RT002'),
          pawl.array_check('deviations_before', p_deviations_before, 2, 'RT002'),
          pawl.array_check('volatilities_before', p_volatilities_before, 2, 'RT002'),
          pawl.array_check('ratings', p_ratings, 2, 'RT002'), pawl.array_check('deviations', p_deviations, 2, 'RT002'),
          pawl.array_check('volatilities', p_volatilities, 2, 'RT002');
  if (length(p_key) between 1 and 200 and p_group_id is not null and p_players[1] <> p_players[2] and p_versions[1] > 0 and p_versions[2] > 0
      and p_score_a between 0 and 1000 and p_score_b between 0 and 1000 and p_score_a + p_score_b > 0
      and exists (select from rating.rules r where r.id = p_rules_id)
      and 0 <= all (p_ratings || p_ratings_before) and 10000 >= all (p_ratings || p_ratings_before)
      and 0 < all (p_deviations || p_deviations_before) and 'Infinity' > all (p_deviations || p_deviations_before)
      and 0 < all (p_volatilities || p_volatilities_before) and 'Infinity' > all (p_volatilities || p_volatilities_before)) is not true then
    raise exception 'a match needs a key, two players with their versions, scores from 0 to 1000 that are not both 0, and ratings from 0 to 10000'
      using errcode = 'RT002';
  end if;
  v_id := nextval(pg_get_serial_sequence('rating.match', 'id'));
  for v_side in
    select u.* from unnest(p_players, p_versions, p_ratings_before, p_ratings, p_deviations, p_volatilities)
      u (player_id, version, rating_before, rating, deviation, volatility)
    order by u.player_id
  loop
    update rating.member m
    set rating = v_side.rating, deviation = v_side.deviation, volatility = v_side.volatility, version = m.version + 1, last_match_id = v_id,
        start_rating = case when m.games = 0 then v_side.rating_before else m.start_rating end,
        games = 1 + (select count(*) from rating.history h
                     where h.group_id = p_group_id and h.player_id = v_side.player_id and not h.is_undone)
    where m.group_id = p_group_id and m.player_id = v_side.player_id and m.version = v_side.version;
    if not found then
      raise exception 'the rating of player % has changed since it was read', v_side.player_id using errcode = 'RT001';
    end if;
  end loop;
  insert into rating.match (id, group_id, key, player_a, player_b, score_a, score_b, rules_id, author_id, played_at)
  overriding system value
  values (v_id, p_group_id, p_key, p_players[1], p_players[2], p_score_a, p_score_b, p_rules_id, p_author_id, v_now)
  on conflict on constraint match_key do nothing;
  if not found then
    raise exception 'the key was just used' using errcode = 'RT001';
  end if;
  insert into rating.history (match_id, player_id, group_id, opponent_id, outcome, rating_before, deviation_before, volatility_before,
                              rating_after, deviation_after, volatility_after, played_at)
  select v_id, u.player_id, p_group_id, p_players[3 - u.side], sign((p_score_a - p_score_b) * (3 - 2 * u.side)), u.rating_before,
         u.deviation_before, u.volatility_before, u.rating, u.deviation, u.volatility, v_now
  from unnest(p_players, p_ratings_before, p_deviations_before, p_volatilities_before, p_ratings, p_deviations, p_volatilities)
    with ordinality u (player_id, rating_before, deviation_before, volatility_before, rating, deviation, volatility, side);
  return v_id;
end
$$;
