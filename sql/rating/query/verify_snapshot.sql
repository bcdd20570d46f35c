-- Everything that follows is read from one snapshot.
set transaction isolation level repeatable read
