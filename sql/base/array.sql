-- array.sql - the guard of functions that take parallel arrays.
--
-- Parallel arrays are joined by position. unnest() counts elements, a[i] counts from the lower bound, and cardinality()
-- counts the elements of all dimensions: they agree only for one dimension that starts at 1. So every function that
-- takes arrays checks each of them first:
--
--     perform pawl.array_check('ids', p_ids, v_count, 'QU001');
--     perform pawl.array_check('results', p_results, v_count, 'QU001', p_optional => true);
--
-- Errors: the SQLSTATE that the caller names.

create or replace function pawl.array_refuse (p_name text, p_message text, p_errcode text)
  returns boolean
  language plpgsql
as $$
begin
  raise exception '% %', p_name, p_message using errcode = p_errcode;
end
$$;

-- True, or an error: p_array is NULL (unless p_optional), has several dimensions, a lower bound other than 1, or not
-- p_count elements. NULL for p_count is an error too. An empty array has no dimension and is good for a count of 0.
-- Written to be inlined, so that a call copies no array: language sql, one expression, no fixed search_path.
create or replace function pawl.array_check (
  p_name text, p_array anyarray, p_count integer, p_errcode text, p_optional boolean default false)
  returns boolean
  language sql volatile
as $$
  select case
    when p_array is null then
      case when p_optional then true else pawl.array_refuse(p_name, 'must be an array, got null', p_errcode) end
    when pg_catalog.array_ndims(p_array) > 1 then
      pawl.array_refuse(
        p_name, pg_catalog.format('must have one dimension, got %s', pg_catalog.array_ndims(p_array)), p_errcode)
    when pg_catalog.array_lower(p_array, 1) <> 1 then
      pawl.array_refuse(
        p_name, pg_catalog.format('must have the lower bound 1, got %s', pg_catalog.array_lower(p_array, 1)), p_errcode)
    when pg_catalog.cardinality(p_array) = p_count then true
    else
      pawl.array_refuse(
        p_name, pg_catalog.format('must have %s elements, got %s', coalesce(p_count::text, 'a known number of'),
                                  pg_catalog.cardinality(p_array)), p_errcode)
  end
$$;
