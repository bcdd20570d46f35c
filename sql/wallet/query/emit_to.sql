-- A command for each transaction in an asset. $1 asset, $2 domain, null: none
select wallet.emit_to($1::text, $2::text)
