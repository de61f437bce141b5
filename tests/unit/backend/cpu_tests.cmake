# Included by this folder's CMakeLists.txt: the cpu kernels alone, on every instruction set of this machine.
st_add_test(backend_cpu_test SUITE unit NUMBERS
  SOURCES cpu_backend_test.cpp cpu_bf16_product_test.cpp LIBRARIES st_backend_cpu)
st_add_test(backend_cpu_matmul_test SUITE unit NUMBERS SOURCES cpu_matmul_test.cpp LIBRARIES st_backend_cpu)

# Which sets were built is private to the backend; these tests need it.
foreach(program backend_cpu_test backend_cpu_matmul_test)
  target_compile_definitions(${program} PRIVATE $<TARGET_PROPERTY:st_backend_cpu,COMPILE_DEFINITIONS>)
endforeach()

# The processor decides which of the two is used; both must be correct, whatever becomes of C.
foreach(way before on_the_way)
  add_test(NAME backend_cpu_matmul_packed_${way} COMMAND backend_cpu_matmul_test)
  set_tests_properties(backend_cpu_matmul_packed_${way} PROPERTIES LABELS unit ENVIRONMENT
    "SCALETRAIN_PACK_B=${way};GTEST_FILTER=-*NeverReadsC*:*WritesColumnMajor*")
endforeach()
# Running together, two would use the same name for their reports, and tests/tally.py would count only one.
set_tests_properties(backend_cpu_matmul_test backend_cpu_matmul_packed_before backend_cpu_matmul_packed_on_the_way
  PROPERTIES RESOURCE_LOCK backend_cpu_matmul_test)

get_target_property(cpu_objects st_backend_cpu ST_JOINED_OBJECTS)
add_test(NAME backend_cpu_symbols COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} "-DOBJECTS=${cpu_objects}"
  -P ${CMAKE_CURRENT_SOURCE_DIR}/cpu_symbols.cmake)
set_tests_properties(backend_cpu_symbols PROPERTIES LABELS unit)
