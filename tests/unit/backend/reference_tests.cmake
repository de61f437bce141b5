# Included by this folder's CMakeLists.txt. The reference's kernels are tested in tests/conformance.
st_add_test(backend_reference_test SUITE unit SOURCES dropout_mask_test.cpp reference_backend_test.cpp LIBRARIES st_backend_reference)
