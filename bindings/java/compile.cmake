# Compiles folders of Java sources; the generated ones are known only at build time. Warnings are errors.
file(REMOVE_RECURSE ${OUTPUT})
set(sources)
foreach(folder IN LISTS FOLDERS)
  file(GLOB_RECURSE found ${folder}/*.java)
  list(APPEND sources ${found})
endforeach()
execute_process(COMMAND ${JAVAC} -g --release 17 -encoding UTF-8 -Xlint:all -Werror -d ${OUTPUT} ${sources} COMMAND_ERROR_IS_FATAL ANY)
