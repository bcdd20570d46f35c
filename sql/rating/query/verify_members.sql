-- Members who have played.
select * from rating.verify_members($1)
