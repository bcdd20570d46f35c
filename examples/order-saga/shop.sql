-- shop.sql - the shop behind order.json: stock, picks, labels and shipments. May be run again; the shelves are then full again.
--
-- Each function is a step: schema.function(input jsonb, key uuid) returns jsonb. pawl calls it in the transaction that records the step, so
-- its effects happen exactly once. They are security definer, because pods do not run functions of other roles with their own
-- rights. SQLSTATE QU065 is a refusal: the step is not tried again, and the process is compensated.
create schema if not exists shop;

create table if not exists shop.stock (sku text primary key, price bigint not null, count integer not null check (count >= 0));
create table if not exists shop.customer (name text primary key, address text not null);
create table if not exists shop.reservation (id uuid primary key, lines jsonb not null, is_open boolean not null default true);
create table if not exists shop.pick (id uuid primary key, item jsonb not null, is_open boolean not null default true);
create table if not exists shop.shipment (id uuid primary key, label uuid not null, is_open boolean not null default true);

create or replace function shop.reserve (input jsonb, key uuid) returns jsonb language plpgsql security definer set search_path = shop, pg_temp as $$
declare
  v_total bigint := 0;
  v_line record;
  v_price bigint;
begin
  -- In the order of their names, so that two orders do not wait for each other in a circle.
  for v_line in select l ->> 'sku' as sku, (l ->> 'count')::integer as count from jsonb_array_elements(input -> 'items') l order by 1 loop
    update shop.stock s set count = s.count - v_line.count where s.sku = v_line.sku and s.count >= v_line.count returning s.price into v_price;
    if not found then
      raise exception 'not enough % in stock', v_line.sku using errcode = 'QU065';
    end if;
    v_total := v_total + v_price * v_line.count;
  end loop;
  insert into shop.reservation (id, lines) values (key, input -> 'items');
  return jsonb_build_object('id', key, 'total', v_total);
end
$$;

create or replace function shop.release (input jsonb, key uuid) returns jsonb language sql security definer set search_path = shop, pg_temp as $$
  with released as (
    update shop.reservation r set is_open = false where r.id = (input ->> 'reservation')::uuid and r.is_open returning r.lines
  ), counted as (
    update shop.stock s set count = s.count + l.count
    from released r cross join lateral jsonb_to_recordset(r.lines) l (sku text, count integer)
    where s.sku = l.sku
    returning 1
  )
  select jsonb_build_object('lines', count(*)) from counted
$$;

create or replace function shop.pick (input jsonb, key uuid) returns jsonb language sql security definer set search_path = shop, pg_temp as $$
  insert into shop.pick (id, item) values (key, input -> 'item') returning jsonb_build_object('id', id)
$$;

create or replace function shop.put_back (input jsonb, key uuid) returns jsonb language sql security definer set search_path = shop, pg_temp as $$
  update shop.pick p set is_open = false where p.id = (input ->> 'pick')::uuid returning jsonb_build_object('id', p.id)
$$;

create or replace function shop.address (input jsonb, key uuid) returns jsonb language sql security definer set search_path = shop, pg_temp as $$
  select jsonb_build_object('to', c.address) from shop.customer c where c.name = input ->> 'customer'
$$;

create or replace function shop.print_label (input jsonb, key uuid) returns jsonb language sql security definer set search_path = shop, pg_temp as $$
  select jsonb_build_object('id', key, 'to', input ->> 'to')
$$;

create or replace function shop.ship (input jsonb, key uuid) returns jsonb language sql security definer set search_path = shop, pg_temp as $$
  insert into shop.shipment (id, label) values (key, (input ->> 'label')::uuid) returning jsonb_build_object('id', id)
$$;

create or replace function shop.recall (input jsonb, key uuid) returns jsonb language sql security definer set search_path = shop, pg_temp as $$
  update shop.shipment s set is_open = false where s.id = (input ->> 'shipment')::uuid returning jsonb_build_object('id', s.id)
$$;

insert into shop.stock (sku, price, count) values ('cup', 12, 100), ('lamp', 450, 10) on conflict (sku) do update set count = excluded.count;
insert into shop.customer (name, address) values ('ann', '1 Elm Street'), ('bob', '2 Oak Street') on conflict do nothing;
