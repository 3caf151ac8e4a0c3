"""The gallery: guided minutes, each with a caption, a picture, a film, and one number that proves it."""
