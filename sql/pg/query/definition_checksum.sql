-- The checksum of the definitions in force; null before they were first applied.
select (select checksum from pawl.definition) as value
