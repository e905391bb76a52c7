"""Records of the metadata table as its files have them."""
