"""The doctor's checks, one subject per file. `tickler.observe.doctor` lists them and says how to add one."""
