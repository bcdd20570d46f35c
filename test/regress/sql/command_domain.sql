-- The numbers of domains.
\set VERBOSITY terse
-- Sends that are rolled back use nothing up.
do $$
begin
  for i in 1 .. 300 loop
    begin
      perform pawl.send('lost' || i, array['t'], array['1']::jsonb[], p_priorities => '{77}');
    exception when sqlstate 'QU001' then null;
    end;
  end loop;
end
$$;
select count(*) from pawl.domain_name;
-- A number follows from the name, unless another domain has it.
select pawl.domain_number('shop', 0) = pawl.domain_id('shop') as plain, pawl.domain_id('shop') >= 1 << 30 as large;
insert into pawl.domain_name (id, name) values (pawl.domain_number('mail', 0), 'other');
select pawl.domain_id('mail') = pawl.domain_number('mail', 1) as passed, pawl.domain_id('mail') = pawl.domain_id('mail') as same;
-- A domain that was written twice is one domain.
insert into pawl.domain_name (id, name) select d.id, d.name from pawl.domain d where d.name = 'shop';
select pawl.send('shop', 'charge', '{}', '018f0000-0000-7000-8000-000000000001');
select pawl.send('shop', 'charge', '{}', '018f0000-0000-7000-8000-000000000001');
select l.domain, l.command_id from pawl.command_list('shop', null, null, 9223372036854775807, 10) l;
select d.name from pawl.domain d order by d.name;
-- Two domains that got the same number are refused, not mixed.
insert into pawl.domain_name (id, name) select d.id, 'twin' from pawl.domain d where d.name = 'shop';
select pawl.send('shop', 'charge');
select pawl.domain_find('twin');
select pawl.domain_find('no good');
select pawl.domain_find(null);
