-- What autovacuum would do beside the next measurement.
vacuum (analyze)
