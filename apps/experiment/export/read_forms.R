# Read the answers to forms with base R:
#   source("read_forms.R"); forms <- read_forms("."); codebook <- read_codebook(".")
# Each row is an answer or a score; `number` is numeric, and empty cells are NA.

read_forms <- function(folder = ".") {
  forms <- read.csv(file.path(folder, "forms.csv"), colClasses = "character", na.strings = "", fileEncoding = "UTF-8")
  for (name in c("session", "after_blocks", "number")) forms[[name]] <- as.numeric(forms[[name]])
  forms
}

read_codebook <- function(folder = ".") {
  read.csv(file.path(folder, "forms_codebook.csv"), na.strings = "", fileEncoding = "UTF-8")
}
