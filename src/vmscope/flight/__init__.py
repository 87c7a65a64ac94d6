"""The flight recorder of this process: what is recorded, when, and where it is kept."""
