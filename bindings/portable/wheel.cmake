# Builds the wheel's folder, which bindings/python/pyproject.toml packs.
if(NOT TARGET scaletrain_python)
  return()
endif()
set(wheel ${PROJECT_BINARY_DIR}/wheel/scaletrain)
st_join(scaletrain_python_joined scaletrain_python)
st_add_portable(scaletrain_python_portable scaletrain_python_joined ${PROJECT_SOURCE_DIR}/bindings/python/native.map ${wheel}/_native.abi3.so ${library})
add_custom_target(python_wheel ALL
  COMMAND ${CMAKE_COMMAND} -DFROM=${PROJECT_BINARY_DIR}/python/scaletrain -DTO=${wheel} -P ${CMAKE_CURRENT_SOURCE_DIR}/copy_python.cmake
  COMMAND ${CMAKE_COMMAND} -E copy ${libraries} ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/THIRD_PARTY.md ${wheel}
  DEPENDS python_package ${native} scaletrain_python_portable ${libraries})
