"""What several applications share: the picture and summary of a run, words, colours, progress, answers."""
