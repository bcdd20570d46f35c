-- tables.sql - ratings of groups: players, matches, and each player's rating after each match. How often rows change:
--
--     rules        one row per combination of rating rules that a group has used; never changed
--     groups       one row per group; updated when its settings or its outside id change
--     group_alias  one row per chat id that a group has had before; messages that were sent there belong to the group
--     player       one row per person; updated when the name changes
--     username     one row per username; updated when it changes hands
--     member       one row per player of a group, with the current rating; both rows of a match are updated by it
--     match        one row per match; inserted once, updated once if it is undone
--     history      two rows per match, a player before and after it; rewritten only when an earlier match is undone
--     undo         one row per undone match, with its key and what it changed; inserted once
--     question     one row per match that was asked back; deleted after a day
--     usage        one row per command of the last minutes, for the limits per user and group
--
-- Match ids are allocated after the versions were read and before the transaction commits. So among matches that share
-- a player the order of ids is the order in which the ratings were computed, and a replay in this order gives the same
-- ratings.

create schema rating;

create table rating.rules (
  id integer generated always as identity primary key,
  formula integer not null default 1, -- version of the formulas in src/rating/rules.c that compute a match
  system text not null constraint rules_system check (system in ('elo', 'glicko2')),
  k_factor integer not null constraint rules_k_factor check (k_factor between 1 and 400),
  margin boolean not null, -- the margin of victory counts
  constraint rules_key unique (formula, system, k_factor, margin)
);
insert into rating.rules (system, k_factor, margin) values ('elo', 32, false); -- number 1, the default of groups

create table rating.groups (
  id bigint generated always as identity primary key,
  chat_id bigint not null constraint groups_chat unique, -- the outside id
  title text not null,
  is_active boolean not null default true, -- false: the bot was removed
  is_published boolean not null default false,
  language text not null default 'en' constraint groups_language check (language in ('en', 'ru')),
  rules_id integer not null default 1,
  start_rating integer not null default 1500 constraint groups_start_rating check (start_rating between 0 and 10000),
  draws boolean not null default true,
  undo_hours integer not null default 24 constraint groups_undo_hours check (undo_hours between 0 and 8760),
  min_games integer not null default 1 constraint groups_min_games check (min_games between 1 and 1000),
  match_topic bigint, -- null: matches are registered in any topic
  ranking_topic bigint, -- null: rankings are shown in any topic
  created_at timestamptz not null,
  is_language_set boolean not null default false, -- false: the language of users is taken until a command comes
  timezone text not null default 'UTC' -- in which its dates are shown, by its name in pg_timezone_names
);

create table rating.group_alias (
  chat_id bigint primary key,
  group_id bigint not null
);

create table rating.player (
  id bigint generated always as identity primary key,
  user_id bigint not null constraint player_user unique, -- the outside id
  name text not null,
  is_bot boolean not null,
  seen_at timestamptz not null -- of the message that the name is from
);
-- Players of a group who have the same name are shown with their usernames too.
create index player_name on rating.player (name);

create table rating.username (
  name text primary key, -- lower case
  shown text not null,
  player_id bigint not null constraint username_player unique,
  seen_at timestamptz not null
);

create table rating.member (
  group_id bigint not null,
  player_id bigint not null,
  is_present boolean not null default true, -- false: the player has left the group
  start_rating double precision, -- before the first match; null: there was none
  rating double precision not null constraint member_rating check (rating between 0 and 10000),
  deviation double precision not null,
  volatility double precision not null,
  games integer not null default 0, -- computed from the history
  last_match_id bigint, -- of those that are not undone
  version bigint not null default 1, -- grows with every change of the rating
  primary key (group_id, player_id),
  -- NaN is greater than every number.
  constraint member_values check (
    deviation > 0 and deviation < 'Infinity' and volatility > 0 and volatility < 'Infinity'
    and (start_rating is null or start_rating between 0 and 10000))
);
create index member_board on rating.member (group_id, rating desc, player_id) include (games)
  where is_present and games > 0;

create table rating.match (
  id bigint generated always as identity primary key,
  group_id bigint not null,
  key text not null constraint match_key unique,
  player_a bigint not null,
  player_b bigint not null,
  score_a integer not null,
  score_b integer not null,
  rules_id integer not null,
  author_id bigint, -- null: an anonymous administrator
  played_at timestamptz not null,
  undone_at timestamptz,
  constraint match_players check (player_a <> player_b),
  constraint match_scores check (score_a between 0 and 1000 and score_b between 0 and 1000 and score_a + score_b > 0)
);
create index match_group on rating.match (group_id, id); -- lists with the undone ones
create index match_active on rating.match (group_id, id) where undone_at is null;
create index match_pair on rating.match (group_id, least(player_a, player_b), greatest(player_a, player_b), id)
  where undone_at is null;

create table rating.history (
  match_id bigint not null,
  player_id bigint not null,
  group_id bigint not null,
  opponent_id bigint not null,
  outcome smallint not null constraint history_outcome check (outcome in (-1, 0, 1)), -- lost, drawn, won
  rating_before double precision not null,
  deviation_before double precision not null, -- after the match before: without the growth since then
  volatility_before double precision not null,
  rating_after double precision not null,
  deviation_after double precision not null,
  volatility_after double precision not null,
  played_at timestamptz not null,
  is_undone boolean not null default false,
  primary key (match_id, player_id),
  constraint history_values check (
    rating_before between 0 and 10000 and rating_after between 0 and 10000
    and deviation_before > 0 and deviation_before < 'Infinity' and deviation_after > 0 and deviation_after < 'Infinity'
    and volatility_before > 0 and volatility_before < 'Infinity'
    and volatility_after > 0 and volatility_after < 'Infinity')
);
create index history_player on rating.history (group_id, player_id, match_id) where not is_undone;

create table rating.undo (
  key text primary key,
  match_id bigint not null constraint undo_match unique,
  group_id bigint not null,
  player_id bigint, -- who undid it; null: an anonymous administrator
  at timestamptz not null,
  replayed integer not null, -- later matches whose ratings were computed again
  changes jsonb not null -- {"player id": [rating before, rating after]}
);

create table rating.question (
  id bigint generated always as identity primary key,
  group_id bigint not null,
  key text not null, -- of the message that asked for the match
  player_a bigint not null,
  player_b bigint not null,
  score_a integer not null,
  score_b integer not null,
  author_id bigint,
  asked_at timestamptz not null
);
create index question_at on rating.question (group_id, asked_at);
create index question_age on rating.question (asked_at); -- of quiet groups too, for retention

create table rating.usage (
  group_id bigint not null,
  player_id bigint not null, -- 0: an anonymous administrator
  at timestamptz not null
);
create index usage_at on rating.usage (group_id, at);
create index usage_age on rating.usage (at); -- of quiet groups too, for retention

-- Its body is in rating/undo.sql, which replaces this one.
create function rating.undo_recorded ()
  returns trigger
  language plpgsql security definer set search_path = rating, pg_temp
as $$
begin
  return null;
end
$$;
create constraint trigger match_undo_recorded after update of undone_at on rating.match deferrable initially deferred
  for each row when (new.undone_at is not null) execute function rating.undo_recorded();
