"""Who may do what: roles and stores of a caller, enforced where prices are read, below every way in."""
