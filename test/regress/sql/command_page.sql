-- command_page.sql - a page of a listing reads a bounded number of rows, however few of them match, and says how far it has read.
\set VERBOSITY terse
select count(*) from pawl.send('shop', array_fill('sale'::text, '{3000}'), array_fill('1'::jsonb, '{3000}'));
select count(*) from pawl.send('quiet', array['rare', 'other', 'rare'], array_fill('1'::jsonb, '{3}'));
select count(*) from pawl.send('shop', array_fill('sale'::text, '{3000}'), array_fill('1'::jsonb, '{3000}'), p_priorities => array_fill(3::smallint, '{3000}'));
select count(*) from pawl.send('shop', array_fill('sale'::text, '{3000}'), array_fill('1'::jsonb, '{3000}'), p_delays_ms => array_fill(3600000::bigint, '{3000}'));
-- The first of them have ended, and some of these not well.
with gone as (delete from pawl.ready r where r.priority <> 3 and r.domain_id = pawl.domain_find('shop') returning r.id, r.domain_id)
insert into pawl.outcome (id, domain_id, status, attempts, ended_at)
select g.id, g.domain_id, case g.id % 3 when 0 then 'COMPLETED' when 1 then 'FAILED' else 'CANCELED' end, 1, pawl.now() from gone g;
with gone as (delete from pawl.ready r where r.priority = 3 and r.id % 2 = 0 returning r.id, r.domain_id)
insert into pawl.tsq (id, since, domain_id, attempt) select g.id, pawl.now(), g.domain_id, 1 from gone g;
-- Requeued ones.
update pawl.delayed set due = pawl.now() - interval '1 s' where id in (select id from pawl.delayed order by id limit 1000);
select moved from pawl.requeue_due(1000, 'epoch', 1000);

-- Every listing, page by page with few rows each, has what one without a bound has, in the same order.
create function pg_temp.pages (p_domain text, p_status text, p_type text, p_limit integer, p_rows integer, out ids bigint[], out pages integer)
language plpgsql as $$
declare
  v_row record;
  v_before bigint;
  v_in_page integer;
  v_more boolean := true;
begin
  ids := '{}';
  pages := 0;
  while v_more loop
    v_in_page := 0;
    v_more := false;
    for v_row in select * from pawl.command_page(p_domain, p_status, p_type, v_before, p_limit, p_rows) loop
      v_before := v_row.searched_to;
      if v_row.id is null then
        v_more := true;
      else
        ids := ids || v_row.id;
        v_in_page := v_in_page + 1;
      end if;
    end loop;
    v_more := v_more or v_in_page = p_limit;
    pages := pages + 1;
  end loop;
end
$$;
create function pg_temp.simply (p_domain text, p_status text, p_type text) returns bigint[] language sql as $$
  select array(select c.id from pawl.command c
               where (p_domain is null or c.domain_id = pawl.domain_find(p_domain)) and (p_type is null or c.type = p_type)
                 and (p_status is null or pawl.command_status(c.id) = p_status) order by c.id desc)
$$;
select d.domain, s.status, t.type, p.ids = pg_temp.simply(d.domain, s.status, t.type) as same, cardinality(p.ids) as found, p.pages
from (values (null), ('shop'), ('quiet')) d (domain), (values (null), ('PENDING'), ('IN_TSQ'), ('COMPLETED'), ('FAILED')) s (status),
     (values (null), ('rare')) t (type), pg_temp.pages(d.domain, s.status, t.type, 700, 1000) p
order by 1, 2, 3;
-- The same by the function without a bound.
select array(select l.id from pawl.command_list('quiet') l) = pg_temp.simply('quiet', null, null) as quiet,
       array(select l.id from pawl.command_list(p_limit => null) l) = pg_temp.simply(null, null, null) as everything,
       array(select l.id from pawl.command_list('shop', 'PENDING', p_limit => 1500) l) = (pg_temp.simply('shop', 'PENDING', null))[:1500] as some;
select pawl.command_count('quiet', null, 'rare') as rare, pawl.command_count(null, 'PENDING', 'sale') as pending;

-- A page ends where its rows end; the row that says so may be the only one.
select p.id, p.command_id, p.searched_to < 9003 as older from pawl.command_page('quiet', null, null, null, 10, 2000) p;
select p.type, p.id = p.searched_to as own from pawl.command_page('quiet', null, null, null, 10, 9003) p;
select count(*) from pawl.command_page('unknown');
select count(*) from pawl.command_page(p_limit => null);
select count(*) from pawl.command_page(p_limit => 0);
select count(*) from pawl.command_page(p_rows => null);
select count(*) from pawl.command_page(p_rows => 0);

-- Rows read: of the listed table at most p_rows, and one lookup of a type for each.
create function pg_temp.rows (p_domain text, p_status text, p_type text, p_rows integer) returns bigint language plpgsql as $$
declare
  v_before bigint;
  v_now bigint;
begin
  select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) into v_before
  from pg_stat_xact_user_tables where schemaname = 'pawl';
  perform pawl.command_page(p_domain, p_status, p_type, null, 10, p_rows);
  select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) into v_now
  from pg_stat_xact_user_tables where schemaname = 'pawl';
  return v_now - v_before;
end
$$;
vacuum analyze pawl.command, pawl.outcome, pawl.ready, pawl.delayed, pawl.tsq;
select d.domain, s.status, t.type, pg_temp.rows(d.domain, s.status, t.type, 1000) <= 2 * 1000 + 100 as bounded
from (values (null), ('quiet')) d (domain), (values (null), ('IN_TSQ'), ('COMPLETED'), ('FAILED')) s (status),
     (values (null), ('rare')) t (type)
order by 1, 2, 3;
-- Queued ones are in as many ranges as there are priorities with work: each has its share. Requeued ones, 1000 here, are passed over once.
select pg_temp.rows(null, 'PENDING', 'rare', 4000) <= 2 * 4000 + 1000 as bounded, pg_temp.rows(null, 'PENDING', null, 4000) < 1000 + 300 as few;
