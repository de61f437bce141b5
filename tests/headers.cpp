// Nothing: the target of the headers that tests share (CMakeLists.txt) must have a file.
