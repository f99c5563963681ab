"""What anyone can check of records, seals and the log, trusting nobody who made them."""
