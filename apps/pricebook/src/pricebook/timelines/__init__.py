"""How prices change over a time, for people who look at them: spans of one product, and what comes next in all stores."""
