# find_package(scaletrain): scaletrain::scaletrain is the shared library, scaletrain::static the archive, if it was built.
# `find_package(scaletrain COMPONENTS static)` requires the archive. Needs only C as a language.
include("${CMAKE_CURRENT_LIST_DIR}/scaletrainTargets.cmake")

foreach(component IN LISTS scaletrain_FIND_COMPONENTS)
  if(TARGET scaletrain::${component})
    set(scaletrain_${component}_FOUND TRUE)
  elseif(scaletrain_FIND_REQUIRED_${component})
    set(scaletrain_FOUND FALSE)
    set(scaletrain_NOT_FOUND_MESSAGE
      "this ScaleTrain has no component ${component}; its components are scaletrain and, if built with ST_STATIC, static")
  endif()
endforeach()
