-- treasury.sql - who may create money, set floors, freeze and unfreeze.
--
-- wallet.post and wallet.open run with the owner's rights, so current_user says nothing about the caller in them. The role
-- that answers for a session is the one of SET ROLE, else the login; neither changes inside a SECURITY DEFINER function, and a
-- pooler in transaction mode shows both as a direct connection does. So a SECURITY DEFINER function of an application is judged by
-- the role that calls it, not by its owner.
-- Errors: 42501 the caller has no right to the treasury.

-- The right itself: to have EXECUTE on it is to be a treasurer; see sql/base/grants.sql. It does nothing.
create or replace function wallet.treasury ()
  returns void
  language sql immutable
as $$ $$;

-- Called by functions that fix their search_path.
create or replace function wallet.treasury_check ()
  returns void
  language plpgsql stable
as $$
declare
  v_role text := current_setting('role');
begin
  if v_role = 'none' then
    v_role := session_user;
  end if;
  if not has_function_privilege(v_role, 'wallet.treasury()', 'execute') then
    raise exception 'role "%" must not create money, set floors, freeze or unfreeze: that is for members of pawl_treasurer', v_role
      using errcode = '42501';
  end if;
end
$$;

-- Does any of these operations create money or change how a wallet is judged?
create or replace function wallet.treasury_needed (p_kinds text[], p_requests jsonb[])
  returns boolean
  language sql immutable
as $$
  select p_kinds && '{topup,freeze,unfreeze,floor}'
      or 'multi' = any (p_kinds)
         and exists (select from unnest(p_kinds, p_requests) u (kind, request),
                                 jsonb_array_elements(u.request -> 'legs') l
                     where u.kind = 'multi' and l ->> 'owner' = '@system' and left(l ->> 'amount', 1) = '-')
$$;
