"""`CALL`: Hudi's procedures, by their names, parameters and columns."""
