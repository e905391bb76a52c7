"""The commit protocol: table lock, transactions, heartbeats, holds, rollback, restore and recovery."""
