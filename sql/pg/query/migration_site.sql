-- What is there before anything of ours is. Columns: has_schema, has_table, may_create_schema, may_create_table boolean;
-- user_name, database_name text.
select to_regnamespace('pawl') is not null as has_schema,
       exists (select from pg_class where relnamespace = to_regnamespace('pawl') and relname = 'migration') as has_table,
       has_database_privilege(current_database(), 'create') as may_create_schema,
       coalesce(has_schema_privilege(to_regnamespace('pawl')::oid, 'create'), false) as may_create_table,
       current_user::text as user_name,
       current_database()::text as database_name
