-- 0038_process_code.sql - find processes without a definition: those of code, and those that wait for their definition.

create index process_code on pawl.process (id) where definition_id is null;
