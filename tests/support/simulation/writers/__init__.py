"""Writers, services and readers of one table at the same time, in an order that a seed draws."""
