# What the jar carries besides classes, and the sources it is made of, where Maven finds both.
get_filename_component(name ${LIBRARY} NAME)
file(COPY ${LIBRARY} DESTINATION ${PACKED})
file(WRITE ${PACKED}/files "${name}\nlibscaletrain_java.so\n")  # what PackedLibrary.java unpacks, in this order
file(COPY ${SOURCE}/LICENSE ${SOURCE}/THIRD_PARTY.md DESTINATION ${JAR}/resources/META-INF)
file(REMOVE_RECURSE ${JAR}/sources)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE 0 ${last})
  if(IS_DIRECTORY ${CMAKE_ARGV${i}})
    file(COPY ${CMAKE_ARGV${i}}/ DESTINATION ${JAR}/sources)
  endif()
endforeach()
