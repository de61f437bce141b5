# Writes build_id.cpp with kBuildId (backend_plugin.h), and a list of the files that it depends on for the build tool.
# The id is a digest of what the compiler reads: the preprocessed declarations that library and plug-ins share, with those of the standard
# library, and the format of memory blocks (heap.cpp), which one side allocates and the other frees. Comments and folders do not count.
# Needs COMPILER, FLAGS (text), SETTINGS (text: compiler, sanitizers), RUNTIME (folder), OUT.
separate_arguments(flags NATIVE_COMMAND "${FLAGS}")
execute_process(
  COMMAND ${COMPILER} ${flags} -std=c++20 -ffile-prefix-map=${RUNTIME}/= -I ${RUNTIME} -include backend/backend_plugin.h -E -P
    -MD -MT ${OUT} -MF ${OUT}.d -o ${OUT}.read ${RUNTIME}/base/heap.cpp
  COMMAND_ERROR_IS_FATAL ANY)
file(SHA256 ${OUT}.read read)
string(SHA256 digest "${read} ${SETTINGS}")
string(SUBSTRING ${digest} 0 16 id)
file(CONFIGURE OUTPUT ${OUT} CONTENT "namespace st {
extern const char* const kBuildId;
const char* const kBuildId = \"${id}\";
}  // namespace st
")
