-- 0052_group_timezone.sql - the time zone in which a group's dates are shown, by its name in pg_timezone_names.

alter table rating.groups add column timezone text not null default 'UTC';
