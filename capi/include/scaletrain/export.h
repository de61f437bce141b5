/* Included first by every header of the C ABI: linkage, visibility, version. C99; also valid C++. */
#ifndef SCALETRAIN_EXPORT_H
#define SCALETRAIN_EXPORT_H

#include <stddef.h>
#include <stdint.h>

#define ST_VERSION_MAJOR 0
#define ST_VERSION_MINOR 1
#define ST_VERSION_PATCH 0

#ifdef ST_BUILDING
#define ST_API __attribute__((visibility("default")))
#else
#define ST_API
#endif

#ifdef __cplusplus
#define ST_BEGIN extern "C" {
#define ST_END }
#define ST_NULL nullptr /* clang's -Wzero-as-null-pointer-constant warns of NULL in C++ */
#else
#define ST_BEGIN
#define ST_END
#define ST_NULL NULL
#endif

#endif
