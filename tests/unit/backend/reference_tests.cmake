# Included by CMakeLists.txt of this folder.
foreach(name adamw attention backend dropout elements errors gradients gradient_norm step_factor)
  list(APPEND reference_sources reference_${name}_test.cpp)
endforeach()
st_add_test(backend_reference_test SUITE unit SOURCES reference_run.cpp ${reference_sources} LIBRARIES st_backend_reference)
