# Read the tables in this folder with base R:
#   source("read.R"); trials <- read_trials("."); participants <- read_participants(".")
# Numbers become numeric, true and false become logical, and empty cells become NA.

read_table_as_text <- function(path) {
  read.csv(path, colClasses = "character", na.strings = "", check.names = FALSE, fileEncoding = "UTF-8")
}

read_trials <- function(folder = ".") {
  columns <- read_table_as_text(file.path(folder, "columns.csv"))
  trials <- read_table_as_text(file.path(folder, "trials.csv"))
  stopifnot(identical(names(trials), columns$name))
  for (i in seq_len(nrow(columns))) {
    name <- columns$name[i]
    trials[[name]] <- switch(columns$kind[i],
      number = as.numeric(trials[[name]]),
      whole = as.numeric(trials[[name]]),
      flag = trials[[name]] == "true",
      trials[[name]]
    )
  }
  trials
}

# Codes such as 007, and answers such as F or T, stay text.
read_participants <- function(folder = ".") {
  people <- read_table_as_text(file.path(folder, "participants.csv"))
  number <- "^-?(0|[1-9][0-9]*)([.][0-9]+)?(e[+-]?[0-9]+)?$"
  for (name in setdiff(names(people), c("participant", "design_sha256", "blind", "group"))) {
    cells <- people[[name]]
    if (!all(is.na(cells)) && all(is.na(cells) | grepl(number, cells))) people[[name]] <- as.numeric(cells)
  }
  people
}

# Example: proportion correct at every level of every condition, for the trials that count:
#   tested <- subset(read_trials("."), counts & kind == "test")
#   aggregate(correct ~ participant + condition + level, tested, function(x) c(mean = mean(x), n = length(x)))
