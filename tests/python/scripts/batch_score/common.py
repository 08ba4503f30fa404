NAME = "relative import"
