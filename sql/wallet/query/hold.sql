-- One hold as JSON; null: there is none. $1 its txn id
select (select (t - '{hold,entries,kind,other,ref,status}'::text[]) || (t -> 'hold') || jsonb_build_object('remaining',
          case when t -> 'hold' ->> 'status' = 'OPEN' then (t -> 'hold' ->> 'amount')::bigint - (t -> 'hold' ->> 'captured')::bigint else 0 end)
        from wallet.transaction($1::uuid) t
        where t ? 'hold')::text as value
