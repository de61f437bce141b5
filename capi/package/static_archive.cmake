# libscaletrain.a, for hosts that link the library statically: one object that contains the whole library and exports only st_*, so it
# cannot clash with symbols of the host. st_* itself is hidden: the host's shared library does not re-export it, and two copies of
# ScaleTrain in one process do not bind to each other.
set(archive ${CMAKE_CURRENT_BINARY_DIR}/scaletrain_archive)

# Takes the names from the shared library, so the two cannot differ.
add_custom_command(
  OUTPUT ${archive}.symbols ${archive}_hidden.s
  COMMAND sh -c "${CMAKE_NM} -D --defined-only '$<TARGET_FILE:scaletrain>' | sed -n 's/^[0-9a-f]* [A-Z] \\(st_[^@]*\\).*/\\1/p' > '${archive}.symbols'"
  # Visibility merges to the strictest: undefined and hidden here makes the definition hidden.
  COMMAND sh -c "(sed 's/^/.hidden /' '${archive}.symbols' && echo '.section .note.GNU-stack,\"\",%progbits') > '${archive}_hidden.s'"
  DEPENDS scaletrain
  VERBATIM)
add_custom_command(
  OUTPUT ${archive}_hidden${CMAKE_C_OUTPUT_EXTENSION}
  COMMAND ${CMAKE_C_COMPILER} -c ${archive}_hidden.s -o ${archive}_hidden${CMAKE_C_OUTPUT_EXTENSION}
  DEPENDS ${archive}_hidden.s
  VERBATIM)

# A relocatable link: CMake finds the archives and their order as for the shared library.
add_executable(scaletrain_joined $<TARGET_OBJECTS:scaletrain> ${archive}_hidden${CMAKE_C_OUTPUT_EXTENSION})
target_link_libraries(scaletrain_joined PRIVATE st_parts st_planner)
target_link_options(scaletrain_joined PRIVATE -r -nostdlib -Wl,--force-group-allocation)
set_target_properties(scaletrain_joined PROPERTIES LINKER_LANGUAGE CXX SUFFIX ${CMAKE_C_OUTPUT_EXTENSION})

set(object ${archive}${CMAKE_C_OUTPUT_EXTENSION})
add_custom_command(
  OUTPUT ${object}
  # GCC's "unique" symbols are made weak first; otherwise they could not be made local. For the kernels, see
  # runtime/backend/cpu/CMakeLists.txt.
  COMMAND sh -c "(echo '# unique symbols' && ${CMAKE_NM} '$<TARGET_FILE:scaletrain_joined>' | sed -n 's/^[0-9a-f]* u //p') > '${archive}.unique'"
  COMMAND ${CMAKE_OBJCOPY} --weaken-symbols=${archive}.unique $<TARGET_FILE:scaletrain_joined> ${object}.all
  COMMAND ${CMAKE_OBJCOPY} --keep-global-symbols=${archive}.symbols ${object}.all ${object}
  COMMAND ${CMAKE_COMMAND} -E rm ${object}.all
  DEPENDS scaletrain_joined ${archive}.symbols
  COMMENT "Joining the library into one object"
  VERBATIM)
set_source_files_properties(${object} ${archive}_hidden${CMAKE_C_OUTPUT_EXTENSION} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)

add_library(scaletrain_static STATIC ${object})
add_library(scaletrain::static ALIAS scaletrain_static)
# A project in C alone can link it: the C++ runtime is just one more library, not a language to enable.
set_target_properties(scaletrain_static PROPERTIES OUTPUT_NAME scaletrain EXPORT_NAME static LINKER_LANGUAGE C)
target_include_directories(scaletrain_static INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/capi/include>)
target_link_libraries(scaletrain_static INTERFACE stdc++ m pthread)
