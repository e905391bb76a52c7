"""What of the metadata table depends on its layout: times of its own, and names of its log files."""
