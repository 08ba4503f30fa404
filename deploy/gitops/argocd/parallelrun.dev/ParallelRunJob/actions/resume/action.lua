-- Goes on where it was suspended.
obj.spec.suspend = false
return obj
