-- 0043_process_domain.sql - list the processes of a domain or a type by index.
--
-- A definition has one domain and one type, so an index by definition and number serves both filters, in place of the one by definition: a start writes as
-- many index entries as before. Processes without a definition have both in their row. Those that an earlier version has started have neither,
-- and stay together under null until retention deletes them.

alter table pawl.process
  add column domain_id integer, -- of its command; null: started by an earlier version
  add column code_type text; -- of its command, if it was started without a definition

drop index pawl.process_definition_used;
create index process_definition_used on pawl.process (definition_id, id);

drop index pawl.process_code;
create index process_code on pawl.process (domain_id, code_type, id) where definition_id is null;
