# Builds the NuGet package as the folder ${PROJECT_BINARY_DIR}/nuget and as the file nuget/ScaleTrain.VERSION.nupkg in it.
if(NOT TARGET scaletrain_csharp)
  return()
endif()
find_program(ST_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(ST_PYTHON NAMES python3 REQUIRED)
set(nuget ${PROJECT_BINARY_DIR}/nuget)
set(packed ${nuget}/runtimes/linux-x64/native/libscaletrain_csharp.so)
st_join(scaletrain_csharp_joined scaletrain_csharp)
st_add_portable(scaletrain_csharp_portable scaletrain_csharp_joined ${PROJECT_SOURCE_DIR}/bindings/csharp/native.map ${packed} ${library})
set(package ${nuget}/ScaleTrain.${PROJECT_VERSION}.nupkg)
set(pack ${PROJECT_SOURCE_DIR}/bindings/csharp/pack.py)
add_custom_command(OUTPUT ${package}
  COMMAND ${ST_PYTHON} ${pack} ${nuget} ${PROJECT_VERSION} ${PROJECT_BINARY_DIR}/csharp/ScaleTrain.dll ${PROJECT_BINARY_DIR}/csharp/ScaleTrain.xml ${libraries} ${packed}
    ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/THIRD_PARTY.md
  DEPENDS ${pack} ${PROJECT_BINARY_DIR}/csharp/ScaleTrain.dll ${libraries} ${packed} ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/THIRD_PARTY.md
  VERBATIM)
add_custom_target(csharp_nuget ALL DEPENDS ${package})
add_dependencies(csharp_nuget csharp_package ${native} scaletrain_csharp_portable)
