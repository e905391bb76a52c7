"""From columns to the record key and the partition path."""
