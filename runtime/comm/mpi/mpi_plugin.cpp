// The exports of libscaletrain_mpi.so.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <scaletrain/transport.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "comm/mpi/mpi_pipes.h"
#include "comm/plugin_side/plugin_functions.h"

extern "C" ST_API const st_plugin* st_plugin_v1(void);

const st_plugin* st_plugin_v1(void) {
  static std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> library{};
  static const st_plugin plugin = [] {
    int length = 0;
    if (MPI_Get_library_version(library.data(), &length) != MPI_SUCCESS) library[0] = '\0';
    *std::find(library.begin(), library.end() - 1, ',') = '\0';  // drops who built it
    return st::plugin::make_plugin<st::plugin::MpiPipes>("mpi", library.data());
  }();
  return &plugin;
}
