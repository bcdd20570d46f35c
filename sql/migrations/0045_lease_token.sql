-- 0045_lease_token.sql - tokens of leases are random: pawl.lease_token. Those that were given out before stay valid until their leases end.

drop sequence pawl.lease_seq;
