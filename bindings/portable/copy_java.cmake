# Copies the jar's files other than classes, and its sources, to the folders where Maven expects them.
get_filename_component(name ${LIBRARY} NAME)
file(COPY ${LIBRARY} DESTINATION ${PACKED})
file(WRITE ${PACKED}/files "${name}\nlibscaletrain_java.so\n")  # PackedLibrary.java unpacks these, in this order
file(COPY ${SOURCE}/LICENSE ${SOURCE}/THIRD_PARTY.md DESTINATION ${JAR}/resources/META-INF)
file(REMOVE_RECURSE ${JAR}/sources)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE 0 ${last})
  if(IS_DIRECTORY ${CMAKE_ARGV${i}})
    file(COPY ${CMAKE_ARGV${i}}/ DESTINATION ${JAR}/sources)
  endif()
endforeach()
