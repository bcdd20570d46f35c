-- batch_seal.sql - $1 batch id.
select pawl.batch_seal($1)
