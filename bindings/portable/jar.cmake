# Builds the jar with the native library inside, ${PROJECT_BINARY_DIR}/jar/scaletrain.jar. The folders sources/ and resources/ next to it are the
# input of bindings/java/pom.xml.
if(NOT TARGET scaletrain_java)
  return()
endif()
set(jar ${PROJECT_BINARY_DIR}/jar)
set(packed ${jar}/resources/native/linux-x86_64)
st_join(scaletrain_java_joined scaletrain_java)
st_add_portable(scaletrain_java_portable scaletrain_java_joined ${PROJECT_SOURCE_DIR}/bindings/java/native.map ${packed}/libscaletrain_java.so
  ${library})
add_custom_command(
  OUTPUT ${jar}/scaletrain.jar
  COMMAND ${CMAKE_COMMAND} -DJAR=${jar} -DPACKED=${packed} "-DLIBRARIES=${libraries}" -DSOURCE=${PROJECT_SOURCE_DIR} -P ${CMAKE_CURRENT_SOURCE_DIR}/copy_java.cmake
    ${PROJECT_SOURCE_DIR}/bindings/java/src ${PROJECT_BINARY_DIR}/bindings/java/generated
  COMMAND ${ST_JAVA_TOOLS}/jar --create --file ${jar}/scaletrain.jar -C ${PROJECT_BINARY_DIR}/bindings/java/classes . -C ${jar}/resources .
  DEPENDS ${libraries} ${packed}/libscaletrain_java.so ${PROJECT_BINARY_DIR}/java/scaletrain.jar copy_java.cmake
  VERBATIM)
add_custom_target(java_jar ALL DEPENDS ${jar}/scaletrain.jar)
add_dependencies(java_jar java_package ${native} scaletrain_java_portable)
