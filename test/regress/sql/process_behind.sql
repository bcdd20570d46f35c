-- process_behind.sql - a call suspends or ends a process once: what it has behind that is LOST, and nothing of it is written.
set client_min_messages = warning; -- a start of a type that nothing runs says so

create function claimed (p_type text) returns table (id bigint, token bigint) language sql as $$
  select c.id, c.token from (select pawl.start(p_type, '{"n": 1}', p_domain => 'shop')) s
  cross join lateral pawl.claim(pawl.domain_find('process:shop'), 1, 60000, array_fill(0::bigint, array[10]), array[p_type], 'w') c
$$;
-- Items of one process. An end or a wait is its word; a record, a patch, a phase and a result of the end by their arrays.
create function write (
  p_type text, p_ends text[], p_records jsonb[] default null, p_patches jsonb[] default null, p_phases text[] default null, p_results jsonb[] default null,
  p_errors text[] default null)
  returns text language sql as $$
  select string_agg(w.verdict, ' ' order by w.ord)
  from claimed(p_type) c
  cross join lateral (
    select array_agg(case when e like 'WAITING%' then e end order by o) as waits,
           array_agg(case when e not like 'WAITING%' then e end order by o) as ends,
           array_agg(case when e like 'WAITING%' then pawl.micros(pawl.now() + interval '1 hour') end order by o) as due
    from unnest(p_ends) with ordinality u (e, o)) e
  cross join lateral pawl.process_write(array_fill(c.id, array[cardinality(p_ends)]), array_fill(c.token, array[cardinality(p_ends)]), p_records, null, null, p_patches, null, p_phases, null, e.waits, null, null, e.due, e.ends,
    p_results, p_errors) w
$$;
select pawl.start('domain', p_domain => 'shop') is not null as it_exists;
create view shown as
  select c.type, pawl.process_status(p.id) as status, p.life, p.phase, p.reason, p.state, p.version as state_version,
         (select count(*) from pawl.process_step s where s.id = p.id) as records,
         (select count(*) from pawl.lease l where l.id = p.id) + (select count(*) from pawl.ready r where r.id = p.id)
           + (select count(*) from pawl.delayed d where d.id = p.id) + (select count(*) from pawl.outcome o where o.id = p.id) as places,
         (select o.result from pawl.outcome o where o.id = p.id) as result
  from pawl.process p join pawl.command c on c.id = p.id where c.type <> 'domain' order by p.id;

select write('wait-continue', '{WAITING_FOR_ASYNC,continue}');
select write('continue-wait', '{continue,WAITING_FOR_ASYNC}', p_results => '{"{\"n\": 2}",NULL}');
select write('continue-continue', '{continue,continue}', p_results => '{"{\"n\": 2}","{\"n\": 3}"}');
select write('continue-complete', '{continue,complete}', p_results => '{"{\"n\": 2}","3"}');
select write('complete-complete', '{complete,complete}', p_results => '{"1","2"}');
select write('complete-fail', '{complete,fail}', p_results => '{"1",NULL}');
select write('wait-wait', '{WAITING_FOR_ASYNC,WAITING_FOR_REPLY}');
select write('wait-record', '{WAITING_FOR_ASYNC,NULL}', '{NULL,"{\"step\": \"late\"}"}', '{NULL,"{\"late\": true}"}');
select write('complete-phase', '{complete,NULL}', p_phases => '{NULL,compensating}');
-- Records before it belong to it.
select write('record-wait', '{NULL,WAITING_FOR_ASYNC}', '{"{\"step\": \"first\"}",NULL}', '{"{\"first\": true}",NULL}');
-- Behind one that is refused nothing is written either: its caller decides anew.
select write('large-wait', '{continue,WAITING_FOR_ASYNC}', p_results => array[jsonb_build_object('x', repeat('x', 1048570)), null]);
-- Phases in one call follow each other.
select write('phase-phase', '{NULL,NULL,reject}', p_phases => '{compensating,compensated,NULL}', p_errors => '{why,NULL,why}');
select * from shown;
-- Each is in one place.
select * from shown where places <> 1;
select count(*) from pawl.event where event = 'CONTINUED';
