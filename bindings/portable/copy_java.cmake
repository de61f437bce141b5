# Copies the jar's files other than classes, and its sources, to the folders where Maven expects them.
file(COPY ${LIBRARIES} DESTINATION ${PACKED})
list(TRANSFORM LIBRARIES REPLACE ".*/" "" OUTPUT_VARIABLE names)
list(JOIN names "\n" names)
file(WRITE ${PACKED}/files "${names}\nlibscaletrain_java.so\n")  # PackedLibrary.java unpacks these, in this order
file(COPY ${SOURCE}/LICENSE ${SOURCE}/THIRD_PARTY.md DESTINATION ${JAR}/resources/META-INF)
file(REMOVE_RECURSE ${JAR}/sources)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE 0 ${last})
  if(IS_DIRECTORY "${CMAKE_ARGV${i}}")
    file(COPY ${CMAKE_ARGV${i}}/ DESTINATION ${JAR}/sources)
  endif()
endforeach()
