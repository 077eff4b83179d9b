"""What happened to products: read from sources, made fit for people, kept once."""
