-- Its pods go, its results stay.
obj.spec.suspend = true
return obj
