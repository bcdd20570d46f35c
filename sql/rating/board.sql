-- board.sql - what people read: leaderboard, one player, matches, head to head, points of a chart. Nothing is locked.
-- Players who have left, or have fewer matches than the group's min_games, have no place. Players of one rating share a place; who was seen
-- first is listed first.

-- The place of each of these players in its group; null: none.
create or replace function rating.places (p_groups bigint[], p_players bigint[])
  returns table (ord integer, place bigint)
  language plpgsql stable security definer set search_path = rating, pg_temp set plan = keyed_cached
as $$
#variable_conflict use_column
begin
  perform pawl.array_check('groups', p_groups, cardinality(p_groups), 'RT002'),
          pawl.array_check('players', p_players, cardinality(p_groups), 'RT002');
  return query
    select u.ord::integer,
           case when m.is_present and m.games > 0 and m.games >= g.min_games then 1 + (
             select count(*) from rating.member o
             where o.group_id = u.group_id and o.is_present and o.games > 0 and o.games >= g.min_games and o.rating > m.rating) end
    from unnest(p_groups, p_players) with ordinality u (group_id, id, ord)
    join rating.groups g on g.id = u.group_id
    left join rating.member m on m.group_id = u.group_id and m.player_id = u.id
    order by u.ord;
end
$$;

-- The rows p_offset + 1 and following of the leaderboard. deviation, volatility: after the last match; null under Elo. days: since then. change_week: compared with the rating before the last 7
-- days. total: of all rows.
create or replace function rating.board (p_group_id bigint, p_offset bigint, p_limit integer)
  returns table (place bigint, player_id bigint, user_id bigint, name text, username text, rating double precision, deviation double precision,
                 games integer, change_week double precision, total bigint, volatility double precision, days integer)
  language sql stable security definer set search_path = rating, pg_temp
as $$
  with page as materialized (
    select m.*
    from rating.groups g join rating.member m on m.group_id = g.id and m.is_present and m.games > 0 and m.games >= g.min_games
    where g.id = p_group_id
    order by m.rating desc, m.player_id
    limit least(greatest(p_limit, 0), 10000) offset greatest(p_offset, 0)
  ), first as materialized (
    -- Its place may be shared with rows before the page.
    select f.rating, (select l.place from rating.places(array[p_group_id], array[f.player_id]) l) as place
    from page f order by f.rating desc, f.player_id limit 1
  )
  select case when m.rating = f.rating then f.place else greatest(p_offset, 0) + rank() over (order by m.rating desc) end, m.player_id, p.user_id,
         p.name, n.shown, m.rating, case when r.system = 'glicko2' then m.deviation end, m.games,
         m.rating - coalesce(
           (select h.rating_after from rating.history h
            where h.group_id = p_group_id and h.player_id = m.player_id and not h.is_undone and h.played_at < pawl.now() - interval '7 days'
            order by h.match_id desc limit 1), m.start_rating, m.rating),
         (select count(*) from rating.groups g join rating.member o on o.group_id = g.id and o.is_present and o.games > 0
            and o.games >= g.min_games where g.id = p_group_id),
         case when r.system = 'glicko2' then m.volatility end, rating.days_away(l.played_at, pawl.now())
  from page m
  cross join first f
  join rating.groups g on g.id = p_group_id
  join rating.rules r on r.id = g.rules_id
  join rating.player p on p.id = m.player_id
  left join rating.username n on n.player_id = m.player_id
  left join rating.match l on l.id = m.last_match_id
  order by m.rating desc, m.player_id
$$;

-- One player in numbers, computed from the history; no row: not seen in this group. streak: matches since the last other outcome, positive
-- if they were won, negative if lost, 0 after a draw. deviation, volatility: after the last match, days ago. recent: the last five, newest first, as a text of W, D and L.
create or replace function rating.stats (p_group_id bigint, p_player_id bigint)
  returns table (player_id bigint, user_id bigint, name text, username text, is_present boolean, rating double precision,
                 deviation double precision, games integer, wins bigint, draws bigint, losses bigint, streak bigint, best double precision,
                 recent text, place bigint, volatility double precision, days integer)
  language sql stable security definer set search_path = rating, pg_temp
as $$
  select m.player_id, p.user_id, p.name, n.shown, m.is_present, m.rating, m.deviation, m.games, a.wins, a.draws, a.losses,
         coalesce(l.outcome, 0) * (select count(*) from rating.history h
           where h.group_id = p_group_id and h.player_id = p_player_id and not h.is_undone and h.match_id > coalesce((
             select o.match_id from rating.history o
             where o.group_id = p_group_id and o.player_id = p_player_id and not o.is_undone and o.outcome <> l.outcome
             order by o.match_id desc limit 1), 0)),
         greatest(a.best, m.start_rating),
         (select string_agg(case r.outcome when 1 then 'W' when 0 then 'D' else 'L' end, '' order by r.match_id desc)
          from (select h.outcome, h.match_id from rating.history h
                where h.group_id = p_group_id and h.player_id = p_player_id and not h.is_undone order by h.match_id desc limit 5) r),
         (select l.place from rating.places(array[p_group_id], array[p_player_id]) l), m.volatility,
         rating.days_away(k.played_at, pawl.now())
  from rating.member m
  join rating.player p on p.id = m.player_id
  left join rating.username n on n.player_id = m.player_id
  left join rating.match k on k.id = m.last_match_id
  left join lateral (
    select h.outcome from rating.history h where h.group_id = p_group_id and h.player_id = p_player_id and not h.is_undone
    order by h.match_id desc limit 1) l on true
  cross join lateral (
    select count(*) filter (where h.outcome = 1) as wins, count(*) filter (where h.outcome = 0) as draws,
           count(*) filter (where h.outcome = -1) as losses, max(h.rating_after) as best
    from rating.history h where h.group_id = p_group_id and h.player_id = p_player_id and not h.is_undone) a
  where m.group_id = p_group_id and m.player_id = p_player_id
$$;

-- Matches of a group, newest first, below p_before; those that are undone only if asked for. With `= any` the planner keeps the group in the
-- order, which the primary key does not have: read backwards, it would pass the matches of all other groups.
create or replace function rating.matches (p_group_id bigint, p_before bigint, p_limit integer, p_undone boolean)
  returns table (id bigint, played_at bigint, a_user_id bigint, a_name text, a_username text, b_user_id bigint, b_name text, b_username text,
                 score_a integer, score_b integer, a_before double precision, a_after double precision, b_before double precision,
                 b_after double precision, is_undone boolean, player_a bigint, player_b bigint, author_id bigint)
  language sql stable security definer set search_path = rating, pg_temp set plan = keyed
as $$
  select m.id, pawl.micros(m.played_at), pa.user_id, pa.name, na.shown, pb.user_id, pb.name, nb.shown, m.score_a, m.score_b,
         a.rating_before, a.rating_after, b.rating_before, b.rating_after, m.undone_at is not null, m.player_a, m.player_b, m.author_id
  from (
    (select m.* from rating.match m where m.group_id = any (array[p_group_id]) and m.undone_at is null
       and m.id < coalesce(p_before, 9223372036854775807) and not p_undone order by m.group_id desc, m.id desc limit least(greatest(p_limit, 0), 20000))
    union all
    (select m.* from rating.match m where m.group_id = any (array[p_group_id]) and m.id < coalesce(p_before, 9223372036854775807)
       and p_undone order by m.group_id desc, m.id desc limit least(greatest(p_limit, 0), 20000))) m
  join rating.player pa on pa.id = m.player_a
  join rating.player pb on pb.id = m.player_b
  left join rating.username na on na.player_id = m.player_a
  left join rating.username nb on nb.player_id = m.player_b
  left join rating.history a on a.match_id = m.id and a.player_id = m.player_a
  left join rating.history b on b.match_id = m.id and b.player_id = m.player_b
  order by m.id desc
$$;

-- Matches of one player, newest first, below p_before.
create or replace function rating.player_history (p_group_id bigint, p_player_id bigint, p_before bigint, p_limit integer)
  returns table (match_id bigint, played_at bigint, opponent_user_id bigint, opponent text, opponent_username text, score integer,
                 opponent_score integer, outcome integer, rating_before double precision, rating double precision, deviation double precision)
  language sql stable security definer set search_path = rating, pg_temp set plan = keyed
as $$
  select h.match_id, pawl.micros(h.played_at), p.user_id, p.name, n.shown,
         case when m.player_a = h.player_id then m.score_a else m.score_b end,
         case when m.player_a = h.player_id then m.score_b else m.score_a end,
         h.outcome::integer, h.rating_before, h.rating_after, h.deviation_after
  from (select h.* from rating.history h
        where h.group_id = p_group_id and h.player_id = p_player_id and not h.is_undone
          and h.match_id < coalesce(p_before, 9223372036854775807)
        order by h.match_id desc limit least(greatest(p_limit, 0), 10000)) h
  join rating.match m on m.id = h.match_id
  join rating.player p on p.id = h.opponent_id
  left join rating.username n on n.player_id = h.opponent_id
  order by h.match_id desc
$$;

-- Two players against each other: wins of the first, draws, wins of the second, and the points that each scored.
create or replace function rating.head_to_head (p_group_id bigint, p_player_a bigint, p_player_b bigint)
  returns table (games bigint, wins_a bigint, draws bigint, wins_b bigint, points_a bigint, points_b bigint, last_at bigint)
  language sql stable security definer set search_path = rating, pg_temp
as $$
  select count(*), count(*) filter (where s.a > s.b), count(*) filter (where s.a = s.b), count(*) filter (where s.a < s.b),
         coalesce(sum(s.a), 0)::bigint, coalesce(sum(s.b), 0)::bigint, pawl.micros(max(s.played_at))
  from (select case when m.player_a = p_player_a then m.score_a else m.score_b end as a,
               case when m.player_a = p_player_a then m.score_b else m.score_a end as b, m.played_at
        from rating.match m
        where m.group_id = p_group_id and m.undone_at is null
          and least(m.player_a, m.player_b) = least(p_player_a, p_player_b)
          and greatest(m.player_a, m.player_b) = greatest(p_player_a, p_player_b)) s
$$;

-- The last p_limit points of each player's rating, oldest first; the first point is the rating before the first of these matches.
create or replace function rating.chart_points (p_group_id bigint, p_players bigint[], p_limit integer)
  returns table (ord integer, at bigint, rating double precision, before double precision)
  language sql stable security definer set search_path = rating, pg_temp set plan = keyed
as $$
  select u.ord::integer, pawl.micros(h.played_at), h.rating_after, h.rating_before
  from unnest(p_players) with ordinality u (id, ord)
  cross join lateral (
    select h.match_id, h.played_at, h.rating_after, h.rating_before from rating.history h
    where h.group_id = p_group_id and h.player_id = u.id and not h.is_undone
    order by h.match_id desc limit least(greatest(p_limit, 0), 10000)) h
  order by u.ord, h.match_id
$$;

-- The newest match of a group that is not undone, or the named one whatever it is; no row: there is none.
create or replace function rating.match_get (p_group_id bigint, p_match_id bigint)
  returns table (id bigint, player_a bigint, player_b bigint, score_a integer, score_b integer, played_at bigint, age_s bigint,
                 is_undone boolean, a_before double precision, a_after double precision, b_before double precision, b_after double precision)
  language sql stable security definer set search_path = rating, pg_temp
as $$
  select m.id, m.player_a, m.player_b, m.score_a, m.score_b, pawl.micros(m.played_at),
         extract(epoch from pawl.now() - m.played_at)::bigint, m.undone_at is not null, a.rating_before, a.rating_after, b.rating_before, b.rating_after
  from rating.match m
  left join rating.history a on a.match_id = m.id and a.player_id = m.player_a
  left join rating.history b on b.match_id = m.id and b.player_id = m.player_b
  where m.group_id = p_group_id
    and m.id = coalesce(p_match_id, (
      select l.id from rating.match l where l.group_id = any (array[p_group_id]) and l.undone_at is null
      order by l.group_id desc, l.id desc limit 1))
$$;

-- All members who have played, for verification. changes: matches, undone ones too, and undos that computed the rating again.
create or replace function rating.verify_members (p_group_id bigint)
  returns table (player_id bigint, start_rating double precision, rating double precision, deviation double precision,
                 volatility double precision, games bigint, last_match_id bigint, active_rows bigint, version bigint, changes bigint)
  language sql stable security definer set search_path = rating, pg_temp
as $$
  select m.player_id, m.start_rating, m.rating, m.deviation, m.volatility, m.games::bigint, m.last_match_id, coalesce(n.active, 0), m.version,
         coalesce(n.count, 0) + coalesce(u.count, 0)
  from rating.member m
  left join (select h.player_id, count(*), count(*) filter (where not h.is_undone) as active
             from rating.history h where h.group_id = p_group_id group by h.player_id) n on n.player_id = m.player_id
  left join (select k.id::bigint as player_id, count(*) from rating.undo u cross join jsonb_object_keys(u.changes) k (id)
             where u.group_id = p_group_id group by k.id) u on u.player_id = m.player_id
  where m.group_id = p_group_id and (m.games <> 0 or n.count > 0 or m.last_match_id is not null or m.version <> 1)
$$;
