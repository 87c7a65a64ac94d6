"""This process's own region: its image, its file, and the directory that the file stands in."""
