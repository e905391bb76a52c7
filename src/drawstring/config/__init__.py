"""Options of reads and writes, and table properties; all option keys are defined here."""
