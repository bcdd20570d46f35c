-- Ratings over time.
select * from rating.chart_points($1, $2, $3)
