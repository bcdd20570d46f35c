-- 0031_rating_turn.sql - old chat ids of groups that moved, questions that wait for an answer, and checks of what a history may hold.
--
--     group_alias   one row per chat id that a group has had before; messages that were sent there belong to the group
--     question      one row per match that was asked back; deleted after a day

alter table rating.groups add column is_language_set boolean not null default true; -- false: the language of users is taken until a command comes
alter table rating.groups alter column is_language_set set default false;

create table rating.group_alias (
  chat_id bigint primary key,
  group_id bigint not null
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

create index match_group on rating.match (group_id, id); -- lists with the undone ones

-- NaN is greater than every number.
alter table rating.history add constraint history_values check (
  rating_before between 0 and 10000 and rating_after between 0 and 10000
  and deviation_before > 0 and deviation_before < 'Infinity' and deviation_after > 0 and deviation_after < 'Infinity'
  and volatility_before > 0 and volatility_before < 'Infinity' and volatility_after > 0 and volatility_after < 'Infinity') not valid;
alter table rating.member add constraint member_values check (
  deviation > 0 and deviation < 'Infinity' and volatility > 0 and volatility < 'Infinity'
  and (start_rating is null or start_rating between 0 and 10000)) not valid;

-- Replaced by sql/rating/undo.sql.
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
