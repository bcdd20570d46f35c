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

create or replace function pawl.array_refuse (p_name text, p_array anyarray, p_count integer, p_errcode text)
  returns boolean
  language plpgsql
as $$
begin
  raise exception '% must %', p_name,
    case
      when p_array is null then 'be an array, got null'
      when array_ndims(p_array) > 1 then format('have one dimension, got %s', array_ndims(p_array))
      when array_lower(p_array, 1) <> 1 then format('have the lower bound 1, got %s', array_lower(p_array, 1))
      else format('have %s elements, got %s', coalesce(p_count::text, 'a known number of'), cardinality(p_array))
    end
    using errcode = p_errcode;
end
$$;

-- True, or an error: p_array is NULL (unless p_optional), has several dimensions, a lower bound other than 1, or not
-- p_count elements. NULL for p_count is an error too. An empty array has no dimension and is good for a count of 0.
-- Written to be inlined, so that a call copies no array: language sql, one expression, no fixed search_path. Each
-- transaction starts the expression anew, which takes longer than its evaluation: so it is short, and the message is in
-- pawl.array_refuse.
create or replace function pawl.array_check (
  p_name text, p_array anyarray, p_count integer, p_errcode text, p_optional boolean default false)
  returns boolean
  language sql volatile
as $$
  select case
    when p_optional and p_array is null then true
    when pg_catalog.cardinality(p_array) = p_count
         and (pg_catalog.array_ndims(p_array) = 1 and pg_catalog.array_lower(p_array, 1) = 1) is not false then true
    else pawl.array_refuse(p_name, p_array, p_count, p_errcode)
  end
$$;
