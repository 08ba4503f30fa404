-- Ends it for good; what it has done can be continued by a new job with ifExists: Resume.
obj.spec.cancel = true
return obj
