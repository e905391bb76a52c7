"""The contract suite without its tests: kinds of tables, the steps of a history, the model."""
