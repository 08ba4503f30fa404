NAME = "beside the nested script"
