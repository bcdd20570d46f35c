-- 0010_treasury_scope.sql - creating money, floors and freezing have a scope of their own.
-- Keys that could do so with scope wallet still can: nothing that runs stops. Revoke and create anew those that should not.

alter table pawl.api_key drop constraint api_key_scopes_check;
update pawl.api_key set scopes = scopes || '{treasury}' where 'wallet' = any (scopes) and revoked_at is null;
alter table pawl.api_key add constraint api_key_scopes_check
  check (cardinality(scopes) > 0
         and scopes <@ array['read', 'wallet', 'treasury', 'command', 'process', 'rating', 'admin']);
