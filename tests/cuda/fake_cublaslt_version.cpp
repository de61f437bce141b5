// The version that a library in the place of cuBLASLt says: all that differs between them but the names that they have.
#include <cublasLt.h>

size_t cublasLtGetVersion() { return ST_CUBLASLT_VERSION; }
