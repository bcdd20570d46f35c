-- expire.sql - holds whose time is over give back what they hold, once, whoever looks first.
-- The key of an expiry is made from its hold, so two monitors that see the same hold are twins, and the second is told what
-- the first one did.

create or replace function wallet.expiry_key (p_hold uuid)
  returns uuid
  language sql immutable
as $$ select md5('pawl hold expiry ' || p_hold)::uuid $$;

-- At most p_limit of those that are due; returns how many were released by this call.
create or replace function wallet.expire (p_limit integer default 1000)
  returns integer
  language plpgsql security definer set search_path = wallet, pawl, pg_temp
  set jit = off set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
  v_due uuid[];
begin
  v_due := array(select t.txn_id
                 from (select h.id from wallet.hold h
                       where h.status = 'OPEN' and h.expires_at is not null and h.expires_at <= pawl.now()
                       order by h.expires_at limit p_limit) h
                 join wallet.txn t on t.id = h.id);
  if cardinality(v_due) = 0 then
    return 0;
  end if;
  return (select count(*) from wallet.post(
            array_fill('expire'::text, array[cardinality(v_due)]), array(select wallet.expiry_key(d) from unnest(v_due) with ordinality u (d, n) order by n),
            null, null, p_refs => v_due) p
          where p.is_new and p.refusal is null);
end
$$;

-- When the next hold is due; null: none has a time.
create or replace function wallet.expire_next ()
  returns timestamptz
  language sql stable security definer set search_path = wallet, pg_temp
as $$
  select h.expires_at from wallet.hold h where h.status = 'OPEN' and h.expires_at is not null order by h.expires_at limit 1
$$;

-- Whoever wants to hear of postings in an asset names the domain of the bus; null: nobody.
create or replace function wallet.emit_to (p_asset text, p_domain text)
  returns void
  language plpgsql security definer set search_path = wallet, pawl, pg_temp
as $$
begin
  update wallet.asset a set emit_to = p_domain where a.id = wallet.asset_id(p_asset);
  if p_domain is not null then
    perform pawl.domain_id(p_domain);
  end if;
end
$$;
