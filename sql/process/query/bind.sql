-- The newest definition for a process without one, as a number; NULL: there is none; -1: another transaction has the process locked. $1 number, $2 token of its lease
select pawl.process_bind($1, $2)::bigint
