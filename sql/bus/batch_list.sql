-- batch_list.sql - lists of batches, newest first. Errors: QU001 a limit out of range.

create or replace function pawl.batch_status (p_sealed_at timestamptz, p_completed_at timestamptz)
  returns text
  language sql immutable
as $$
  select case when p_completed_at is not null then 'COMPLETED' when p_sealed_at is not null then 'SEALED' else 'OPEN' end
$$;

-- The domain of its first command; null: it has none.
create or replace function pawl.batch_domain (p_id bigint)
  returns text
  language sql stable set search_path = pawl, pg_temp
  set plan = keyed
as $$
  select (select n.name from pawl.domain_name n where n.id = c.domain_id limit 1)
  from pawl.command c where c.batch_id = p_id order by c.id limit 1
$$;

-- At most p_rows rows are read, as in bus/show.sql: when they end a page, its last row has no id, and searched_to says where the next page begins.
-- Without the numbers of commands, which would have to be counted: pawl.batch_progress has them. domain: of its first command. p_status: OPEN, SEALED or
-- COMPLETED. p_domains: names, or beginnings of names and a "*": what the caller may see; a batch without commands belongs to no domain.
create or replace function pawl.batch_page (
  p_status text default null, p_name text default null, p_since timestamptz default null, p_until timestamptz default null,
  p_before bigint default null, p_limit integer default 100, p_rows integer default 20000, p_domains text[] default null)
  returns table (id bigint, batch_id uuid, name text, status text, domain text, created_at timestamptz, sealed_at timestamptz,
                 completed_at timestamptz, searched_to bigint)
  language plpgsql stable security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_like text[] := pawl.names_like(p_domains);
  v_range record;
  v_ids bigint[];
  v_last bigint;
begin
  perform pawl.list_check(p_limit, p_rows);
  select r.before, r.after into v_range from pawl.id_range('pawl.batch', 'created_at', p_since, p_until, p_before) r;
  select array_agg(m.id) filter (where m.hit), max(m.id) filter (where m.n = p_rows) into v_ids, v_last
  from (
    select x.id, h.hit, x.n
    from (
      select s.*, row_number() over () as n
      from (select b.* from pawl.batch b where b.id < v_range.before and b.id > v_range.after order by b.id desc) s
      limit p_rows) x
    cross join lateral (
      select case
        when p_status <> pawl.batch_status(x.sealed_at, x.completed_at) or p_name <> coalesce(x.name, '')
             or x.created_at < p_since or x.created_at > p_until then false
        else v_like is null or coalesce(pawl.batch_domain(x.id) like any (v_like), false) end as hit) h
    where h.hit or x.n = p_rows
    limit p_limit) m;
  return query
    select b.id, b.batch_id, b.name, pawl.batch_status(b.sealed_at, b.completed_at), pawl.batch_domain(b.id), b.created_at, b.sealed_at,
           b.completed_at, b.id
    from pawl.batch b
    where b.id = any (v_ids)
    order by b.id desc;
  if v_last is not null and coalesce(cardinality(v_ids), 0) < p_limit then
    searched_to := v_last;
    return next;
  end if;
end
$$;
