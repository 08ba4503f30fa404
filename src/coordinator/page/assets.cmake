# cmake -DFOLDER=assets -DOUT=assets.cc -P assets.cmake: the page's script and style as C++. An array of
# numbers, since a literal may be 64 KiB only.
set(source "#include \"coordinator/page/assets.h\"\n\nnamespace parallelrun::coordinator {\nnamespace {\n\n")
foreach(asset "page.js=Script" "page.css=Style")
  string(REPLACE "=" ";" parts ${asset})
  list(GET parts 0 file)
  list(GET parts 1 name)
  file(READ ${FOLDER}/${file} bytes HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND source "constexpr char k${name}Bytes[] = {${bytes}};\n")
  string(APPEND declared "const std::string_view kPage${name}(k${name}Bytes, sizeof(k${name}Bytes));\n")
endforeach()
file(WRITE ${OUT} "${source}\n}  // namespace\n\n${declared}\n}  // namespace parallelrun::coordinator\n")
