"""``haptics export``: convert recordings to CSV, Parquet, MATLAB and MCAP files."""
