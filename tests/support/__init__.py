"""What more than one test module uses: tables, rows, storages, faults, processes, reference data."""
