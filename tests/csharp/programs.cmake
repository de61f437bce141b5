# Programs other than the tests: README.md's example, the application among the samples, and the program that valgrind checks.

# st_add_csharp_program(name source label...): runs a program on both runtimes. Its exit status says whether it learned.
function(st_add_csharp_program name source)
  st_add_csharp_exe(${name} ${source})
  set(programs ${programs} PARENT_SCOPE)
  add_test(NAME csharp_mono_${name} COMMAND ${ST_MONO} ${folder}/${name}.exe)
  add_test(NAME csharp_net8_${name} COMMAND ${on_net8} ${folder}/${name}.exe)
  set_tests_properties(csharp_mono_${name} csharp_net8_${name} PROPERTIES LABELS "${ARGN}" ENVIRONMENT "${environment}")
endfunction()

st_add_csharp_program(PolicyGradient ${PROJECT_SOURCE_DIR}/samples/csharp/PolicyGradient.cs samples)
add_test(NAME csharp_mono_PolicyGradient_unknown COMMAND ${ST_MONO} ${folder}/PolicyGradient.exe --device no-such-device)
set_tests_properties(csharp_mono_PolicyGradient_unknown PROPERTIES LABELS samples ENVIRONMENT "${environment}" PASS_REGULAR_EXPRESSION "no-such-device")

# README.md's program, wrapped in a Main(), since mcs does not support top-level statements.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/README.md)
file(READ ${PROJECT_SOURCE_DIR}/README.md readme)
string(REGEX MATCH "\n```csharp\n((using [^\n]*\n)+)(([^`]|`[^`])*)\n```" found "${readme}")
if(NOT found)
  message(FATAL_ERROR "README.md has no block \"```csharp\" that begins with a using")
endif()
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/readme.cs
  CONTENT "${CMAKE_MATCH_1}static class Readme {\n  static int Main() {\n${CMAKE_MATCH_3}\n    return report.Loss < 0.01 ? 0 : 1;\n  }\n}\n" @ONLY)
st_add_csharp_program(readme ${CMAKE_CURRENT_BINARY_DIR}/readme.cs csharp readme)

# Memory checks with valgrind. Only on Mono, since .NET 8 does not start under valgrind.
st_add_csharp_exe(LeakTrial ${CMAKE_CURRENT_SOURCE_DIR}/programs/LeakTrial.cs)
find_program(ST_VALGRIND NAMES valgrind)
if(ST_VALGRIND)
  add_test(NAME csharp_leaks COMMAND ${ST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/leaks.py ${ST_VALGRIND} ${ST_MONO} ${folder}/LeakTrial.exe)
  set_tests_properties(csharp_leaks PROPERTIES LABELS csharp TIMEOUT 300 COST 1000 ENVIRONMENT "${environment}")
else()
  message(STATUS "The C# assembly is not checked with valgrind, which was not found; tests/setup installs it")
endif()
