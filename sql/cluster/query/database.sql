-- database.sql - the private server's one database. Not in a transaction.
create database pawl
