# Run by CTest: the joined object of each instruction set defines exactly two global symbols, its kernel table and its product. So code for
# other machines cannot link to anything compiled with AVX-512.
foreach(object IN LISTS OBJECTS)
  string(REGEX REPLACE ".*st_cpu_([a-z0-9_]+)\\.o$" "\\1" isa "${object}")
  execute_process(COMMAND ${NM} --defined-only --extern-only --format=posix ${object} OUTPUT_VARIABLE listing COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+\n" lines "${listing}")
  list(TRANSFORM lines REPLACE " .*" "")
  list(SORT lines)
  set(wanted st_cpu_gemm_${isa} st_cpu_table_${isa})
  if(NOT lines STREQUAL wanted)
    message(FATAL_ERROR "${object} must define ${wanted} and nothing else for the linker, but it defines ${lines}")
  endif()
endforeach()
