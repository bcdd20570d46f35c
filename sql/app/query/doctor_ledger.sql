-- Seconds by which the newest transactions of the ledger are ahead of the database's clock.
select wallet.clock_ahead() as ahead_s
