"""Drop-ins: other libraries' metrics, whose values are counters of this process's region."""
