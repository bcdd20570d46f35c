-- retry_policy_list.sql - $1 domain. Columns: type ('*' is the domain's own), delays in ms joined by commas, is_default, order_key (hold or
-- release).
select p.type, array_to_string(p.delays_ms, ',') as delays_ms, p.is_default, p.order_key
from pawl.retry_policy_list($1::text) p
