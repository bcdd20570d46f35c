-- queries.sql - the statements that C sends for ratings: `-- name: NAME` begins sql_rating_NAME.

-- name: board
-- A page of the leaderboard.
select * from rating.board($1, $2, $3)

-- name: chart_points
-- Ratings over time.
select * from rating.chart_points($1, $2, $3)

-- name: group_get
-- A group with its settings.
select * from rating.group_get($1)

-- name: group_list
-- Groups in the order of their ids.
select * from rating.group_list($1, $2)

-- name: group_move
-- A group has a new outside id.
select rating.group_move($1, $2)

-- name: group_open
-- A group with its settings, created on first sight.
select * from rating.group_open($1, $2, $3)

-- name: group_set
-- Change one setting of a group.
select rating.group_set($1, $2, $3)

-- name: group_times
-- Times as clocks in the group's time zone show them: $1 group, $2 microseconds. Columns: at, in the order of the
-- array.
select t.at from rating.group_times($1::bigint, $2::bigint[]) t order by t.ord

-- name: group_timezone
-- The time zone of a group: $1 group.
select rating.group_timezone($1::bigint) as value

-- name: head_to_head
-- Two players against each other.
select * from rating.head_to_head($1, $2, $3)

-- name: history_rewrite
-- Write new states into history rows.
select rating.history_rewrite($1, $2, $3::double precision[], $4::double precision[], $5::double precision[],
                              $6::double precision[], $7::double precision[], $8::double precision[])

-- name: match_get
-- One match, or the last one.
select * from rating.match_get($1, $2)

-- name: matches
-- Matches of a group, newest first.
select * from rating.matches($1, $2, $3, $4)

-- name: matches_after
-- How many matches follow one.
select rating.matches_after($1, $2, $3)

-- name: matches_read
-- Read what registrations need. Times in seconds, as texts, because they may be null.
select * from rating.matches_read($1, $2, $3, $4, $5, $6,
  array(select to_timestamp(t::double precision) from unnest($7::text[]) with ordinality u (t, n) order by n))

-- name: matches_write
-- Write matches. Authors as texts, because they may be null; times in microseconds since 1970.
select * from rating.matches_write($1, $2, $3, $4::text[]::bigint[], $5, $6, $7, $8, $9::double precision[],
                                   $10::double precision[], $11::double precision[], $12::double precision[],
                                   $13::double precision[], $14::double precision[],
  array(select timestamptz 'epoch' + t * interval '1 microsecond' from unnest($15::bigint[]) with ordinality u (t, n) order by n))

-- name: namesakes
-- Users whose names others in their groups have too.
select * from rating.namesakes($1, $2)

-- name: places
-- Places of players.
select * from rating.places($1, $2)

-- name: player_history
-- Matches of a player, newest first.
select * from rating.player_history($1, $2, $3, $4)

-- name: players_get
-- Players by id.
select * from rating.players_get($1, $2)

-- name: players_named
-- Players by username.
select * from rating.players_named($1, $2)

-- name: players_of_users
-- Players by outside id.
select * from rating.players_of_users($1, $2)

-- name: players_seen
-- Remember who was seen in a message.
select * from rating.players_seen($1, to_timestamp($2), $3, $4, $5, $6::boolean[], $7::boolean[])

-- name: prune
-- Delete old rows of groups: $1 how many of each kind at most. How many were deleted.
select rating.prune($1::integer) as value

-- name: question_put
-- A match that is asked back.
select rating.question_put($1, $2, $3, $4, $5, $6, $7)

-- name: question_take
-- What a button asks about; it is answered by this.
select * from rating.question_take($1, $2, $3)

-- name: replay_chunk
-- Matches with the states of their players, in order.
select * from rating.replay_chunk($1, $2, $3)

-- name: stats
-- One player in numbers.
select * from rating.stats($1, $2)

-- name: timezone_find
-- The time zone that a text names: $1 text; null: none.
select rating.timezone_find($1::text) as value

-- name: turns_open
-- The groups of messages, who was seen, who is meant, the limits. Times in seconds, numbers that may be null as texts.
select * from rating.turns_open($1, $2, $3,
  array(select to_timestamp(t::double precision) from unnest($4::text[]) with ordinality u (t, n) order by n),
  $5::text[]::bigint[], $6::boolean[], $7, $8, $9, $10, $11::boolean[], $12::boolean[], $13, $14, $15, $16, $17)

-- name: undo_begin
-- Mark a match as undone.
select rating.undo_begin($1, $2)

-- name: undo_end
-- Write the ratings after an undo.
select rating.undo_end($1, $2, $3, $4, $5, $6, $7, $8, $9::double precision[], $10::double precision[],
                       $11::double precision[])

-- name: undo_find
-- What a key has undone.
select * from rating.undo_find($1)

-- name: undo_versions
-- The versions that an undo may change.
select * from rating.undo_versions($1, $2)

-- name: usage_add
-- One more command of a player in a group at a time in seconds, or now; how many there were in the minute before.
select u.by_player, u.by_group from rating.usage_add(array[$1::bigint], array[$2::bigint],
                                                     array[to_timestamp($3::double precision)], $4) u

-- name: usage_is_left
-- Would one more command be within the limits: $1 group, $2 author or 0, $3 its time in seconds or null, $4 commands of
-- a player, $5 of the group.
select rating.usage_is_left($1::bigint, $2::bigint, to_timestamp($3::double precision), $4::integer,
                            $5::integer) as value

-- name: verify_members
-- Members who have played.
select * from rating.verify_members($1)

-- name: verify_snapshot
-- Everything that follows is read from one snapshot.
set transaction isolation level repeatable read
