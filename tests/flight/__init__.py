"""The flight recorder's files, and what is made of them."""
