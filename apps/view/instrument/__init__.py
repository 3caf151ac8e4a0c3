"""What makes an instrument of the plots: files of what is shown, and help."""
