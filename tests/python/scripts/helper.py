NAME = "helper at the root"
