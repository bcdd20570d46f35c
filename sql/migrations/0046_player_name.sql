-- 0046_player_name.sql - players by name.
--
-- Players of a group who have the same name are shown with their usernames too. The index finds them in a group of any size.

create index player_name on rating.player (name);
