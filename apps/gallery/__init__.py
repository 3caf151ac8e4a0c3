"""Gallery of guided demonstrations, each with a caption, a picture, a film and a verified number."""
