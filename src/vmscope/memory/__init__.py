"""This process's own region."""
