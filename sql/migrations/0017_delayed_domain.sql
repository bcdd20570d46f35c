-- 0017_delayed_domain.sql - whether a domain has delayed commands is answered by index.
create index delayed_domain on pawl.delayed (domain_id, id);
